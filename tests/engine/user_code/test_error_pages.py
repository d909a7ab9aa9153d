"""The pages of docs/errors: there is one for each class, and every snippet on it does what the page says."""

from __future__ import annotations

import inspect
import linecache
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import limelight as ll
from limelight import errors
from limelight.core import devices

FOLDER = Path(__file__).parents[3] / "docs" / "errors"
CLASSES = {
    name: thing
    for name, thing in inspect.getmembers(errors, inspect.isclass)
    if issubclass(thing, (errors.LimelightError, Warning)) and thing is not errors.LimelightError
}


class Cause(NamedTuple):
    """One way to get there: code that raises, the message, code that works."""

    page: str
    title: str
    raises: str
    message: str
    works: str


def causes() -> list[Cause]:
    found = []
    for page in [FOLDER / f"{name}.md" for name in sorted(CLASSES)]:
        for section in page.read_text(encoding="utf-8").split("\n## ")[1:]:
            title, rest = section.split("\n", 1)
            blocks = re.findall(r"```(\w+)\n(.*?)```", rest, re.DOTALL)
            assert [kind for kind, _ in blocks] == ["python", "text", "python"], f"{page.name}: {title}"
            found.append(Cause(page.stem, title, *[text for _, text in blocks]))
    return found


CAUSES = causes()


def run(code: str, ignored: str = "") -> None:
    """Runs a snippet as a program of its own, in which messages can show lines."""
    linecache.cache["example.py"] = (len(code), None, code.splitlines(keepends=True), "example.py")
    names: dict[str, Any] = {"__name__": "example"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if ignored:
            warnings.filterwarnings("ignore", ignored)
        exec(compile(code, "example.py", "exec"), names)


def matches(shown: str, said: str) -> bool:
    """Whether a page shows what was said: lines may be broken elsewhere, and "..." stands for anything."""
    pattern = re.escape(" ".join(shown.split())).replace(re.escape("..."), ".*")
    said = said.replace("CPU:0, XLA:0", "CPU:0")  # a device that is there where JAX is installed
    return re.fullmatch(pattern, " ".join(said.split())) is not None


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(devices, "_local", devices.list_devices())  # pages that split the CPU do so for themselves
    monkeypatch.setattr(devices, "_in_use", False)


@pytest.mark.slow  # runs what each page says
@pytest.mark.parametrize("cause", CAUSES, ids=lambda c: f"{c.page}: {c.title}")
def test_the_mistake_raises_what_the_page_says(cause: Cause) -> None:
    with pytest.raises((errors.LimelightError, Warning)) as caught:
        run(cause.raises, ".*leaves a symbolic tensor behind" if cause.page == "LeakedTensorError" else "")
    assert type(caught.value) is CLASSES[cause.page]
    assert matches(cause.message, str(caught.value)), f"the page should show:\n{caught.value}"
    assert cause.page == "RetracingWarning" or "example.py line" in str(caught.value)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda c: f"{c.page}: {c.title}")
def test_the_repair_works(cause: Cause) -> None:
    assert "assert " in cause.works, "a repair shows that it works"
    run(cause.works)


def test_there_is_a_page_for_each_class_and_a_class_for_each_page() -> None:
    """Those of the notebook are tested in `tests/kernel_ext/test_error_pages.py`."""
    assert {cause.page for cause in CAUSES} == set(CLASSES)
    index = (FOLDER / "README.md").read_text(encoding="utf-8").partition("notebook extension")[0]
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == set(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_and_pages_agree(name: str) -> None:
    """The docstring names the page, and the page the built-in exceptions to catch."""
    kind = CLASSES[name]
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n\n")
    if issubclass(kind, errors.LimelightError):
        assert f"docs/errors/{name}.md" in (kind.__doc__ or "")
        builtin = [base.__name__ for base in kind.__bases__ if base is not errors.LimelightError]
        assert builtin
        assert all(f"`{base}`" in text for base in builtin)


def test_lines_of_pages_are_of_a_readable_length() -> None:
    for page in FOLDER.glob("*.md"):
        assert max(map(len, page.read_text(encoding="utf-8").splitlines())) <= 120, page.name


def test_every_class_is_public() -> None:
    assert all(getattr(ll.errors, name) is kind for name, kind in CLASSES.items())
