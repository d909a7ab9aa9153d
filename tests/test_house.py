"""The house itself: what is packaged, what an import costs, what the README promises, how large things may grow."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "limelight": "engine/limelight",
    "limelight_kernel": "kernel_ext/limelight_kernel",
    "limelight_widgets": "widgets/limelight_widgets",
}
SOURCES = [ROOT / folder for folder in PACKAGES.values()]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILE_CEILING, FUNCTION_CEILING = 600, 60  # one subject a file: a ceiling is no reason to cut one in two


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(language: str) -> list[str]:
    """The README's fenced blocks in `language`."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


# --- packaging


@pytest.mark.parametrize(("name", "folder"), PACKAGES.items())
def test_a_package_is_typed_and_comes_from_its_own_source_root(name, folder):
    module = importlib.import_module(name)
    assert Path(module.__file__).parent == ROOT / folder
    assert (ROOT / folder / "py.typed").is_file()


def test_the_versions_agree():
    import limelight

    assert limelight.__version__ == PROJECT["version"] == importlib.metadata.version("limelight")


@pytest.mark.slow  # builds a wheel
def test_the_wheel_holds_the_three_packages_and_nothing_else(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, ROOT], check=True)
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == set(PACKAGES)
    data = {name.partition("/")[2] for name in names if ".data/" in name}
    extension = "data/share/jupyter/labextensions/limelight"  # where JupyterLab looks
    assert data == {f"{extension}/package.json", f"{extension}/static/extension.js"}
    missing = {str(path.relative_to(root.parent)) for root in SOURCES for path in tracked(root)} - names
    assert not missing, f"not in the wheel: {sorted(missing)}"
    assert any(name.endswith("licenses/LICENSE") for name in names)


def tracked(root: Path) -> list[Path]:
    """The files under `root` that belong to the project."""
    return [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_the_notebook_is_a_default_dependency_and_the_rest_are_extras():
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert {"numpy", "ml_dtypes", "ipykernel", "ipywidgets", "anywidget", "graphviz"} <= names
    assert not names & {"jax", "cupy", "ray", "onnx", "torch", "jupyterlab"}
    assert {"onnx", "png", "xla", "cuda", "workshop", "test", "docs", "bench"} == set(PROJECT["optional-dependencies"])


# --- the facade


@pytest.mark.slow  # starts another Python
def test_importing_the_engine_imports_no_notebook_and_no_accelerator():
    """Beside NumPy only `ml_dtypes`, and nothing of Python's own that is large; counted, since times say little."""
    code = (
        "import sys, numpy; numpys = set(sys.modules); calls = []; "
        "sys.setprofile(lambda frame, event, argument: calls.append(1) if event == 'call' else None); "
        "import limelight; sys.setprofile(None); print(len(calls), *set(sys.modules) - numpys)"
    )
    calls, *loaded = python(code).split()
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    ours = {"limelight", "limelight_native"}  # the second one where it is installed: it decides what runs functions
    assert {name for name in packages if "cython" not in name} - ours == {"ml_dtypes", "numpy"}
    large = {"asyncio", "concurrent", "ctypes", "email", "http", "multiprocessing", "socket", "ssl", "unittest"}
    assert not large & {name.partition(".")[0] for name in loaded}
    assert len([name for name in loaded if not name.startswith("limelight")]) < 60  # 50 when this was written
    assert int(calls) < 120_000  # 110,000 when this was written: modules found and run, ops defined


def test_every_public_name_is_there_and_says_what_it_is():
    import limelight

    public = {name: value for name, value in vars(limelight).items() if not name.startswith("_") and callable(value)}
    silent = [name for name, value in public.items() if not (value.__doc__ or "").strip()]
    assert len(public) > 60
    assert not silent, f"public, but without a docstring: {silent}"


# --- what is written about it


def test_the_readme_names_exactly_two_set_up_commands():
    commands = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    assert commands == ["make lab", "make test"]


def test_the_readme_shows_windows_users_the_makefiles_pip_lines():
    (lines,) = blocks("bat")
    installed = re.findall(r"pip install --editable \.\[(\w+)\]", lines)
    assert installed == ["workshop", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f".installed-{extra}" in makefile for extra in installed)


@pytest.mark.slow  # starts another Python
def test_the_readmes_code_runs_and_prints_what_it_says(tmp_path):
    (code,), (said,) = blocks("python"), blocks("console")
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    script = tmp_path / "readme.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert words(done.stdout) == words(said)
    assert measured(done.stdout) == pytest.approx(measured(said), abs=0.03), "other processors round otherwise"


_MEASURED = re.compile(r"\d+\.\d\d\b|\d+%")


def words(text: str) -> str:
    """`text` without the times that it took, and without what it measured."""
    return _MEASURED.sub("a number", re.sub(r"[\d.]+ [nµm]?s\b", "a while", text))


def measured(text: str) -> list[float]:
    """The losses and shares in a text."""
    return [float(found.rstrip("%")) / (100 if found[-1] == "%" else 1) for found in _MEASURED.findall(text)]


def test_what_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert links
    assert not missing


def test_contributing_lists_every_command_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = set(re.findall(r"^([a-z-]+):.*##", makefile, flags=re.MULTILINE)) - {"help"}
    listed = set(re.findall(r"^\| `make ([a-z-]+)` ", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M))
    assert listed == commands


def test_the_commit_hooks_run_the_makefiles_tools():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(RUN)", ".venv/bin/python")
    makefile = makefile.replace("$(VENV)", ".venv")
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert {hook["id"] for hook in local["hooks"]} == {"lint", "format-check", "types", "imports"}
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"] in makefile


def test_the_picture_of_the_architecture_is_that_of_the_code():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "architecture.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_room_imports_one_above_it():
    """What the picture shows at a glance: no dot above the diagonal."""
    import architecture

    names = [room.name for room in architecture.rooms()]
    pairs = architecture.imports(names)
    assert len(names) > 20
    assert len(pairs) > 60
    assert not [(a, b) for a, b in pairs if names.index(a) > names.index(b)]


# --- sizes


def modules() -> list[Path]:
    """Every Python file that people maintain."""
    folders = [*SOURCES, ROOT / "scripts", ROOT / "tests", ROOT / "benchmarks"]
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def test_no_file_is_too_long():
    lengths = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in modules()}
    assert len(lengths) > 20
    assert not {name: length for name, length in lengths.items() if length > FILE_CEILING}


def functions(block):
    """The functions in a block, and in those within it. Statements alone are gone through: expressions are the most."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(block, part, ()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            yield from functions(node)


def test_functions_are_found_wherever_they_are():
    inner = "async def f(self):\n        def g():\n            pass\n"
    handled = f"try:\n    {inner}except A:\n    {inner}else:\n    {inner}finally:\n    {inner}"
    text = f"{handled}with x:\n    {inner}match x:\n  case 1:\n    {inner}class A:\n    {inner}"
    found = sorted([node.lineno for node in functions(ast.parse(text))])
    assert found == [n for n, line in enumerate(text.splitlines(), 1) if "def " in line]
    assert len(found) == 14


@pytest.mark.slow  # parses every file
def test_no_function_is_too_long():
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in modules()
        for node in functions(ast.parse(path.read_text(encoding="utf-8")))
        if node.end_lineno - node.lineno + 1 > FUNCTION_CEILING
    ]
    assert not too_long
