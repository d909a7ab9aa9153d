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
