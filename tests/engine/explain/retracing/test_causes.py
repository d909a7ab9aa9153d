"""Every cause of a trace: what is said of it, before and after the call, and that the printed fix spares it."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import pytest
from retracing_causes import REFUSED, TRACED, UNTRACED, Program

import limelight as ll
from limelight.explain.retracing.causes import ADVICE, Cause
from limelight.explain.retracing.sentence import duration

PAGE = Path(__file__).parents[4] / "docs" / "retracing.md"


def shown(said: str, record: Any) -> str:
    """`said` with the places and times of this very run."""
    file = re.findall(r"program\d+\.py", record.where)[0]
    return said.replace("{file}", file).replace("{here}", record.where).replace("{cost}", duration(record.seconds or 0))


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.parametrize("case", TRACED.values(), ids=TRACED.keys())
def test_a_trace_is_explained_and_its_fix_spares_it(program: Any, case: Program) -> None:
    p = program(case.text)
    assert p.f.trace_count == case.traces
    record = p.miss
    assert shown(case.said, record) in str(record)
    assert "unavailable" not in str(record)
    assert bool(record.fix) == (case.mended is not None)
    if case.mended is not None:
        assert program(p.mended()).f.trace_count == case.mended < case.traces


def before_the_last_call(text: str) -> tuple[str, str]:
    """A program up to its last call of `f`, and that call as a question."""
    start, call = text.rsplit("\n", 1)
    return start, call.replace("f(", "answer = f.explain(", 1)


@pytest.mark.parametrize("case", UNTRACED.values(), ids=UNTRACED.keys())
def test_what_brings_no_trace_is_said_where_one_asks(program: Any, case: Program) -> None:
    assert program(case.text).f.trace_count == case.traces
    p = program("\n".join(before_the_last_call(case.text)))
    answer = p.names["answer"]
    assert case.said in str(answer)
    assert repr(answer) == str(answer)
    assert p.f.trace_count == case.traces
    assert answer.hit == (case.traces > 0)


@pytest.mark.parametrize("name", ["changed global", "changed closure", "mutated attribute"])
def test_what_no_trace_sees_is_told_with_the_traces_as_well(program: Any, name: str) -> None:
    p = program(UNTRACED[name].text)
    (value,) = ll.explain.retrace(p.f).unseen
    assert f"Changed since, without a trace: {value}" in str(ll.explain.retrace(p.f))
    assert value.fix in str(value)
    assert ll.explain.retrace(p.f).table().endswith(f"\nchanged since, without a trace: {value.name}")


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_a_call_would_raise_is_predicted_in_its_words(program: Any, case: Program) -> None:
    start, question = before_the_last_call(case.text)
    p = program(f"{start}\n{question}")
    answer = p.names["answer"]
    assert case.said in str(answer)
    assert str(answer).startswith("`f` would raise ")
    call = question.replace("answer = f.explain(", "f(")
    with pytest.raises(Exception) as caught:  # which one is what is predicted
        exec(call, p.names)
    kind, _, words = answer.error.partition(": ")
    assert type(caught.value).__name__ == kind
    assert words.split(" (")[0].split(", and the call")[0] in str(caught.value)
    assert p.f.trace_count == case.traces


def test_a_cell_that_runs_again_and_one_that_was_edited() -> None:
    names: dict[str, Any] = {"ll": ll, "__name__": "__main__"}
    cell = "@ll.function\ndef f(x):\n    return x + 1.0\nf(ll.ones((2,)))"
    stories = []
    for file, text in (
        ("cell1", cell),
        ("cell1", cell),
        ("cell2", f"# moved\n{cell}"),
        ("cell3", cell.replace("1.0", "2.0")),
    ):
        exec(compile(text, file, "exec"), names)
        stories.append(ll.explain.retrace(names["f"]).records[-1])
    assert [story.cause for story in stories] == [Cause.FIRST, Cause.RERUN, Cause.RERUN, Cause.EDITED]
    assert "first call since it was defined again, unchanged (before: cell1 line 1)" in str(stories[2])
    assert "first call since it was defined again, with other code (before: cell2 line 2)" in str(stories[3])


def test_two_lambdas_of_one_line_are_two_functions():
    first, second = ll.function(lambda x: x + 1.0), ll.function(lambda x: x + 2.0)
    first(ll.ones(())), second(ll.ones(()))
    assert "first call. " in str(ll.explain.retrace(second).records[0])


def test_a_cell_that_runs_again_and_again_brings_no_warning() -> None:
    names: dict[str, Any] = {"ll": ll, "__name__": "__main__"}
    for _ in range(8):
        exec(compile("f = ll.function(lambda x: x)\nf(ll.ones((2,)))", "cell", "exec"), names)


def test_no_cause_goes_without_words() -> None:
    of_the_call = {Cause.FIRST, Cause.REMADE, Cause.RERUN, Cause.EDITED, Cause.CLEARED, Cause.EVICTED, Cause.DTYPE}
    assert set(Cause) == set(ADVICE) | of_the_call
    assert len(TRACED) + len(UNTRACED) + len(REFUSED) >= 24


def test_the_page_has_a_row_for_each_cause() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rest = ["definition run again", "code edited"]
    assert [row for row in rows if row != "cause"] == [*TRACED, *rest, *UNTRACED, *REFUSED]


def test_the_example_on_the_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setitem(linecache.cache, "example.py", (len(code), None, code.splitlines(keepends=True), "example.py"))
    exec(compile(code, "example.py", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.split() == said.split()
