"""Marks of whole cells: gradients, control flow, functions that the graph calls."""

from __future__ import annotations

import pytest

import limelight


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nw = ll.ones([2, 1])\nv = ll.Variable([3.0, 4.0])")
    return run


def marks(notebook, cell):
    notebook(cell.replace("%%stage", "%%stage -o ran", 1))
    return [line.words for line in notebook("ran.lines").value]


def flat(text):
    return " ".join(text.split())


TAPE = "with ll.GradientTape() as tape:\n    tape.watch(x)\n    "


def test_a_gradient_that_literals_decide_is_constant_and_one_that_nothing_uses_dead(notebook):
    only = ["trace-time only", "trace-time only"]
    assert marks(notebook, f"%%stage\n{TAPE}y = ll.sum(x * 3)\nz = tape.gradient(y, x)") == [
        *only,
        "staged",
        "constant",
    ]
    dropped = marks(notebook, f"%%stage\n{TAPE}y = x * 2.0\nz = tape.gradient(y, x)\nz = y = 3")
    assert dropped == [*only, "dead", "dead", "trace-time only"]
    assert marks(notebook, f"%%stage\n{TAPE}y = x * 1.0\nz = tape.gradient(y, x)") == [*only, "merged", "constant"]


def test_literals_are_staged_where_nothing_folds_them(notebook):
    with limelight.config.optimiser(level=0):
        assert marks(notebook, "%%stage\nc = ll.ones([2]) * 2\ny = x + c") == ["staged", "staged"]


def test_of_a_staged_loop_python_runs_what_leaves_no_op(notebook):
    found = marks(
        notebook,
        "%%stage --autograph\nz = x\nwhile ll.sum(z) < 100:\n    with ll.GradientTape() as tape:\n"
        "        tape.watch(z)\n        y = ll.sum(z * z)\n    g = tape.gradient(y, z)\n    old = z\n    print(1)\n"
        "    z = z + g",
    )
    once = "trace-time only"
    # The cell binds `y` and `g` as the last round leaves them, so no kernel may keep them to itself.
    assert found == [once, "staged", once, once, "staged", "staged", "staged", once, "staged"]


def test_a_loop_of_python_is_not_staged_by_what_its_body_does(notebook):
    cell = "%%stage --autograph\nk = 0\ny = x\nwhile k < 2:\n    if ll.sum(y) > 0:\n        y = y * 2\n    k = k + 1"
    assert marks(notebook, cell) == [*["trace-time only"] * 3, "staged", "staged", "trace-time only"]


def test_lines_of_functions_that_the_graph_calls_are_dead_or_fused_too(notebook):
    inner = "@ll.function\ndef inner(t):\n    u = ll.exp(t)\n    return ll.tanh(t) * 2"
    found = marks(notebook, f"%%stage\n{inner}\ny = inner(x) + 1\nz = inner(y)")
    assert (found[2], found[3]) == ("dead", "fused")


def test_each_iteration_may_have_a_tape_of_its_own(notebook):
    notebook(
        "%%stage --autograph\nz = x\nfor _ in ll.arange(3):\n    with ll.GradientTape() as tape:\n"
        "        tape.watch(z)\n        y = ll.sum(z * z)\n    z = z + tape.gradient(y, z)"
    )
    assert notebook("z.numpy().tolist()").value == [[27.0, 54.0]]


# --- Gradients that are None


def test_a_gradient_that_is_none_says_why_at_its_line(notebook):
    cell = "%%stage -o ran\nwith ll.GradientTape() as tape:\n    y = ll.sum(x @ w)\nz = tape.gradient(y, x)"
    for text in (notebook(cell).text, notebook(cell).text):  # a cache hit says it again
        assert "gradient: `y` has no gradient for `x`: `x` was never watched" in flat(text)
        assert "Fix: tape.watch(x)" in text
    assert [bool(line.remarks) for line in notebook("ran.lines").value] == [False, False, True]
    notebook(cell.replace("    y", "    tape.watch(x)\n    y"))
    assert notebook("ran.surprises").value == ()


def test_only_the_sources_without_a_gradient_are_told(notebook):
    text = notebook(f"%%stage\n{TAPE}y = ll.sum(x) * 2\nz = tape.gradient(y, [x, w])").text
    assert "`y` has no gradient for `w`" in text
    assert "for `x`" not in text


def test_a_line_that_cuts_the_gradient_is_named_and_mended(notebook):
    text = flat(notebook(f"%%stage\n{TAPE}y = ll.stop_gradient(x * 3)\nz = tape.gradient(y, x)").text)
    assert "it ends at stop_gradient" in text
    assert "line 4: y = ll.stop_gradient(x * 3)). Fix: y = x * 3" in text


def test_a_tape_of_another_cell_knows_nothing_of_the_graph(notebook):
    notebook("with ll.GradientTape(persistent=True) as tape:\n    y = ll.sum(v * v)")
    text = str(notebook("%%stage\nz = tape.gradient(y, v)", fails=True).error)
    assert "it has never seen the argument `y`" in text
    assert "record in the same function or cell" in text


def test_a_model_without_gradients_is_told_in_a_few_sentences(notebook):
    notebook("many = [ll.constant(float(i)) for i in range(20)]")
    text = notebook(f"%%stage\n{TAPE}y = ll.sum(x)\nz = tape.gradient(y, many)").text
    assert text.count("has no gradient for") == 4
    assert "`many[3]` was never watched" in flat(text)
    notebook("net = ll.nn.Dense(1)\nother = ll.nn.Dense(1)\nnet(x), other(x)")
    text = notebook("%%stage\nwith ll.GradientTape() as tape:\n    y = net(x)\ntape.gradient(y, other.kernel)").text
    assert "has no gradient for `other.kernel`" in flat(text)


def test_a_helper_that_asks_names_its_line(notebook):
    notebook("def slope(a):\n    with ll.GradientTape() as tape:\n        b = a * 2\n    return tape.gradient(b, a)")
    text = flat(notebook("%%stage\nz = slope(x)").text)
    assert "2 ✕ dead z = slope(x) ⚠ gradient: `b` has no gradient for `a`" in text
