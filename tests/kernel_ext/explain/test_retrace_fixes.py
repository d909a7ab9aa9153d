"""The fix that a retrace of a staged cell prints: that it is printed, and that it works."""

from __future__ import annotations

import re

import pytest

import limelight as ll
from limelight.core.spec import TensorSpec
from limelight_kernel.explain.fix_cells import with_cells
from limelight_kernel.explain.retrace_fixes import spec_code
from limelight_kernel.line.options import Options


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nn = ll.constant([1, 2])\nlr = 0.5\nsteps = 2")
    return run


BODY = "y = x * lr * steps + ll.astype(n, ll.float32)"


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        (["x = ll.ones([5, 2])"], '%%stage step -s "x=ll.TensorSpec([None, 2])"'),
        (["lr = 0.25"], '%%stage step -s "lr=ll.TensorSpec([])"'),
        (["lr = 0.25\nx = ll.ones([5, 2])"], '%%stage step -s "lr=ll.TensorSpec([])" -s "x=ll.TensorSpec([None, 2])"'),
    ],
)
def test_the_fix_is_a_line_to_paste_and_spares_the_trace(notebook, changes, fix):
    first = notebook(f"%%stage step\n{BODY}")
    assert "Fix" not in first.text
    for change in changes:
        notebook(change)
    said = " ".join(notebook(f"%%stage step\n{BODY}").text.split())
    assert f"Fix: {fix}" in said
    assert "@ll.function" not in said
    notebook("x = ll.constant([[1.0, 2.0]])\nlr = 0.5")
    notebook(f"{fix}\n{BODY}")
    for change in changes:
        notebook(change)
    assert "cache hit" in notebook(f"{fix}\n{BODY}").text
    assert notebook("step.trace_count").value == 1


def test_the_fix_keeps_what_the_line_had(notebook):
    cell = f'%%stage step -s "lr=ll.TensorSpec([])" -d cpu:0\n{BODY}'
    notebook(cell)
    notebook("x = ll.ones([5, 2])")
    said = " ".join(notebook(cell).text.split())
    fix = re.search(r"Fix: (%%stage .* -d cpu:0)", said)
    assert fix is not None
    assert '-s "lr=ll.TensorSpec([])"' in fix.group(1)
    assert '-s "x=ll.TensorSpec([None, 2])"' in fix.group(1)


@pytest.mark.parametrize("change", ["x = ll.ones([2])", "lr = 'text'", "x = [x, x]", "steps = 3"])
def test_where_no_spec_helps_none_is_printed(notebook, change):
    notebook("%%stage step\ny = (x, lr, steps)")
    notebook(change)
    said = notebook("%%stage step\ny = (x, lr, steps)").text
    assert "traced again" in said
    assert "Fix: %%stage" not in said


def test_a_float_takes_the_dtype_of_the_tensors_beside_it(notebook):
    cell = "y = wide * lr"
    notebook("wide = ll.ones([2], dtype='float64')")
    notebook(f"%%stage step\n{cell}")
    notebook("lr = 0.25")
    fix = "%%stage step -s \"lr=ll.TensorSpec([], 'float64')\""
    assert f"Fix: {fix}" in " ".join(notebook(f"%%stage step\n{cell}").text.split())
    notebook(f"{fix}\n{cell}")
    notebook("lr = 0.125")
    assert "cache hit" in notebook(f"{fix}\n{cell}").text


def test_the_cache_view_and_why_say_the_same(notebook):
    notebook(f"%%stage step\n{BODY}")
    notebook("lr = 0.25")
    notebook(f"%%stage -q step\n{BODY}")
    for line in ("%trace_cache step --why", "%trace_cache step"):
        assert "ll.TensorSpec([])" in " ".join(repr(notebook(line).value).split())


def test_specs_as_code():
    assert spec_code(TensorSpec([None, 64])) == "ll.TensorSpec([None, 64])"
    assert spec_code(TensorSpec([], "int32")) == "ll.TensorSpec([], 'int32')"


def test_options_as_a_line():
    assert Options().line({}) == "%%stage"
    assert Options("f", ("a", "b"), (), "cpu:1").line({"a": "S"}) == '%%stage f -i a,b -s "a=S" -d cpu:1'


def test_a_number_that_decides_gets_words_instead_of_a_spec(notebook):
    body = "y = x * lr\nif lr > 0.3:\n    y = y + 1.0"
    notebook(f"%%stage step\n{body}")
    notebook("lr = 0.25")
    said = " ".join(notebook(f"%%stage step\n{body}").text.split())
    assert "Fix" not in said
    assert re.search(
        r"`lr` cannot simply be a tensor: an `if` asks for it at In\[\d+\] line 3, where ll.cond takes one", said
    )


def test_another_dtype_is_cast_in_a_cell_above(run):
    run("%load_ext limelight")
    run("import limelight as ll\nimport numpy as np\nx = ll.ones([2])")
    cell = "%%stage step --max-traces 1\ny = x * 2"
    run(cell)
    run("x = np.ones(2)")
    said = run(cell, fails=True).out
    assert said.startswith("TraceBudgetError: `step` has its 1 trace (--max-traces)"), "and no empty traceback"
    fix = said.rpartition("Fix: in a cell above, ")[2].strip()
    assert fix == 'x = ll.astype(x, "float32")'
    run(fix)
    assert "cache hit" in run(cell).text


@ll.function
def padded(x):
    return x + ll.zeros((x.shape[0], 2))


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_the_cell_of_a_fix_for_a_function_that_reads_sizes_runs_for_all_of_them():
    for n in (2, 3):
        padded(ll.ones((n, 2)))
    (story,) = with_cells([ll.explain.retrace(padded).records[-1].to_story()], padded)
    names = {"ll": ll}
    exec(story.fixes[0].as_cell, names)
    assert [names["padded"](ll.ones((n, 2))).shape for n in (2, 3, 4)] == [(2, 2), (3, 2), (4, 2)]
    assert names["padded"].trace_count == 1


def test_a_cell_that_needs_a_size_as_a_number_gets_no_spec(notebook):
    cell = "%%stage loop\ny = 0.0\nfor t in range(x.shape[0]):\n    y = y + x[t]\n"
    for n in (2, 3, 4):
        notebook(f"x = ll.ones([{n}, 2])")
        said = notebook(cell).text
    assert "traced again" in said
    assert "TensorSpec" not in said


def test_a_size_that_a_cell_passes_on_to_reshape_gets_a_spec(notebook):
    notebook("x = ll.ones((3, 4))")
    cell = "%%stage flat\ny = ll.reshape(x, (x.shape[0], 2, 2))"
    notebook(cell)
    notebook("x = ll.ones((4, 4))")
    notebook(cell)
    fix = notebook("ll.explain.retrace(flat).records[-1].fix").value
    assert fix == '%%stage flat -s "x=ll.TensorSpec([None, 4])"'
    notebook(f"{fix}\ny = ll.reshape(x, (x.shape[0], 2, 2))")
    assert notebook("y.shape").value == (4, 2, 2)


def test_a_size_that_a_cell_keeps_is_named_in_the_words_of_a_cell(notebook):
    notebook("x = ll.ones((3, 4))")
    cell = "%%stage kept\nb = x.shape[0]\ny = ll.reshape(x, (b, 2, 2))"
    notebook(cell)
    notebook("x = ll.ones((4, 4))")
    notebook(cell)
    said = notebook("str(ll.explain.retrace(kept).records[-1])").value
    assert "`x.shape[0]` (In[" in said
    assert "`%%stage -s` can leave it open" in said
    assert "Fix" not in said
