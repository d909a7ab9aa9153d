"""`%tape` about calls, `%%tape` about cells."""

from __future__ import annotations

import pytest

import limelight as ll


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nw = ll.Variable([[1.0], [2.0]], name='w')")
    run("def loss_of(x):\n    return ll.tanh(x @ w).sum()")
    return run


def test_the_gradient_of_a_call_is_checked_source_by_source(notebook):
    said = repr(notebook("%tape --check loss_of(x)").value)
    assert "agrees with central differences" in said
    assert "`x` f32[1,2]: max relative error" in said
    assert "`w` f32[2,1]: max relative error" in said


def test_a_cell_is_checked_and_neither_run_nor_assigned(notebook):
    notebook("kept = 1")
    ran = notebook("%%tape --check\nkept = ll.tanh(x @ w)\nkept.sum()")
    assert "agrees with central differences" in repr(ran.value)
    assert notebook("kept").value == 1


def test_flow_and_recompute_are_tables_and_keep_their_answers(notebook):
    table = notebook("%tape --flow loss_of(x)").value
    assert "on its way back: 3 ops" in table.text.replace("\n", " ")
    assert "<img" in table.html
    notebook("%%tape -o kept --recompute\n(ll.tanh(x @ w) ** 2).sum()")
    assert [record.op for record in notebook("kept").value.records] == ["tanh"]
    assert "dropping this and recomputing" in repr(
        notebook("%%tape --text --recompute\n(ll.tanh(x @ w) ** 2).sum()").value
    )


def test_a_cell_is_recorded_and_its_tape_kept_under_its_name(notebook):
    ran = notebook("%%tape recording --watch x --persistent\ny = (x * x).sum()\n'done'")
    assert ran.value == "done"
    assert "Gradient tape: 2 entries" in ran.text
    assert "In[4]:2" in ran.text, "lines are those of the cell, the magic's own counted"
    assert notebook("recording.gradient(y, x).tolist()").value == [[2.0, 4.0]]
    assert notebook("recording.gradient(y, x).tolist()").value == [[2.0, 4.0]]


def test_nested_tapes_are_nested_and_each_is_shown(notebook):
    ran = notebook("%%tape --order 2 -w x -o tapes\ny = (x * x * x).sum()")
    assert len(ran.shown) == 2
    outer, inner = notebook("tapes").value
    assert len(inner.entries) == len(outer.entries) == 3


def test_an_error_in_a_recorded_cell_is_at_its_line_and_no_tape_is_left_open(notebook):
    ran = notebook("%%tape recording\ny = w * 2.0\n1 / 0", fails=True)
    assert "line 3" in ran.out + ran.err
    assert notebook("from limelight.core import dispatch; len(dispatch.stack())").value == 1
    assert "recording" not in notebook("sorted(k for k in globals() if k == 'recording')").value


def test_a_rule_by_its_op(notebook):
    notebook("with ll.GradientTape() as tape:\n    y = ll.tanh(w)")
    assert "tanh: x̄ = ȳ" in repr(notebook("%tape --rule tanh").value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%tape --check x", "'x' is no call"),
        ("%tape --check loss_of(q)", "name 'q' is not defined"),
        ("%tape --check loss_off(x)", "name 'loss_off' is not defined"),
        ("%tape --watch x", "%tape: -w is for a cell; write %%tape -w"),
        ("%%tape --saved\n1", "%%tape: --saved is for no cell; write %tape --saved"),
        ("%%tape --flow loss_of(x)\n1", "leave the call out"),
        ("%%tape --order 0\n1", "0 is too few"),
        ("%%tape 1a\n1", "not a name that Python can bind"),
        ("with ll.GradientTape() as t:\n    w * 2.0\n%tape --rule tnah", "no record of 'tnah'"),
    ],
)
def test_usage_errors_are_one_line(notebook, line, words):
    ran = notebook(line, fails=True)
    assert ran.err.startswith("UsageError: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_the_way_from_a_target_to_its_sources(run):
    run("%load_ext limelight")
    run(
        "import limelight as ll\na, b = ll.constant(2.0), ll.constant(3.0)\n"
        "with ll.GradientTape() as tape:\n    tape.watch([a, b])\n    y = a * b\n    z = ll.sin(b)\n"
        "    loss = ll.exp(y)"
    )
    assert [one.op for one in run("%tape --of loss --wrt a -q -o path\npath").value.entries] == ["multiply", "exp"]
    assert "2 of 3 entries lead to the target" in repr(run("%tape --of loss --text").value)
    assert "none of 3 entries" in repr(run("%tape --of z --wrt a --text").value)
    assert "<img" in run("%tape --of loss").value.html
    assert "of which target?" in run("%tape --wrt a", fails=True).err
    assert "must be a tensor" in run("%tape --of ll", fails=True).err
    run("tape.gradient(loss, a)")
    assert "ask before gradient()" in run("%tape --of loss", fails=True).err


def test_the_tolerance_of_a_check(run):
    run("%load_ext limelight")
    run("import limelight as ll\nf = ll.function(lambda x: ll.sin(x).sum())\nx = ll.ones((2,))")
    assert run("%tape --tol 1e-2 -q -o told --check f(x)\ntold").value.tolerance == 1e-2
    assert "it goes before --check" in run("%tape --tol 1e-2", fails=True).err


def test_a_source_has_the_name_that_was_written(notebook):
    notebook("P = {'W': ll.Variable([1.0])}\nwith ll.GradientTape() as tape:\n    y = ll.constant(1.0) * 2.0")
    assert "for `P['W']`" in repr(notebook("%tape --why y P['W']").value)


def test_without_a_name_the_tape_that_saw_the_target_answers(notebook):
    notebook("v, w = ll.Variable([1.0]), ll.Variable([2.0])")
    notebook("with ll.GradientTape() as first:\n    y = v * 3.0")
    notebook("with ll.GradientTape() as second:\n    z = w * 3.0")
    assert "every op from `v` to `y` was recorded" in repr(notebook("%tape --why y v").value)
    assert "multiply" in repr(notebook("%tape --of y").value)
    assert "`y` was computed on `first`, not on `second`" in repr(notebook("%tape second --why y v").value)


def test_a_warning_of_what_is_watched_points_at_the_cell(notebook):
    notebook("ids = ll.constant([1, 2])")
    with pytest.warns(ll.errors.LostGradientWarning, match="watching an int32 tensor has no effect") as caught:
        notebook("%%tape --watch ids\ny = w * 2.0")
    assert "limelight_kernel" not in caught[0].filename
    assert caught[0].lineno == 1
