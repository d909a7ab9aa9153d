"""Answers of the magics: cards in a notebook, text wrapped at words in a terminal, each fact once."""

from __future__ import annotations

import re

import pytest

from limelight_kernel.magics.magic import Cards, text_width

pytestmark = [
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),  # which the cards tell of
    pytest.mark.filterwarnings("ignore::limelight.errors.LostChangeWarning"),
    pytest.mark.filterwarnings("ignore::limelight.errors.HostRandomnessWarning"),
]

HOSTILE = "<script>alert('x')</script>"

PROGRAM = """\
import numpy as np, time
class Settings:
    rate = 0.5
settings = Settings()
@ll.function
def step(x, mode="plain"):
    print("tracing")
    noise = np.random.normal(size=2)
    return x * settings.rate + time.time() + ll.constant(noise.astype("float32"))
for n in range(2, 12):
    step(ll.ones((n, 2)))
settings.rate = 0.25"""
LINES = {
    "explain": "%explain step",
    "why": "%trace_cache step --why",
    "would": "%trace_cache --would step(ll.ones((3, 3)), mode=hostile)",
    "hit": "%trace_cache --would step(ll.ones((3, 2)))",
    "nan": "%explain --nan ratio(ll.constant([0.0, 1.0]))",
    "none": "%tape --why y x",
    "leaks": "%explain leaky --leaks",
}


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run(f"import limelight as ll\nhostile = {HOSTILE!r}")
    run(PROGRAM)
    run("@ll.function\ndef ratio(p):\n    return ll.sum(p * ll.log(p))  # <b>&amp;</b>")
    run("kept = []\n@ll.function\ndef leaky(x):\n    kept.append(x + 1)\n    return x\nleaky(ll.ones(2))")
    run("x = ll.constant(2.0)\nwith ll.GradientTape() as tape:\n    tape.watch(x)\n    y = ll.stop_gradient(x * x)")
    return run


def shown(notebook, line):
    """What a front end is given."""
    return notebook(line).value._repr_mimebundle_()


@pytest.mark.parametrize("name", LINES)
def test_every_answer_has_text_of_eighty_columns_and_cards(notebook, name):
    bundle = shown(notebook, LINES[name])
    assert set(bundle) == {"text/plain", "text/html"}
    assert max(map(len, bundle["text/plain"].splitlines())) <= 80
    assert "<script" not in bundle["text/html"]
    assert len(bundle["text/html"]) < 50_000
    words = re.sub(r"\s+", "", bundle["text/plain"])
    assert words == re.sub(r"\s+", "", repr(notebook(LINES[name]).value)), "wrapping changes blanks alone"


def test_names_and_reprs_are_escaped(notebook):
    html = shown(notebook, LINES["would"])["text/html"]
    assert "&lt;script&gt;" in html
    assert "&amp;amp;" in shown(notebook, LINES["nan"])["text/html"]


@pytest.mark.parametrize("text", ["lines", "with -o"])
def test_each_fact_is_said_once(notebook, text):
    said = repr(notebook(f"%explain step{' -o kept_answer' if text == 'with -o' else ''}").value)
    for fact in ("`np.random.normal(...)` draws", "`time.time(...)` is read", "`settings.rate` (attribute) was 0.5",
                 "`print(...)` prints once", "traced again"):  # fmt: skip
        assert said.count(fact) == 1, fact
    assert "Drawn or read while tracing" not in said


def test_ten_traces_of_one_cause_are_one_card_with_a_count(notebook):
    html = shown(notebook, "%trace_cache step --why")["text/html"]
    assert html.count("traced again") == 1
    assert "9 traces for this reason (<code>x</code>, shape) cost " in html
    assert html.count("<strong>Fix</strong>") == 1


def test_a_fix_is_inserted_as_a_cell_that_runs_and_ends_the_retracing(notebook):
    answer = notebook("%trace_cache step --why").value
    code = next(fix["cell"] for story in answer._view().state()["stories"] for fix in story["fixes"])
    decorator, definition = code.splitlines()[:2]
    assert decorator.startswith("@ll.function(input_signature=")
    assert definition == 'def step(x, mode="plain"):'
    notebook(code)
    notebook("for n in (3, 4, 5):\n    step(ll.ones((n, 2)))")
    assert notebook("step.trace_count").value == 1


def test_the_fix_of_a_staged_cell_brings_its_body(notebook):
    notebook("%%stage -q double\nz = x + x")
    notebook("for x in (ll.ones((2,)), ll.ones((3,)), ll.ones((4,))):\n    double()")
    stories = notebook("%explain double").value._view().state()["stories"]
    cells = [fix["cell"] for story in stories for fix in story["fixes"]]
    assert any(cell.endswith("\nz = x + x") and cell.startswith("%%stage double -s ") for cell in cells)


