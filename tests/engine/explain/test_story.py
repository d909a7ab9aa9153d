"""Stories: each kind of "why?" from a small program, its parts, and its sentence with each fact once."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import linecache
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.explain.fix import Fix
from limelight.explain.story import FORMS, Contrast, Place, Story, advice_in, by_cost, fixes_in, merged

PROGRAMS: dict[str, str] = {
    "trace": "@ll.function\ndef f(x):\n    return x\nf(ll.ones((2,)))\nanswer = ll.explain.retrace(f)",
    "retrace": "@ll.function\ndef f(x):\n    return x * 2\nfor n in range(2, 14):\n    f(ll.ones((n,)))\n"
    "answer = ll.explain.retrace(f)",
    "what if": "@ll.function\ndef f(x):\n    return x * 2\nf(ll.ones((2,)))\nanswer = f.explain(ll.ones((3,)))",
    "None gradient": "x = ll.constant(2.0)\nwith ll.GradientTape() as tape:\n    tape.watch(x)\n"
    "    y = ll.stop_gradient(x * x)\nanswer = ll.explain.why_none(tape, y, x)",
    "NaN": "@ll.function\ndef f(p):\n    return ll.sum(p * ll.log(p))\n"
    "answer = ll.explain.nan(f, ll.constant([0.0, 1.0]))",
    "baked value": "settings = {'rate': 0.5}\n@ll.function\ndef f(x):\n    return x * settings['rate']\n"
    "f(ll.constant(1.0))\nsettings['rate'] = 0.25\nanswer = ll.explain.baked(f)",
    "leaked tensor": "shelf = types.SimpleNamespace(kept=[])\n@ll.function\ndef f(x):\n    shelf.kept.append(x + 1.0)\n"
    "    return x\nf(ll.constant(1.0))\nanswer = ll.explain.leaks(f)",
    "side effect": "@ll.function\ndef f(x):\n    print('tracing')\n    return x\nf(ll.constant(1.0))\n"
    "answer = ll.explain.side_effects(f)",
    "lost change": "@ll.function\ndef f(x, log):\n    log.append(1)\n    return x\nf(ll.constant(1.0), [])\n"
    "answer = ll.explain.side_effects(f)",
}
CAUSES = {
    "trace": "first call",
    "retrace": "shape",
    "what if": "shape",
    "None gradient": "stop_gradient",
    "NaN": "log",
    "baked value": "item",
    "leaked tensor": "outlived its trace",
    "side effect": "print",
    "lost change": "lost change",
}


def answer_of(program: str) -> Any:
    """The value of `answer` after a program that can be read back, as a file's can."""
    file = f"<story {abs(hash(program))}>"
    linecache.cache[file] = (len(program), None, program.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"ll": ll, "types": types}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the answer tells
        exec(compile(program, file, "exec"), scope)
    return scope["answer"]


