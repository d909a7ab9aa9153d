"""Numbers that are not finite, from the gradient's table to the line as it should be."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([0.0, 1.0, 4.0])")
    return run


def flat(text):
    return " ".join(text.split())


def test_a_gradient_that_is_not_finite_leads_to_a_line_that_is(notebook):
    cell = "%%stage step -g\ny = ll.where(x > 0,\n    ll.sqrt(x), 0.0)\nll.sum(y)"
    ran = notebook(cell)
    assert "1 of 3 not finite" in ran.text
    assert "what to write: %explain --grad --nan step()" in flat(ran.text)
    assert "<p>Not all are finite; to see" in ran.shown[0].data["text/html"]
    assert "all numbers of `step` are finite" in repr(notebook("%explain --nan step()").value)
    said = repr(notebook("%explain --grad --nan step()").value)
    assert repr(notebook("%explain --nan --grad step()").value) == said
    assert repr(notebook("%explain --grad --nan step").value) == said
    assert repr(notebook("%explain --nan step() -g").value) == said
    assert "comes from divide, in the gradient of sqrt (In[3] line 3: ll.sqrt(x), 0.0))" in said
    fix = said.rpartition("Fix: ")[2]
    assert fix == "y = ll.where(x > 0, ll.sqrt(ll.where(x > 0, x, 1)), 0.0)"
    mended = notebook(f"%%stage step -g\n{fix}\nll.sum(y)")
    assert "norm 0.5" in mended.text
    assert "Not all are finite" not in mended.text


def test_a_cell_without_a_name_is_to_get_one(notebook):
    text = flat(notebook("%%stage -g\nll.sum(ll.sqrt(x))").text)
    assert "what to write: %%stage NAME, and then %explain --grad --nan NAME()" in text


def test_a_tape_inside_the_cell_needs_no_flag(notebook):
    notebook(
        "%%stage step\nwith ll.GradientTape() as tape:\n    tape.watch(x)\n    y = ll.sum(ll.log(x))\n"
        "g = tape.gradient(y, x)"
    )
    said = repr(notebook("%explain --nan step()").value)
    assert said.startswith("`step`: the first number that is not finite comes from log (In[3] line 4")
    assert said.endswith("Fix: y = ll.sum(ll.where(x > 0, ll.log(ll.where(x > 0, x, 1)), 0))")


def test_complex_gradients_have_a_norm_and_need_no_hunt(notebook):
    notebook("z = ll.constant([3 + 4j, 1j])")
    text = notebook("%%stage -g\nll.sum(ll.abs(z))").text
    assert "norm 1.414" in text
    assert "Not all" not in text
