"""The what-if box of a trace cache: calls are evaluated with the notebook's names, and nothing is traced."""

from __future__ import annotations

import pytest

import limelight_widgets
from limelight_widgets.live import what_if


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run(
        "import limelight as ll\nx = ll.ones((4, 2))\n@ll.function\ndef f(x, training=False):\n    return x * 2.0\nf(x)"
    )
    run("g = ll.function(lambda t: t + 1.0, name='g')\ng(x)")
    yield run
    run("%unload_ext limelight")


def asked(run, call, function="f"):
    """What the box says of a call."""
    cache = limelight_widgets.trace_cache(run(function).value)
    cache._heard("would", {"view": "v", "call": call})
    return cache.state()["what_if"]


def test_a_hit_names_its_trace_and_a_miss_says_why(notebook):
    hit = asked(notebook, "f(x, training=False)")
    assert hit["hit"]
    assert hit["trace"] == [notebook("f.id").value, 0]
    miss = asked(notebook, "f(x[:2], training=True)")
    assert not miss["hit"]
    (story,) = miss["stories"]
    assert story["title"] == "`f` would trace"
    assert {one["what"] for one in story["contrasts"]} >= {"argument `x`"}
    assert notebook("f.trace_count").value == 1, "asking traces nothing"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("f(nowhere)", "'f(nowhere)': NameError: name 'nowhere' is not defined"),
        ("f(x", "'(' was never closed"),
        ("f", "'f' is no call; write one, as in step(x[:3], 0.1)"),
        ("", "no call follows; write one, as in step(x[:3], 0.1)"),
        ("print(x)", "'print' is built in"),
        ("f(1 / 0)", "'f(1 / 0)': ZeroDivisionError: division by zero"),
        ("g(x)", "'g(x)' calls 'g', and NAME says 'f'; leave NAME out"),
    ],
)
def test_what_is_wrong_is_said_in_words(notebook, call, words):
    said = asked(notebook, call)
    assert words in said["error"]
    assert "--would" not in said["error"]


def test_a_call_that_would_raise_is_told(notebook):
    (story,) = asked(notebook, "f()")["stories"]
    assert "would raise" in story["title"]


def test_the_box_of_all_functions_takes_any_call(notebook):
    cache = limelight_widgets.trace_cache()
    cache._heard("would", {"view": "v", "call": "g(x)"})
    assert cache.state()["what_if"]["hit"]


def test_the_same_question_again_has_another_answer_if_in_the_same_words(notebook):
    """Else a page could not tell it from the answer that it has."""
    cache = limelight_widgets.trace_cache(notebook("f").value)
    answers = [cache._heard("would", {"view": "v", "call": "f(x)"}) or cache.state()["what_if"] for _ in range(2)]
    assert answers[0] != answers[1]
    assert answers[0]["stories"] == answers[1]["stories"]


def test_unloading_takes_the_answers_away(notebook, monkeypatch):
    monkeypatch.setattr(what_if, "_answerers", what_if._answerers[-1:])  # other shells of this process have theirs
    assert what_if.is_answered()
    notebook("%unload_ext limelight")
    assert not what_if.is_answered()
    assert "load_ext" in asked(notebook, "f(x)")["error"]
    notebook("%load_ext limelight")