@functools.cache
def stories(kind: str) -> list[Story]:
    answer = answer_of(PROGRAMS[kind])
    told = answer.stories if hasattr(answer, "stories") else (answer.to_story(),)
    return [one for one in told if one.kind == kind]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_each_kind_has_its_parts(kind: str) -> None:
    (story,) = stories(kind)
    assert CAUSES[kind] in story.causes
    assert story.title
    assert story.where is not None or story.places[0].role == "call"
    assert len(story.before) == len(story.after) == len(story.contrasts)
    assert json.loads(json.dumps(story.to_dict()))["kind"] == kind
    assert not hasattr(story, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        story.title = ""  # type: ignore[misc]  # that is what is tested


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_sentence_says_each_fact_once(kind: str) -> None:
    (story,) = stories(kind)
    said = str(story)
    facts = [story.title, *story.said, *story.hints, *[fix.code for fix in story.fixes]]
    facts += [f"{one.before} -> {one.after}" for one in story.contrasts if kind in ("retrace", "what if")]
    facts += [str(story.where)] if story.where is not None else [f"at {story.places[0].label}:"] * (kind != "what if")
    facts += [one.label for one in story.places if one.role == "closest"]
    facts += [story.remedy] if story.remedy else []
    facts = [story.remedy if story.remedy and fact in story.remedy else fact for fact in facts]
    facts.remove(story.title) if kind == "baked value" else None  # the sentence names both values instead
    assert {fact: said.count(fact) for fact in facts} == dict.fromkeys(facts, 1)


@pytest.mark.parametrize(("kind", "before", "after"), [
    ("retrace", "f32[12]", "f32[13]"), ("what if", "f32[2]", "f32[3]"), ("baked value", "0.5", "0.25"),
    ("NaN", "f32[2] (from 0 to 1)", "f32[2] (0, 1 infinite of 2)"),
])  # fmt: skip
def test_before_and_after(kind: str, before: str, after: str) -> None:
    (story,) = stories(kind)
    assert (story.before, story.after) == ((before,), (after,))


def test_ten_retraces_of_one_cause_are_one_story_with_a_count() -> None:
    answer = answer_of(PROGRAMS["retrace"])
    first, again = sorted(answer.stories, key=lambda story: story.count)
    assert (first.kind, again.kind, again.count) == ("trace", "retrace", 11)
    assert again.seconds == pytest.approx(sum(miss.seconds for miss in answer.records[1:]))
    assert str(again).count("11 traces for this reason (`x`, shape) cost ") == 1
    assert [story.seconds for story in by_cost(answer.stories)] == sorted(
        [story.seconds for story in answer.stories], reverse=True
    )


def test_a_thousand_differences_are_not_all_listed() -> None:
    @ll.function
    def f(values: list[Any]) -> Any:
        return values[0]

    for n in (1, 2):
        f([ll.ones((n,)) for _ in range(100)])
    (story,) = [one for one in ll.explain.retrace(f).stories if one.kind == "retrace"]
    assert (len(story.contrasts), story.unlisted) == (40, 60)
    assert ", and 97 more" in str(story)


@pytest.mark.slow  # a process of its own, since devices once in use stay
def test_copies_by_line_the_most_bytes_first() -> None:
    code = (
        "import limelight as ll\nll.config.set_virtual_devices(CPU=2)\nx = ll.ones((3, 4))\n"
        "with ll.explain.Copies() as copies:\n    for _ in range(3):\n        with ll.device('cpu:1'):\n"
        "            y = ll.tanh(x)\n    z = ll.ones(2).to('cpu:1')\ny = x.to('cpu:1')\n"
        "print([(one.times, one.nbytes, one.cause) for one in copies.records])\nprint(copies)\n"
        "print([one.before + one.after for one in copies.stories])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    records, first, second, ends = done.stdout.splitlines()
    assert ast.literal_eval(records) == [(3, 144, "operand of tanh"), (1, 8, ".to()")]
    assert first.startswith("3 copies from CPU:0 to CPU:1, 144 bytes, for: operand of tanh (")
    assert 'Instead: move it once, before the loop, with .to("CPU:1"); or make it within' in first
    assert second.startswith("a copy from CPU:0 to CPU:1, 8 bytes, for: .to() (")
    assert "Instead" not in second
    assert ast.literal_eval(ends) == [("CPU:0", "CPU:1")] * 2


@pytest.mark.parametrize(("remedy", "code", "places", "advice"), [
    ("`ll.print(x)`, at each call", ["ll.print(x)"], ["at each call"], ()),
    ("draw it outside, and pass it as an argument", [], [], ("draw it outside, and pass it as an argument",)),
    ("pass it as an argument, f(x, ll.constant(r)) (a plain number makes a trace for each value); or make it a "
     "variable, `r = ll.Variable(0.5)`, and assign to that", ["f(x, ll.constant(r))", "r = ll.Variable(0.5)"],
     ["pass it as an argument (a plain number makes a trace for each value)",
      "or make it a variable, and assign to that"], ()),
    ("pass it as an argument, f(x, n): another value then makes another trace", ["f(x, n)"],
     ["pass it as an argument: another value then makes another trace"], ()),
    ("write `v.assign(...)`", [], [], ("write `v.assign(...)`",)),
])  # fmt: skip
def test_code_in_a_remedy(remedy: str, code: list[str], places: list[str], advice: tuple[str, ...]) -> None:
    assert [fix.code for fix in fixes_in(remedy)] == code
    assert [fix.place for fix in fixes_in(remedy)] == places
    assert advice_in(remedy) == advice


def test_a_fix_that_is_part_of_something_is_no_cell() -> None:
    for code in ("return x", "@ll.function(autograph=True)", '%%stage f -s "x=1"', "if x:"):
        assert Fix(code, "", ()).as_cell == ""
        assert Fix(code, "", (), "whole = 1").as_cell == "whole = 1"
    assert Fix("x = 1", "", ()).as_cell == "x = 1"


def test_the_same_said_of_several_lines_is_one_story() -> None:
    one = Story("side effect", "`print(...)` prints", ("print",), remedy="do it outside")
    (both,) = merged([one, dataclasses.replace(one, places=(Place("line", "a.py line 3"),))])
    assert both.count == 2


def test_a_story_is_reworded_in_all_its_sentences() -> None:
    story = Story("side effect", "old", said=("old",), remedy="`old(1)`", fixes=(Fix("old(1)", "", ()),))
    new = story.reworded(lambda text: text.replace("old", "new"))
    assert (new.title, new.said, new.fixes[0].code) == ("new", ("new",), "new(1)")


TEXT = st.text(max_size=20)


@given(
    st.sampled_from(sorted(FORMS)), TEXT, st.lists(TEXT, max_size=3), st.builds(Contrast, TEXT, TEXT, TEXT, TEXT),
    st.lists(st.builds(Fix, TEXT, TEXT, st.just(())), max_size=2), TEXT,
)  # fmt: skip
def test_any_parts_make_a_sentence_and_json(
    kind: str, title: str, said: list[str], contrast: Contrast, fixes: list[Fix], remedy: str
) -> None:
    place = (Place("call", "here"),)
    story = Story(kind, title, tuple(said), tuple(said), (contrast,), fixes=tuple(fixes), remedy=remedy, places=place)
    assert title in str(story) or kind in ("baked value", "impurity")  # told by what was baked, and what differs
    told = json.loads(json.dumps(story.to_dict()))
    assert [one["what"] for one in told["contrasts"]] == [contrast.what]
    form: Callable[[Story], str] = FORMS[kind]
    assert str(story) == form(story)
