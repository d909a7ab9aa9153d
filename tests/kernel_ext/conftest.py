"""A real IPython shell for each test, and what it showed."""

from __future__ import annotations

import atexit
import builtins
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output
from traitlets.config import Config

from limelight_kernel.cell.cell_warnings import StagedCellWarning


class Ran:
    """One run of a notebook cell: its value, what it printed and displayed, the error it raised."""

    def __init__(self, result: Any, captured: Any) -> None:
        self.value = result.result
        self.error: BaseException | None = result.error_before_exec or result.error_in_exec
        self.out: str = captured.stdout
        self.err: str = captured.stderr
        self.shown: list[RichOutput] = [output for output in captured.outputs if _is_display(output)]
        self.warned: list[str] = []  # by StagedCellWarning

    @property
    def text(self) -> str:
        """All that was displayed, as plain text."""
        return "\n".join(output.data["text/plain"] for output in self.shown)


def _is_display(output: RichOutput) -> bool:
    return "text/plain" in (output.data or {})


Run = Callable[..., Ran]


@pytest.fixture
def shell(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A fresh shell, without a history file and without colours."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.delattr(builtins, "_", raising=False)  # a doctest leaves it behind, and IPython then keeps no `_`
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=config)
    yield made
    made.history_manager.end_session()
    made.user_ns.clear()
    made.restore_sys_module_state()
    InteractiveShell.clear_instance()
    atexit.unregister(made.atexit_operations)  # it collects garbage: for hundreds of shells that would take minutes


@pytest.fixture
def run(shell: InteractiveShell) -> Run:
    """Runs a cell as a notebook does, and checks that it fails or not; None where that depends on IPython's version."""

    def run_cell(text: str, fails: bool | None = False) -> Ran:
        with capture_output() as captured, warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", category=StagedCellWarning)
            result = shell.run_cell(text, store_history=True)
        ran = Ran(result, captured)
        for one in caught:
            if one.category is StagedCellWarning:
                ran.warned.append(f"{one.filename}:{one.lineno}: {one.message}")
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
        if fails is False and ran.error is not None:
            raise AssertionError(f"the cell failed: {ran.out}{ran.err}") from ran.error
        if fails:
            assert ran.error is not None, f"the cell should have failed: {ran.out}"
        return ran

    return run_cell
