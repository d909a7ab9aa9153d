"""Every flag of `%%stage`, and every way to get one wrong."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nw = ll.constant([[3.0], [4.0]])\nlr = 0.5")
    return run


def value(run, expression):
    return run(expression).value


# --- NAME


def test_name_binds_a_callable_that_takes_the_rest_from_the_notebook(notebook):
    notebook("%%stage step\ny = x @ w\ny * lr")
    outputs, result = value(notebook, "step(x=x * 2)")
    assert outputs["y"].numpy().tolist() == [[22.0]]
    assert result.numpy().tolist() == [[11.0]]
    assert value(notebook, "y.numpy().tolist()") == [[11.0]], "a call assigns nothing"
    notebook("lr = 0.25")
    assert value(notebook, "step()[1].item()") == 2.75
    assert value(notebook, "step.trace_count, len(step.trace_cache), step.name") == (2, 2, "step")


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_threads_may_call_it_at_once(notebook):
    notebook("from concurrent.futures import ThreadPoolExecutor\nlabel = 'a'")
    notebook("%%stage step\nimport time\ntime.sleep(0.01)\ny = x * 2, label, n if (n := x.shape[0]) else 0")
    notebook("def call(i):\n    return step(x=ll.ones([i + 1, 2]), label=str(i))[0]['y']")
    notebook("with ThreadPoolExecutor(6) as pool:\n    found = list(pool.map(call, range(6)))")
    for i, (y, label, n) in enumerate(value(notebook, "found")):
        assert (y.shape, label, n) == ((i + 1, 2), str(i), i + 1)
    assert value(notebook, "step.trace_count, x.shape, label") == (7, (1, 2), "a")


def test_a_wrong_input_of_the_callable(notebook):
    notebook("%%stage step\ny = x @ w")
    error = notebook("step(z=1)", fails=True).error
    assert isinstance(error, TypeError)
    assert "unexpected input 'z'; its inputs are w, x" in str(error)


def test_a_staged_cell_can_be_called_in_another(notebook):
    notebook("%%stage inner\ny = x @ w")
    notebook("%%stage outer\nz = inner(x=x * 10)[0]['y'] + 1")
    assert value(notebook, "z.item()") == 111.0


def test_what_a_called_cell_reads_is_read_by_the_caller(notebook):
    notebook("%%stage inner\ny = x @ w")
    notebook("%%stage outer\nz = inner()[0]['y'] + 1")
    notebook("x = x * 10")
    assert "cache hit" in notebook("%%stage outer\nz = inner()[0]['y'] + 1").text
    assert value(notebook, "z.item()") == 111.0


def test_a_cell_may_call_the_one_whose_name_it_takes(notebook):
    notebook("%%stage step\ny = x @ w")
    notebook("%%stage step\nz = step()[0]['y'] + 1")
    assert value(notebook, "z.item()") == 12.0


def test_a_staged_cell_is_a_staged_function(notebook):
    notebook("%%stage step\ny = x @ w")
    assert value(notebook, "isinstance(step, type(ll.function(lambda: 0)))")
    assert value(notebook, "step.explain().hit, step.explain(x=ll.ones([3, 2])).hit") == (True, False)
    assert "first call" in value(notebook, "str(ll.explain.retrace(step))")
    assert "The staged cell step" in notebook("step?").out


@pytest.mark.parametrize(("name", "words"), [("1st", "'1st'"), ("for", "'for'"), ("a b", "unrecognized arguments: b")])
def test_a_name_that_cannot_be_bound(notebook, name, words):
    ran = notebook(f"%%stage {name}\ny = x", fails=True)
    assert ran.err.startswith("UsageError: %")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert value(notebook, "'y' in dir()") is False


# --- -i


def test_inputs_are_the_graphs_arguments_and_numbers_go_by_type(notebook):
    notebook("%%stage step -i x,lr\ny = x @ w * lr")
    notebook("lr = 0.25\nx = x * 2")
    assert "cache hit" in notebook("%%stage step -i x,lr\ny = x @ w * lr").text
    assert value(notebook, "y.item()") == 5.5
    notebook("w = w * 2")
    said = notebook("%%stage step -i x,lr\ny = x @ w * lr").text
    assert "`w`" in said, "a captured tensor that is replaced is traced anew"
    assert value(notebook, "y.item()") == 11.0


def test_an_input_that_the_cell_does_not_read(notebook):
    ran = notebook("%%stage -i xx\ny = x @ w", fails=True)
    assert ran.err == "UsageError: %%stage --inputs: the cell reads no 'xx'; did you mean 'x'?\n"
    assert value(notebook, "'y' in dir()") is False


def test_an_input_that_is_no_name(notebook):
    assert "'2x'" in notebook("%%stage -i 2x\ny = x", fails=True).err


# --- -s


def test_a_spec_makes_one_trace_for_every_batch_size(notebook):
    cell = '%%stage step -s "x=ll.TensorSpec([None, 2])"\ny = x @ w'
    notebook(cell)
    notebook("x = ll.constant([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])")
    assert "cache hit" in notebook(cell).text
    assert value(notebook, "y.numpy().tolist(), step.trace_count") == ([[7.0], [14.0], [21.0]], 1)


def test_several_specs_and_numbers(notebook):
    cell = "%%stage step --spec 'x=ll.TensorSpec([None, 2])' -s lr=ll.TensorSpec([])\ny = x * lr"
    notebook(cell)
    notebook("lr = 0.125")
    assert "cache hit" in notebook(cell).text
    assert value(notebook, "y.numpy()[0, 0]") == 0.125


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("x=[None,2]", "x is a list, not a spec"),
        ("x=ll.TensorSpek([])", "AttributeError"),
        ("x", "--spec: 'x' names no input and spec: write x=ll.TensorSpec([None, 64])"),
        ("ll.TensorSpec([2])", "names no input and spec: write x=ll.TensorSpec([None, 64])"),
        ("x==", "SyntaxError"),
        ("q=ll.TensorSpec([])", "the cell reads no 'q'"),
    ],
)
def test_a_spec_that_is_none(notebook, spec, words):
    ran = notebook(f'%%stage -s "{spec}"\ny = x @ w', fails=True)
    assert ran.err.startswith("UsageError: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert value(notebook, "'y' in dir()") is False


def test_a_value_that_breaks_the_spec(notebook):
    error = notebook('%%stage -s "x=ll.TensorSpec([None, 3])"\ny = x @ w', fails=True).error
    assert "x is f32[1,2], but --spec promises f32[?,3]" in str(error)


# --- -d


def test_a_device_for_the_whole_cell(notebook):
    notebook("ll.config.set_virtual_devices(CPU=2)")
    notebook("%%stage step -d cpu:1 -o ran\ny = x @ w")
    assert value(notebook, "y.device.short, ran.entry.device") == ("CPU:1", "CPU:1")
    assert value(notebook, "(x + 1).device.short") == "CPU:0"


def test_an_unknown_device(notebook):
    ran = notebook("%%stage -d cpu:63\ny = x @ w", fails=True)
    assert ran.err.startswith("UsageError: %%stage -d: 'cpu:63' does not exist here; devices here: CPU:0")
    assert ran.err.count("\n") == 1
    assert "is not a device name" in notebook("%%stage -d 7\ny = x @ w", fails=True).err
    assert value(notebook, "'y' in dir(), (x + 1).device.short") == (False, "CPU:0")


# --- --no-run, -q, -o, --static, --text


def test_no_run_traces_and_shows_and_assigns_nothing(notebook):
    ran = notebook("%%stage step --no-run\ny = x @ w\ny")
    assert ran.value is None
    assert "not run" in ran.text
    assert value(notebook, "'y' in dir(), step.trace_count") == (False, 1)
    assert value(notebook, "step()[1].item()") == 11.0
    assert value(notebook, "step.trace_count") == 1


def test_quiet_shows_the_result_alone(notebook):
    ran = notebook("%%stage -q\ny = x @ w\ny")
    assert ran.shown == []
    assert ran.value.item() == 11.0
    assert (ran.out.startswith("Out["), ran.err) == (True, "")


def test_output_keeps_a_record(notebook):
    ran = notebook("%%stage step -o kept\n# note\ny = x @ w\ny")
    record = value(notebook, "kept")
    assert (record.name, record.hit, record.ran) == ("step", False, True)
    assert record.outputs["y"].item() == record.result.item() == 11.0
    assert [line.mark for line in record.lines] == ["", "staged", ""] or record.lines[1].mark == "staged"
    assert record.explain() == record.headline
    assert str(record).startswith(record.headline.split("\n")[0][:40])
    assert record.static().text == ran.text
    import json

    assert json.loads(json.dumps(record.to_dict()))["outputs"] == ["y"]


def test_output_needs_a_name(notebook):
    assert "%stage -o" in notebook("%%stage -o 1\ny = x", fails=True).err


def test_text_is_plain_and_fits_a_terminal(notebook):
    (shown,) = notebook("%%stage --text\nlong = x @ w  # " + "comment " * 20 + "\nlong").shown
    assert set(shown.data) == {"text/plain"}
    assert max(map(len, shown.data["text/plain"].splitlines())) <= 80


def test_a_result_has_every_form(notebook):
    (shown,) = notebook("%%stage\ny = x @ w").shown
    assert set(shown.data) == {"text/plain", "text/html"}, "and a widget, where one can run"
    html = shown.data["text/html"]
    assert "● staged" in html
    assert '<img src="data:image/svg+xml' in html
    assert "<details>" in html
    assert "<script" not in html
    assert "<style" not in html
    (static,) = notebook("%%stage --static\ny = x @ w").shown
    assert static.data["text/html"].count("<img") == 1


def test_the_counts_of_the_lines_add_up_to_the_headline(notebook):
    notebook("inner = ll.function(lambda t: ll.tanh(t) * 2 + 1)\nv = ll.Variable(w, name='v')")
    notebook(
        "%%stage step -o ran\ndef helper(t):\n    return inner(t) * 2 + 1\n\nwith ll.GradientTape() as tape:\n"
        "    y = helper(x @ v)\nv.assign_sub(tape.gradient(y, v))"
    )
    ops = sum(line.nodes for line in value(notebook, "ran").lines)
    assert value(notebook, "ran").headline.startswith(f"step: traced ({ops} ops, ")
    assert ops > 5


def test_a_repr_counts_in_words(notebook):
    notebook("%%stage -q step\ny = x")
    assert value(notebook, "repr(step)") == "<staged cell step: 1 line, 1 trace>"


def test_the_output_of_a_long_cell_stays_small(notebook):
    body = "\n".join(f"v{i} = x * {i}.5 + v{i - 1}" if i else "v0 = x" for i in range(50))
    html = notebook(f"%%stage long\n{body}").shown[0].data["text/html"]
    assert len(html) < 50_000
    assert html.count("◉ fused, group ") == 49
    assert "<img" in html or "<code>%graph long</code> draws it" in html


def test_unknown_flags(notebook):
    ran = notebook("%%stage --inptus x\ny = x", fails=True)
    assert ran.err == "UsageError: %%stage: unrecognized arguments: --inptus; did you mean '--inputs'?; see %stage?\n"


def test_dollars_and_braces_on_the_line_are_code(notebook):
    cell = "%%stage step -s \"x=ll.TensorSpec(**{'shape': [None, 2]})\"\ny = x"
    notebook(cell)
    assert value(notebook, "step.trace_cache[0].signature").count("f32[?,2]") == 1


def test_the_optimiser_of_one_cell(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.constant([1.0, 2.0])")
    run("%%stage -q -O 0 slow\n-(-x)")
    run("%%stage -q fast\n-(-x)")
    run("%%stage -q --without simplify kept\n-(-x)")
    count = "[len(f.trace_cache[0].optimised.nodes) for f in (slow, fast, kept)]"
    assert run(count).value == [2, 0, 2]
    run("x = ll.ones((3,))\nslow()")  # a later trace, too
    assert run("len(slow.trace_cache[1].optimised.nodes)").value == 2
    assert "no such pass" in run("%%stage --without foo\nx", fails=True).err


def test_staged_cells_are_listed_shown_and_dropped(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.constant([1.0, 2.0])")
    run("%%stage -q double\ny = x + x\ny")
    assert "double" in repr(run("%stage --list").value)
    assert repr(run("%stage double --source").value) == "y = x + x\ny"
    run("%stage --drop double")
    assert "No cell is staged yet" in repr(run("%stage").value)
    assert "nothing is called 'double'" in run("%stage --drop double", fails=True).err
    assert "--drop is for no cell" in run("%%stage --drop double\nx", fails=True).err


def test_what_is_code_in_a_headline_is_code_in_html(notebook):
    notebook("%%stage again\nx + 1.0\n")
    notebook("x = ll.ones((5, 7))")
    ran = notebook("%%stage again\nx + 1.0\n")
    assert "`again` traced again" in ran.text
    html = ran.shown[0].data["text/html"]
    assert "<p><code>again</code> traced again" in html
    assert "`" not in html
