"""A staged cell means what the plain cell means, or says so: notebooks run with `%%stage` and without it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from twin import TWINS, Step, Twin, differences, first_said, read, run  # beside this file

from limelight.user_code import holders


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setattr(holders, "SECONDS", 5.0)  # on a busy machine
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "nocolor"
        InteractiveShell.clear_instance()
        made = InteractiveShell.instance(config=config)
        made.InteractiveTB.set_mode("Minimal")  # a traceback takes longer to write than its cell to run
        made.run_line_magic("load_ext", "limelight")
        yield made
        made.history_manager.end_session()
        made.user_ns.clear()
        made.restore_sys_module_state()
        InteractiveShell.clear_instance()
        atexit.unregister(made.atexit_operations)


def case(path: Path) -> Any:
    """The twin as a parameter: most are slow tests, drawn by the hash of the name; known differences must be there."""
    known = read(path).known
    marks = [pytest.mark.slow] if crc32(path.stem.encode()) % 14 > 0 else []
    return pytest.param(
        path, id=path.stem, marks=[*marks, *([pytest.mark.xfail(reason=known, strict=True)] if known else [])]
    )


BY_AUTOGRAPH = {
    "tensor_in_an_if",
    "names_of_a_branch",
    "names_of_a_loop_over_an_iterator",
    "names_deleted_in_a_branch",
    "numbers_that_a_tensor_decides",
    "numbers_on_one_path_alone",
    "numbers_rounded_and_asked",
    "class_of_a_number_that_a_tensor_decides",
}
"""What a staged cell refuses, with the advice to write --autograph, with which it agrees."""


def is_fifth(path: Path) -> bool:
    """Whether the twin is one of the fifth, by the hashes of their names, that run in further ways, too."""
    return crc32(path.stem.encode()) % 5 == 0


def is_converted(path: Path) -> bool:
    return path.stem in BY_AUTOGRAPH or "LIMELIGHT_ALL_TWINS" in os.environ or is_fifth(path)


@pytest.mark.parametrize("path", [case(path) for path in TWINS])
def test_a_staged_notebook_is_its_plain_twin(path: Path, shell: Any) -> None:
    """With `%%stage`, and a fifth of them, in a shorter order, with `%%stage --autograph`."""
    twin = read(path)
    plain = [run(twin.cells, order, shell, staged=False) for order in twin.orders]
    for order, one in zip(twin.orders, plain, strict=True):
        check(twin, order, one, run(twin.cells, order, shell, staged=True), twin.says)
    if is_converted(path):
        order = twin.brief_order  # with which the first of them begins
        says = () if path.stem in BY_AUTOGRAPH else twin.says
        converted = run(twin.cells, order, shell, staged=True, flags="-q --autograph")
        check(twin, order, plain[0][: len(order)], converted, says)


def check(twin: Twin, order: Sequence[int], plain: list[Step], staged: list[Step], says: Sequence[str]) -> None:
    """Raises AssertionError where the two runs differ unsaid, or the staged one does not say what it should."""
    found = list(differences(plain, staged, order))
    said = first_said(staged, order)
    for text in says:
        assert text in said, f"{twin.about}: should have said {text!r}, said {said!r}"
    assert says or not found, f"{twin.about}, in the order {order}:\n" + "\n".join(found)
