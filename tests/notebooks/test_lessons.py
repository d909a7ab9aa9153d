"""Every notebook of the workshop runs from a clean kernel, and stands in the repository without outputs."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

LESSONS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def _texts(notebook: Any) -> str:
    outputs = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    return "\n".join([o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs])


def _printed(notebook: Any) -> list[str]:
    outputs = [o for cell in notebook.cells if "print(" in cell.source for o in cell.get("outputs", ())]
    return [line for o in outputs if o.get("name") == "stdout" for line in o.text.splitlines() if line == "tracing"]


@functools.cache
def executed(path: Path) -> Any:
    """The notebook, run once from a clean kernel."""
    import nbformat  # it compiles grammars for seconds, which whoever only collects the tests need not wait for
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=500, startup_timeout=500, kernel_name="python3").execute()
    return notebook


@pytest.mark.notebook
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_from_a_clean_kernel(path: Path) -> None:
    notebook = executed(path)
    assert not re.search(r"Traceback|(?<!StagedCell)Warning:", _texts(notebook))


@pytest.mark.notebook
def test_the_first_lesson_learns_the_digits_and_explains_its_retrace() -> None:
    notebook = executed(next(p for p in LESSONS if p.stem == "01_first_light"))
    said = _texts(notebook)
    accuracy = re.search(r"([\d.]+)% of 360 held-out digits", said)
    assert accuracy is not None
    assert float(accuracy[1]) >= 95.0
    assert "`images` f32[32,64] -> f32[29,64] (axis 0: 32 -> 29)" in " ".join(said.split())
    assert "traces so far: 2" in said
    assert re.search(r"mean loss [\d.]+, traces: 1$", said, re.MULTILINE)


@pytest.mark.notebook
def test_the_second_lesson_shows_what_it_says() -> None:
    notebook = executed(next(p for p in LESSONS if p.stem == "02_tracing_and_retracing"))
    said = " ".join(_texts(notebook).split())
    for expected in (
        "○ trace-time only print",
        "◉ fused, group 1 h = ll.tanh(z)",
        "◇ merged, line 4 again = x @ w",
        "◆ constant six",
        "StagedCellWarning: `print(...)` prints once for each trace",
        "↩ written back history.append(loss)",
        "≈ compared at each run: `settings.scale`",
        "3 entries, 1 trace",
        "step: unchanged cell, cache hit on trace #1",
        "argument `settings.scale` 2.0 -> 20.0",
        "`power` would run trace #1",
        "`power` would trace: argument `exponent` 2 -> 3",
        "The cell made 2 traces:",
        "ll.Tensor(111,",
        "Gradients of the result f32[]:",
        "`loss` has no gradient for `w`",
        "the first number that is not finite comes from log",
    ):
        assert expected in said
    assert _printed(notebook) == ["tracing", "tracing"], "once for each trace of three runs"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_stored_without_outputs(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells)
