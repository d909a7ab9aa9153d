"""Build limelight-native, the engine's C part, and test it under the sanitizers.

    python scripts/native.py install [--venv DIR]
    python scripts/native.py sanitize [ARGUMENT OF PYTEST ...]

`install` needs a C compiler: the system's, else that of the package `ziglang`. Where it cannot build, it says in a line
what is missing, and the project works without. `sanitize` needs gcc or clang with AddressSanitizer, and the packages of
the tests; it exits with 3, and a line that says why, where it cannot run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "engine" / "native"
TABLES = (
    "table",
    "gil",
    "templates",
    "writing",
    "gathers",
    "loops",
    "nests",
    "shared_runs",
    "control_flow",
    "open_loops",
    "stateful_loops",
    "assignments",
)
TESTS = (
    *[f"tests/engine/executors/loops/test_{name}.py" for name in TABLES],
    "tests/engine/core/test_native_pool.py",
    "tests/engine/ops/test_native_columns.py",
    "tests/engine/ops/test_native_convolution.py",
    "tests/engine/ops/test_native_pooling.py",
)
COMPILERS = ("cc", "gcc", "clang", "cl")
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror")
SANITIZED = (
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fvisibility=hidden",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)
LONGEST = 300
"""Seconds for a build, which takes ten where packages come quickly."""
CANNOT = 3
ZIG = "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / 'zig')"
WITHOUT = "limelight-native was not built, and functions run by the plan: {reason}"


def has_compiler() -> bool:
    """Whether the machine has a C compiler, or names one in CC."""
    return "CC" in os.environ or any(map(shutil.which, COMPILERS))


def install(python: Path) -> str:
    """Build and install the package for an interpreter; returns why that was not possible, or nothing."""
    environment = dict(os.environ)
    if not has_compiler():
        if _pip(python, "install", "ziglang", environment=environment).returncode:
            return "there is no C compiler (cc, gcc, clang), and the package ziglang cannot be installed"
        where = subprocess.run([str(python), "-c", ZIG], capture_output=True, text=True, check=False)
        environment["CC"] = f"{where.stdout.strip()} cc"  # `python -m ziglang` is not found in pip's build environment
    with tempfile.TemporaryDirectory() as wheels:
        return build(python, Path(wheels), environment) or install_built(python, Path(wheels))


def build(python: Path, wheels: Path, environment: Mapping[str, str] | None = None) -> str:
    """Build the package's wheel into a folder, in an environment of pip's own; returns why not, or nothing."""
    done = _pip(python, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(SOURCE), environment=environment)
    return last_words(done.stdout + done.stderr) if done.returncode else ""


def install_built(python: Path, wheels: Path) -> str:
    """Install the wheel that lies in a folder, also over one of the same version; returns why not, or nothing."""
    built = [str(wheel) for wheel in wheels.glob("*.whl")]
    done = _pip(python, "install", "--force-reinstall", "--no-deps", *built)
    return last_words(done.stdout + done.stderr) if done.returncode else ""


def _pip(
    python: Path, command: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    run = [str(python), "-m", "pip", "--disable-pip-version-check", command, "-qq", *arguments]
    try:
        return subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(run, 1, f"pip {command} took longer than {LONGEST} s", "")


def last_words(output: str) -> str:
    """The line of a build's output that says most: the first error that is not pip's own summary."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and not line.startswith(("error: subprocess", "×"))]
    return (errors or lines or ["pip says nothing"])[0]


def compiled(folder: Path) -> str:
    """Compile the module with the sanitizers into a folder; returns why that was not possible, or nothing."""
    compiler = next(filter(None, map(shutil.which, ("gcc", "clang"))), None)
    if compiler is None or sys.platform != "linux":
        return "it needs gcc or clang, on Linux"
    numpy = subprocess.run(
        [sys.executable, "-c", "import numpy; print(numpy.get_include())"], capture_output=True, text=True, check=True
    )
    headers = [f"-I{sysconfig.get_paths()['include']}", "-isystem", numpy.stdout.strip()]
    module = folder / f"limelight_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = [str(file) for file in sorted((SOURCE / "src").glob("*.c"))]
    command = [compiler, *WARNINGS, *SANITIZED, "-shared", "-fPIC", *headers, *sources, "-lpthread", "-o", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return last_words(done.stderr) if done.returncode else ""


def runtime() -> str:
    """The library of AddressSanitizer, which must be loaded before Python; nothing where there is none."""
    asked = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=False)
    file = asked.stdout.strip()
    return os.path.realpath(file) if os.path.isabs(file) else ""


def sanitize(arguments: list[str]) -> int:
    """Run the tests of what is in C with a module that stops at each wrong access and undefined operation."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        reason = compiled(folder) if shutil.which("gcc") else "it needs gcc, on Linux"
        library = "" if reason else runtime()
        if not library:
            print(f"Not run under the sanitizers: {reason or 'gcc has no AddressSanitizer'}")
            return CANNOT
        roots = [folder, *[ROOT / name for name in ("engine", "kernel_ext", "widgets")]]
        environment = os.environ | {
            "LD_PRELOAD": library,
            "ASAN_OPTIONS": "detect_leaks=0",  # Python itself frees little at its end
            "PYTHONPATH": os.pathsep.join([*map(str, roots), os.environ.get("PYTHONPATH", "")]),
            "PYTHONMALLOC": "malloc",  # so that each object's end is known
        }
        tests = arguments or TESTS
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> None:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("install", help="build it and install it")
    one.add_argument("--venv", type=Path, help="the environment; that of this Python by default")
    commands.add_parser("sanitize", help="test it under the sanitizers")
    arguments, rest = parser.parse_known_args()
    if arguments.command == "sanitize":
        sys.exit(sanitize(rest))
    inside = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    reason = install(Path(sys.executable) if arguments.venv is None else arguments.venv / inside)
    print(WITHOUT.format(reason=reason) if reason else "limelight-native is installed.")


if __name__ == "__main__":
    main()
