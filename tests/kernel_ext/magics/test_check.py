"""`%check` and `%hint`: right answers pass, each wrong one is told its misconception."""

from __future__ import annotations

import pytest

from limelight.errors import ArgumentError
from limelight_kernel import exercises

MENDED = "lambda p: -(p * ll.log(ll.where(p > 0, p, 1.0))).sum()"
HALF = "lambda p: -ll.where(p > 0, p * ll.log(p), 0.0).sum()"
ANSWERS = {
    "1.1 2": "✓", "1.1 1": "29 pictures", "1.1 45": "a trace for each call", "1.1 16": "two an epoch",
    "1.1 7": "shapes",
    "1.2 2": "✓", "1.2 360": "print is no part of it", "1.2 0": "Python has to run",
    "1.3 ll.Variable(1.0, name='w1')": "✓", "1.3 'w2'": "more numbers", "1.3 'loss'": "no variable",
    "1.3 4": "give one",
    "1.4 'labels', 'int64', 'int32'": "✓", "1.4 'labels', 'int32', 'int64'": "before comes", "1.4 'labels'": "run the",
    "1.4 'images', 'int64', 'int32'": "what was cast", "1.4 'labels', 'i64', 'i32'": "write them as NumPy",
    "1.5 'more', 'more'": "✓", "1.5 'fewer', 'fewer'": "in its place", "1.5 'fewer', 'more'": "The graph, too".lower(),
    "1.5 'more', 'fewer'": "the tape, too", "1.5 1": "give two words",
    "2.4 1, 1": "✓", "2.4 2, 2": "finds its trace", "2.4 1, 2": "as print is", "2.4 2, 1": "prints nothing",
    "2.4 5": "two numbers",
    "2.5 'hit', 'miss', 'miss'": "✓", "2.5 'miss', 'miss', 'miss'": "serves it", "2.5 1": "three words",
    "2.5 'hit', 'hit', 'miss'": "another shape", "2.5 'hit', 'miss', 'hit'": "its value is part",
    "2.5 'hit', 'hit', 'hit'": "one of them",
    "2.6 5, 2": "✓", "2.6 5, 1": "the first trace", "2.6 5, 5": "have varied", "2.6 1, 1": "part of the key",
    "2.6 2, 2": "as it is", "2.6 0": "two numbers",
    "2.7 '--autograph'": "✓", "2.7 ll.cond": "✓", "2.7 'x.item()'": "no value", "2.7 3": "name one",
    "2.1 3, 1": "✓", "2.1 1, 1": "writes back", "2.1 3, 3": "no part of its key", "2.1 5": "give two numbers",
    "2.2 ll.constant(2.0), ll.constant(3.0)": "✓", "2.2 2.0, 3.0": "plain Python number",
    "2.2 ll.constant(2.0), ll.constant([3.0, 3.0])": "different types", "2.2 ll.constant(2.0)": "two exponents",
    "2.2 ll.constant(2.0), ll.constant(2.0)": "not the exponents 2.0 and 3.0",
    f"2.3 {MENDED}": "✓", f"2.3 {HALF}": "still differentiated",
    "2.3 lambda p: -(p * ll.log(p)).sum()": "is NaN, not 0",
    "2.3 lambda p: p.sum()": "another function", "2.3 3": "give the function",
}  # fmt: skip


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll")
    return run


def test_each_answer_has_its_message(notebook, subtests):
    for answer, words in ANSWERS.items():
        with subtests.test(answer):
            said = repr(notebook(f"%check {answer}").value)
            assert words in said.replace("\n", " ")
            assert said.startswith("✓" if words == "✓" else "✗")


def test_every_exercise_has_right_and_wrong_answers_here():
    for name in exercises.EXERCISES:
        asked = [words for answer, words in ANSWERS.items() if answer.split()[0] == name]
        assert "✓" in asked
        assert len(asked) >= 3


def test_questions_and_hints(notebook):
    assert "1.1  45 batches" in repr(notebook("%check").value)
    assert "Answer: %check 1.1 ANSWER" in repr(notebook("%check 1.1").value)
    assert repr(notebook("%hint 1.1 --level 3").value) == exercises.hint("1.1", 3)
    assert "levels 1 to 3, got 4" in notebook("%hint 1.1 --level 4", fails=True).err
    assert "there is no exercise '9.9'" in notebook("%check 9.9 1", fails=True).err
    assert "NameError" in notebook("%check 1.1 nothing_here", fails=True).err
    with pytest.raises(ArgumentError):
        exercises.check("9.9", 1)


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_right_answers_are_what_the_engine_does(notebook):
    notebook("def network(x):\n    return ll.tanh(x @ w) + 1.0\nw = ll.Variable(ll.ones((2, 2)))\nx = ll.ones((3, 2))")
    notebook("def counts(net):\n    step = ll.function(lambda x: net(x).sum())\n    step(x)\n"
             "    with ll.GradientTape() as tape:\n        net(x)\n"
             "    return len(step.trace_cache[0].graph.nodes), len(tape.entries)")  # fmt: skip
    staged, plain = notebook("counts(ll.function(network)), counts(network)").value
    assert all(after > before for before, after in zip(staged, plain, strict=True)), "1.5"
    notebook("power = ll.function(lambda t, exponent=2: (t**exponent).mean())\npower(x)")
    hits = notebook("[power.explain(x + 1.0).hit, power.explain(x[:1]).hit, power.explain(x, exponent=3).hit]").value
    assert hits == [True, False, False], "2.5"
    notebook("relaxed = ll.function(power.python_function, reduce_retracing=True)\npower.clear_cache()")
    notebook("for n in range(1, 6):\n    power(ll.ones((n, 2))), relaxed(ll.ones((n, 2)))")
    assert notebook("len(power.trace_cache), relaxed.trace_count").value == (5, 2), "2.6"
    ran = notebook("%%stage\nif x.sum() > 0:\n    y = x", fails=True)
    assert all(words in str(ran.error) for words in ("ll.cond", "ll.where", "--autograph")), "2.7"