def test_side_effects_and_baked_values_have_cards_of_their_own_behind_the_traces(notebook):
    notebook("seen = []; rate = 0.5\n@ll.function\ndef noisy(x):\n    seen.append(1)\n    return x * rate")
    notebook("for n in (2, 3):\n    noisy(ll.ones((n,)))")
    state = notebook("%explain noisy").value._view().state()
    assert [story["kind"] for story in state["stories"]][2:] == ["side effect", "baked value"]
    assert state["stories"][-1]["title"] == "`rate` is a constant of the trace"
    assert state["stories"][-1]["fixes"] == []
    assert state["notes"] == []


def test_an_answer_keeps_its_record_and_has_the_forms_of_a_view(notebook):
    assert notebook("a = %trace_cache step --why\nlen(a.view.records)").value == 10
    assert notebook("%explain step --text").value.view.view.retrace.function == "step"
    assert type(notebook("%explain step --static").value).__name__ == "Figure"
    assert set(notebook("%explain step").value.to_dict()) == {"retrace", "side_effects", "baked"}
    assert notebook("%tape --why y x").value.to_dict()["stories"][0]["kind"] == "None gradient"


def test_the_text_is_as_wide_as_the_terminal_and_breaks_no_code(notebook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert text_width() == 50
    answer = notebook("%trace_cache step --why").value
    lines = answer._repr_mimebundle_()["text/plain"].splitlines()
    code = [fix["code"] for story in answer._view().state()["stories"] for fix in story["fixes"]]
    assert all(len(line) <= 50 or any(one in line for one in code) for line in lines)
    assert any(code[0] in line for line in lines)
    monkeypatch.setenv("COLUMNS", "120")
    assert max(map(len, Cards(answer.view)._repr_mimebundle_()["text/plain"].splitlines())) > 80


def test_plain_answers_are_wrapped_where_they_are_displayed(notebook, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shell = notebook("get_ipython()").value
    answer = notebook("%explain --pure step(ll.ones((2, 2)))").value
    text = shell.display_formatter.format(answer)[0]["text/plain"]
    assert max(map(len, text.splitlines())) <= 60
    assert text.split() == repr(answer).split()


def test_copies_have_cards_those_that_took_longest_first(notebook):
    if "CPU:1" not in [device.short for device in notebook("ll.list_devices()").value]:
        notebook("ll.config.set_virtual_devices(CPU=2)")
    notebook("for n in range(3):\n    with ll.device('cpu:1'):\n        y = ll.ones((64,)).to('cpu:0') + 1.0")
    answer = notebook("%devices --copies").value
    stories = answer.to_dict()["stories"]
    assert [story["kind"] for story in stories] == ["copy"] * len(stories)
    assert stories
    assert [story["seconds"] for story in stories] == sorted((s["seconds"] for s in stories), reverse=True)
    assert any(story["count"] >= 3 and story["cost"].split()[-1] in ("µs", "ms", "s") for story in stories)
    html = answer._repr_mimebundle_()["text/html"]
    assert "3 copies" in html
    assert "from CPU:" in html
    assert ".to(" in html


def test_a_lost_change_has_a_card(notebook):
    notebook("@ll.function\ndef keeps(x, log):\n    log.append(1)\n    return x * 2.0\nkeeps(ll.ones(2), [])")
    answer = notebook("%explain keeps").value
    assert "lost change" in {story.kind for story in answer.view.stories}
    assert "lost change" in answer._repr_mimebundle_()["text/html"]


def test_what_differs_between_two_traces_has_a_card(notebook):
    notebook("import itertools\nnumbers = itertools.count()")
    notebook("@ll.function\ndef counts(x):\n    return x + float(next(numbers))\ncounts(ll.ones(2))")
    answer = notebook("%explain --pure counts(ll.ones(2))").value
    kinds = [story["kind"] for story in answer.to_dict()["stories"]]
    assert kinds == ["impurity", "side effect"], "what differs, and what is behind it"
    (contrast,) = answer.to_dict()["stories"][0]["contrasts"]
    assert (contrast["before"], contrast["after"]) == ("1.0", "2.0")
    html = answer._repr_mimebundle_()["text/html"]
    assert "depends on when it was traced" in html
    notebook("@ll.function\ndef steady(x):\n    return x * 2.0")
    assert "traced twice alike" in notebook("%explain --pure steady(ll.ones(2))").value._repr_mimebundle_()["text/html"]
