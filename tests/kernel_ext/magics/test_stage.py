"""`%%stage` in a real shell: what goes in, what comes out, what is kept."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    """A notebook with the extension, a batch, a variable and a helper."""
    run("%load_ext limelight")
    run("import numpy as np\nimport limelight as ll")
    run("x = ll.constant([[1.0, 2.0], [3.0, 4.0]])\nw = ll.Variable([[1.0], [1.0]], name='w')\nscale = 2.0")
    run("def helper(t):\n    return t * scale")
    return run


def value(run, expression):
    return run(expression).value


def test_names_come_in_and_go_out(notebook):
    ran = notebook("%%stage\ny = x @ w\nn = 3\ny + 1")
    assert ran.value.numpy().tolist() == [[4.0], [8.0]]
    assert value(notebook, "y.numpy().tolist(), n") == ([[3.0], [7.0]], 3)
    assert value(notebook, "type(y) is ll.Tensor")
    assert value(notebook, "w.numpy().tolist()") == [[1.0], [1.0]]


def test_a_staged_cell_knows_the_names_of_its_graphs_outputs(notebook):
    notebook("%%stage step\ny = [x @ w, 3]\nn = 3\nx + 1")
    assert value(notebook, "step.output_names(step.trace_cache[0])") == ["y[0]", "result"]


def test_the_result_is_the_cells_value(notebook):
    notebook("%%stage\nx + 1")
    assert value(notebook, "_.numpy()[0, 0]") == 2.0
    assert notebook("%%stage\nx + 1;").value is None
    assert notebook("%%stage\ny = x").value is None


def test_the_second_run_of_a_cell_is_a_hit_and_says_so(notebook):
    first = notebook("%%stage step\ny = x @ w")
    second = notebook("%%stage step\ny = x @ w")
    assert "step: traced (" in first.text
    assert "step: unchanged cell, cache hit on trace #1 (used 2 times)" in second.text.splitlines()[0]
    assert value(notebook, "step.trace_count") == 1


def test_new_values_hit_and_are_used(notebook):
    notebook("%%stage step\ny = x @ w")
    notebook("x = x * 10\nw.assign([[0.0], [1.0]])")
    assert "cache hit" in notebook("%%stage step\ny = x @ w").text
    assert value(notebook, "y.numpy().tolist()") == [[20.0], [40.0]]


def test_a_new_shape_is_traced_and_the_reason_named(notebook):
    notebook("%%stage step\ny = x @ w")
    notebook("x = ll.constant([[1.0, 2.0]])")
    said = notebook("%%stage step\ny = x @ w").text
    assert "`x`" in said
    assert "f32[2,2]" in said
    assert "f32[1,2]" in said


def test_python_numbers_are_part_of_the_key(notebook):
    notebook("lr = 0.5")
    notebook("%%stage step\ny = x * lr")
    notebook("lr = 0.25")
    said = notebook("%%stage step\ny = x * lr").text
    assert "`lr`" in said
    assert "0.25" in said
    assert value(notebook, "y.numpy()[0, 0]") == 0.25


def test_a_redefined_helper_is_traced_anew_and_named(notebook):
    notebook("%%stage step\ny = helper(x)")
    assert "cache hit" in notebook("%%stage step\ny = helper(x)").text
    notebook("def helper(t):\n    return t * 100")
    said = notebook("%%stage step\ny = helper(x)").text
    assert "cache hit" not in said
    assert "`helper`" in said
    assert value(notebook, "y.numpy()[0, 0]") == 100.0


def test_what_a_helper_reads_counts_as_read_by_the_cell(notebook):
    notebook("%%stage step\ny = helper(x)")
    notebook("scale = 5.0")
    said = " ".join(notebook("%%stage step\ny = helper(x)").text.split())
    assert "`scale`" in said
    assert "`scale` is read by `helper`" in said
    assert value(notebook, "y.numpy()[0, 0]") == 5.0


def test_a_tensor_that_a_helper_reads_is_an_input(notebook):
    notebook("bias = ll.constant(1.0)\ndef affine(t):\n    return t + bias")
    notebook("%%stage step\ny = affine(x)")
    notebook("bias = ll.constant(7.0)")
    assert "cache hit" in notebook("%%stage step\ny = affine(x)").text
    assert value(notebook, "y.numpy()[0, 0]") == 8.0


def test_a_helper_sees_what_the_cell_has_assigned(notebook):
    notebook("%%stage\nscale = 10.0\ny = helper(x)")
    assert value(notebook, "y.numpy()[0, 0], scale") == (10.0, 10.0)


def test_names_that_are_read_and_written(notebook):
    for _ in range(2):
        notebook("%%stage grow\nx = x + 1\nx *= 2")
    assert value(notebook, "x.numpy()[0, 0]") == 10.0
    assert value(notebook, "grow.trace_count") == 1


def test_variables_go_by_reference(notebook):
    notebook("%%stage step\nw.assign_add(x @ w)")
    before = value(notebook, "w.numpy()[0, 0]")
    notebook("%%stage step\nw.assign_add(x @ w)")
    assert value(notebook, "w.numpy()[0, 0]") > before == 4.0
    notebook("w = ll.Variable([[0.0], [0.0]])")
    assert "cache hit" in notebook("%%stage step\nw.assign_add(x @ w)").text
    assert value(notebook, "w.numpy()[0, 0]") == 0.0


def test_a_tape_in_a_cell_is_staged(notebook):
    ran = notebook(
        "%%stage train\n"
        "with ll.GradientTape() as tape:\n"
        "    loss = ll.sum(helper(x @ w))\n"
        "grad = tape.gradient(loss, w)\n"
        "w.assign_sub(0.1 * grad)\n"
        "loss\n"
    )
    assert ran.value.item() == 20.0
    assert value(notebook, "grad.numpy().tolist()") == [[8.0], [12.0]]
    rows = ran.text.splitlines()
    assert any("● staged" in text and "loss = ll.sum" in text for text in rows)
    assert any("○ trace-time only" in text and "with ll.GradientTape" in text for text in rows)


def test_numpy_arrays_go_by_type(notebook):
    notebook("a = np.ones((2, 2), 'float32')")
    notebook("%%stage step\ny = x + a")
    notebook("a = a * 5")
    assert "cache hit" in notebook("%%stage step\ny = x + a").text
    assert value(notebook, "y.numpy()[0, 0]") == 6.0


def test_containers_of_tensors_go_in_and_out(notebook):
    notebook("batch = {'x': x, 'label': 'cats', 'extra': [x, x]}")
    notebook("%%stage\nparts = {'sum': batch['x'] + batch['extra'][1], 'name': batch['label'], 'both': (x, 1)}")
    assert value(notebook, "parts['sum'].numpy()[0, 0], parts['name'], parts['both'][1]") == (2.0, "cats", 1)


@pytest.mark.parametrize(
    "kept", ["{1, 2}", "frozenset('ab')", "object()", "range(3)", "slice(1)", "b'x'", "1j", "None"]
)
def test_any_object_may_be_read(notebook, kept):
    notebook(f"thing = {kept}")
    notebook("%%stage step\nseen = thing\ny = x + 1")
    assert value(notebook, "seen is thing")
    assert "cache hit" in notebook("%%stage step\nseen = thing\ny = x + 1").text


def test_sets_inside_containers_may_be_read_and_are_seen_to_change(notebook):
    notebook("cfg = {'names': {'a', 'b'}, 'k': 3, 'x': x}")
    cell = "%%stage step\ny = cfg['x'] * cfg['k'] + len(cfg['names'])"
    notebook(cell)
    assert value(notebook, "y.numpy()[0, 0]") == 5.0
    assert "cache hit" in notebook(cell).text
    notebook("cfg['x'] = x + 1.0")
    assert "cache hit" in notebook(cell).text, "tensors beside a set are arguments all the same"
    assert value(notebook, "y.numpy()[0, 0]") == 8.0
    notebook("cfg['names'].add('c')")
    notebook(cell)
    assert value(notebook, "y.numpy()[0, 0]") == 9.0


def test_sets_whose_elements_look_alike_are_told_apart(notebook):
    notebook(
        "class Named:\n"
        "    def __init__(self, value): self.value = value\n"
        "    def __repr__(self): return 'Named'\n"
        "names = {Named(1.0)}"
    )
    cell = "%%stage step\ny = x + next(iter(names)).value"
    notebook(cell)
    notebook("names = {Named(5.0)}")
    notebook(cell)
    assert value(notebook, "y.numpy()[0, 0]") == 6.0


def test_definitions_in_the_cell_stay_ordinary(notebook):
    notebook(
        "%%stage\n"
        "import math as maths\n"
        "def double(t):\n    return t * 2 * shift\n"
        "class Box:\n    size = 3\n    def fill(self): return shift\n"
        "shift = 1.0\n"
        "y = double(x) + sum([i for i in range(3)]) + (lambda q: q)(1)\n"
    )
    assert value(notebook, "y.numpy()[0, 0]") == 6.0
    assert value(notebook, "double(10), maths.pi > 3, Box.size, Box().fill()") == (20.0, True, 3, 1.0)
    notebook("shift = 5.0")
    assert value(notebook, "double(10)") == 100.0


def test_a_function_of_the_cell_reads_the_notebook_as_it_is_later(notebook):
    notebook("%%stage\nh = x + 1\ndef read():\n    return h + x")
    assert value(notebook, "read().numpy()[0, 0]") == 3.0


def test_conditional_names(notebook):
    notebook("flag = False")
    cell = "%%stage step\nif flag:\n    extra = x + 1\ny = x"
    notebook(cell)
    assert "extra" not in value(notebook, "dir()")
    notebook("extra = 'old'")
    notebook(cell)
    assert value(notebook, "extra") == "old"
    notebook("flag = True")
    notebook(cell)
    assert value(notebook, "extra.numpy()[0, 0]") == 2.0


def test_what_the_cell_did_not_assign_after_all_is_the_same_object(notebook):
    notebook("flag, before = False, x")
    notebook("%%stage\nif flag:\n    x = x * 2\ny = x + 1")
    assert value(notebook, "x is before")


def test_containers_without_tensors_stay_the_objects_that_they_are(notebook):
    notebook("from collections import OrderedDict")
    notebook("%%stage\nnames = OrderedDict(b=1, a=2)\nalso = names\ny = x")
    assert value(notebook, "also is names, list(names), type(names).__name__") == (True, ["b", "a"], "OrderedDict")


def test_a_conditional_name_that_is_read_keeps_the_cache(notebook):
    notebook("flag = True")
    cell = "%%stage step\nif flag:\n    part = x + 1\nout = part * 2"
    notebook(cell)
    assert "cache hit" in notebook(cell).text
    notebook("flag = False\npart = x + 10")
    notebook(cell)
    assert value(notebook, "out.numpy()[0, 0]") == 22.0


def test_a_loop_that_never_ran_reads_the_notebook(notebook):
    cell = "%%stage step\nfor i in range(n):\n    last = x + i\ny = last * 1"
    notebook("n = 2")
    notebook(cell)
    assert value(notebook, "y.numpy()[0, 0], i") == (2.0, 1)
    notebook("n = 0\nlast = x + 100")
    notebook(cell)
    assert value(notebook, "y.numpy()[0, 0]") == 101.0
    notebook("del last")
    assert isinstance(notebook(cell, fails=True).error, NameError)


def test_deleted_names_go(notebook):
    notebook("a = x\nb = 1")
    notebook("%%stage\ny = a + b\ndel a, b")
    assert value(notebook, "'a' in dir(), 'b' in dir(), y.numpy()[0, 0]") == (False, False, 2.0)
    notebook("%%stage\nt = x + 1\ndel t")
    assert value(notebook, "'t' in dir()") is False


def test_global_means_the_cells_own_names(notebook):
    notebook("%%stage\nglobal g\ng = x\ndef count():\n    global seen\n    seen = 1\ncount()\ny = g + seen")
    assert value(notebook, "seen, y.numpy()[0, 0], type(g) is ll.Tensor") == (1, 2.0, True)


def test_builtins_and_the_notebooks_own_machinery_are_no_inputs(notebook):
    notebook("%%stage -o ran\ny = sum([x, x])\nz = len(In)")
    assert "sum" not in value(notebook, "ran.entry.paths")
    notebook("def sum(ts):\n    return ts[0] * 7")
    notebook("%%stage\ny = sum([x, x])")
    assert value(notebook, "y.numpy()[0, 0]") == 7.0


def test_empty_bodies(notebook):
    assert notebook("%%stage\n\n").value is None
    assert notebook("%%stage\n# only a comment").value is None
    assert "the cell body is empty" in notebook("%%stage\n", fails=True).err


def test_a_cell_without_inputs(notebook):
    assert notebook("%%stage\n1 + 1").value == 2


def test_edited_text_is_another_staged_cell_under_the_same_name(notebook):
    notebook("%%stage step\ny = x")
    notebook("%%stage step\ny = x + 1")
    assert value(notebook, "step.trace_count") == 1
    assert value(notebook, "y.numpy()[0, 0]") == 2.0
    assert "cache hit" in notebook("%%stage step\ny = x").text
