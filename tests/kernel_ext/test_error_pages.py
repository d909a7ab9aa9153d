"""The pages of docs/errors about the notebook's own errors: one for each class; the cells do what the page says."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import limelight as ll
import limelight_kernel

FOLDER = Path(__file__).parents[2] / "docs" / "errors"


def classes() -> dict[str, type[BaseException]]:
    """The errors and warnings that the notebook extension defines."""
    modules = [one.name for one in pkgutil.walk_packages(limelight_kernel.__path__, "limelight_kernel.")]
    defined = [(thing, name) for name in modules for thing in vars(importlib.import_module(name)).values()]
    return {
        thing.__name__: thing
        for thing, module in defined
        if inspect.isclass(thing) and issubclass(thing, Exception) and thing.__module__ == module
        if not thing.__name__.startswith("_")
    }


class Cause(NamedTuple):
    """One way to get there: cells of which the last one fails or warns, the message, cells that work."""

    page: str
    title: str
    raises: list[str]
    message: str
    works: list[str]


def causes() -> list[Cause]:
    found = []
    for name in sorted(classes()):
        for section in (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n## ")[1:]:
            title, rest = section.split("\n", 1)
            (_, raises), (_, message), (_, works) = re.findall(r"```(\w+)\n(.*?)```", rest, re.DOTALL)
            found.append(Cause(name, title, cells(raises), message, cells(works)))
    return found


def cells(text: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"^# In \[\d+\]:\n", text, flags=re.MULTILINE)[1:]]


CAUSES = causes()


def beside_what_lives(cause: Cause) -> Cause:
    """A budget of bytes with what other tests have left alive on top."""
    more = math.ceil(ll.memory_info("CPU:0").current / 1e6)

    def raised(text: str) -> str:
        return re.sub(r"--budget (\d+)MB", lambda found: f"--budget {int(found[1]) + more}MB", text)

    message = re.sub(r"\d+ MB", "...", cause.message)
    return Cause(cause.page, cause.title, [*map(raised, cause.raises)], message, [*map(raised, cause.works)])


@pytest.mark.parametrize("cause", CAUSES, ids=lambda c: f"{c.page}: {c.title}")
def test_the_mistake_and_the_repair_do_what_the_page_says(cause: Cause, run, shell) -> None:
    shell.run_line_magic("load_ext", "limelight")
    cause = beside_what_lives(cause)
    for cell in cause.raises[:-1]:
        run(cell)
    warns = cause.page.endswith("Warning")
    ran = run(cause.raises[-1], fails=not warns)
    said = " ".join(ran.warned) if warns else str(getattr(ran.error, "msg", ran.error))
    assert warns or type(ran.error).__name__ == cause.page
    pattern = re.escape(" ".join(cause.message.split())).replace(re.escape("..."), ".*")
    assert re.search(f"{pattern}$", " ".join(said.split())), f"the page should show:\n{said}"
    shell.user_ns.clear()
    shell.execution_count = 1
    shell.init_user_ns()
    for cell in cause.works:
        ran = run(cell)
    assert "assert " in cause.works[-1] or not ran.warned


def test_there_is_a_page_for_each_class_and_the_index_has_it() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8").partition("notebook extension")[2]
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == set(classes()) == {cause.page for cause in CAUSES}


@pytest.mark.parametrize("name", sorted(classes()))
def test_classes_and_pages_agree(name: str) -> None:
    """The docstring names the page, and the page the built-in class to catch."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n\n")
    assert f"docs/errors/{name}.md" in (classes()[name].__doc__ or "")
    assert f"`{classes()[name].__bases__[0].__name__}`" in text
    assert max(map(len, text.splitlines())) <= 120
