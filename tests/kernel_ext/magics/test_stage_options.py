"""What `%%stage` may be asked besides: bounds on traces, times, gradients, the story of each op."""

from __future__ import annotations

import re

import pytest

from limelight.errors import GradientError
from limelight.executors import base as executors
from limelight.executors.loops.native_loops import is_installed
from limelight_kernel.report.timing import Repeated, Times


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nw = ll.Variable([[3.0], [4.0]], name='w')")
    return run


def value(run, expression):
    return run(expression).value


# --- the annotated cell


CELL = """\
%%stage step -a -o ran
h = x @ w
k = x @ w
z = ll.tanh(h) * 2.0 + 1.0
c = ll.constant(2.0) * 3.0
(z * c - k).sum()"""


def test_each_line_tells_what_became_of_its_ops(notebook):
    text = notebook(CELL).text
    assert re.search(r"2 ● staged +h = x @ w", text)
    assert re.search(r"3 ◇ merged, line 2 +k = x @ w", text)
    assert re.search(r"4 ◉ fused, group \d +z = ", text)
    assert re.search(r"5 ◆ constant +c = ", text)
    assert "· %5: f32[1,1] = matmul(%1, %4)\n        shared with line 2\n        runs as  %3: f32[1,1] = matmul" in text
    assert "folded into a constant" in text
    assert re.search(r"kept; fused into group 1\n +runs as  %\d: f32\[1,1\] = tanh\(%3\)", text)
    assert "group 1: tanh, multiply, add in one go" in text
    assert max(map(len, text.splitlines())) <= 80
    story = value(notebook, "ran.to_dict()")["lines"][1]["story"]
    assert [told["words"] for told in story] == ["shared with line 2", "shared with line 2"]


def test_lines_unfold_to_their_ops_in_html(notebook):
    notebook(CELL)
    html = value(notebook, "ran.static().html")
    assert html.count("<details open><summary><code>k = x @ w</code></summary>") == 1
    assert 'data-ll-source="In[3]" data-ll-line="4">' in html
    folded = notebook(CELL.replace(" -a", "")).shown[0].data
    assert "<details><summary><code>k = x @ w</code></summary>" in folded["text/html"]
    assert "runs as" not in folded["text/plain"], "plain text cannot be unfolded"


@pytest.fixture
def on_the_plan():
    with executors.chosen.override("plan"):
        yield


def test_tables_are_told_of(notebook):
    with executors.chosen.override("loops" if is_installed() else "plan"):
        text = notebook(CELL.replace("-a", "-a plan")).text
    if not is_installed():
        pytest.skip("limelight-native is not installed: pip install ./engine/native")
    assert re.search(r"z = .*\n +loops  table 1: tanh, instruction \d\n +loops  table 1: multiply", text)


@pytest.mark.usefixtures("on_the_plan")
def test_a_list_says_what_stands_under_a_line(notebook):
    plan = notebook(CELL.replace("-a", "-a plan")).text
    assert re.search(r"z = .*\n +plan  v\d = tanh\(v\d(, v\d)?\)\n +plan  v\d = multiply", plan)
    assert ("runs as" in plan, "shared with" in plan) == (False, False)
    opt = notebook(CELL.replace("-a", "-a opt")).text
    assert re.search(r"h = x @ w\n.*\n      runs as  %3: f32\[1,1\] = matmul", opt)
    assert ("· %" in opt, "plan  " in opt) == (False, False)
    both = notebook(CELL.replace("-a", "-a trace,plan")).text
    assert ("shared with line 2" in both, "runs as" in both, "plan  v" in both) == (True, False, True)
    again = notebook(CELL.replace("-a", "-a plan -a trace")).text
    assert both.splitlines()[1:30] == again.splitlines()[1:30]
    assert "runs as" not in notebook(CELL.replace("-a", "-a source")).text
    lines = value(notebook, "ran.to_dict()")["lines"]
    assert (len(lines[0]["story"]), lines[0]["plan"]) == (2, [])


@pytest.mark.usefixtures("on_the_plan")
def test_html_shows_the_parts_of_the_list(notebook):
    html = notebook(CELL.replace("-a", "-a plan")).shown[0].data["text/html"]
    assert re.search(r"plan<br><code>v\d = tanh\(", html)
    assert "<details open><summary><code>z = " in html
    assert "what happened" not in html
    html = notebook(CELL.replace("-a", "-a opt")).shown[0].data["text/html"]
    assert ("as it runs" in html, "what happened" in html) == (True, False)
    html = notebook(CELL.replace("-a", "-a source")).shown[0].data["text/html"]
    assert ("<details><summary><code>z = " in html, "what happened" in html) == (True, True), "there it can be unfolded"


def test_the_word_after_the_flag_may_be_the_name(notebook):
    notebook("%%stage -a step\ny = x * 2")
    assert value(notebook, "step.name") == "step"
    assert "runs as" in notebook("%%stage -a trace, opt\ny = x * 3").text
    assert value(notebook, "'opt' in dir()") is False


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-a trase", "'trase' is none of source, trace, opt, plan; did you mean 'trace'?"),
        ("-a opt,ops", "'ops' is none of"),
        ("step -a ops", "'ops' is none of"),
        ("-a one two", "'one' is none of"),
        ("-a 2", "'2' is none of"),
        ("-a fuse,cse", "'fuse', 'cse' are none of"),
    ],
)
def test_a_list_with_something_unknown(notebook, flags, words):
    ran = notebook(f"%%stage {flags}\ny = x", fails=True)
    assert ran.err.startswith(f"UsageError: %%stage -a: {words}")
    assert ran.err.count("\n") == 1


def test_what_nothing_uses_is_pruned_and_a_rule_is_named(notebook):
    text = notebook("%%stage -a\ndef f(t):\n    ll.exp(t)\n    return -(-t)\ny = f(x) ** 3").text
    assert "simplified by -(-x): two changes of sign undo each other" in text
    assert "pruned: nothing uses it" in text


def test_ops_in_bodies_of_loops_have_their_stories_too(notebook):
    notebook("%%stage -o ran\nn = ll.while_loop(lambda n: n < 9,\n    lambda n: n + 2 * 3, [ll.constant(0)])")
    lines = notebook("ran.lines").value
    assert [told.inside for told in lines[1].story if "add" in told.traced] == ["body"]
    assert (lines[1].mark, lines[1].nodes) == ("staged", 1), "the constant 0 alone is of the graph itself"
    assert any("less" in told.traced and told.inside == "cond" for told in lines[0].story)
    assert [line.nodes + line.inside for line in lines] == [len(line.story) for line in lines]
    assert (lines[0].inside, lines[1].inside) == (2, 2), "less and its 9; add and its 6"


def test_ops_of_a_called_function_count_at_its_own_lines(notebook):
    """Whoever called it first: its trace knows that call too."""
    notebook("@ll.function\ndef twice(t):\n    return t + t * 2")
    ran = notebook("%%stage -o ran\ny = twice(x)\nz = ll.cond(ll.sum(y) > 0.0, lambda: y * 2, lambda: y)")
    first, second = notebook("ran.lines").value
    assert (first.nodes, first.inside, len(first.story)) == (1, 0, 1)
    assert (second.nodes, second.inside, len(second.story)) == (4, 2, 6)
    assert "staged, 4 ops, 2 in calls" in ran.shown[0].data["text/html"]


def test_stories_of_a_long_cell_become_sentences(notebook):
    lines = "\n".join(f"y = ll.tanh(y) * {i}.5 + x" for i in range(30))
    html = notebook(f"%%stage -a\ny = x\n{lines}\ny").shown[0].data["text/html"]
    assert len(html) < 50_000
    assert html.count("<details open>") == 30
    assert "= tanh(%20)</code> kept; fused into group 1<br>" in html
    assert "--text</code> shows it" not in html
    lines = "\n".join(f"y = ll.tanh(y) * {i}.5 + x" for i in range(150))
    html = notebook(f"%%stage -a\ny = x\n{lines}\ny").shown[0].data["text/html"]
    assert len(html) < 50_000
    assert "would take too much room here: <code>--text</code> shows it" in html


@pytest.mark.slow  # thousands of ops
def test_the_story_of_a_line_with_thousands_of_ops_is_cut(notebook):
    ran = notebook("%%stage -a -o ran\ny = x\nfor i in range(2000):\n    y = y * 1.5 + x")
    line = notebook("ran.lines").value[2]
    assert (line.nodes, len(line.story)) == (4001, 41)
    assert "· and 3,961 more ops" in ran.text
    assert len(ran.shown[0].data["text/html"]) < 50_000


# --- bounds on traces


def test_relax_traces_for_unknown_sizes(notebook):
    notebook("%%stage --relax step\ny = x * 2")
    notebook("for n in (2, 3, 4):\n    step(x=ll.ones([n, 2]))")
    assert value(notebook, "step.trace_count") == 2
    assert "f32[?,2]" in value(notebook, "step.trace_cache[1].signature")


def test_max_traces_is_a_bound_that_explains(notebook):
    notebook("%%stage --max-traces 1 step\ny = x * 2")
    said = notebook("step(x=ll.ones([3, 2]))", fails=True).out
    assert "TraceBudgetError: `step` has its 1 trace (--max-traces), and the call at In[4] line 1 needs another" in said
    assert '-s "x=ll.TensorSpec([None, 2])" --max-traces 1' in said
    assert "UsageError: %%stage --max-traces: 0 is too few" in notebook("%%stage --max-traces 0\ny = x", fails=True).err
    assert "invalid int value: 'two'" in notebook("%%stage --max-traces two\ny = x", fails=True).err


def test_a_strict_cell_does_not_trace_twice(notebook):
    cell = "%%stage --strict step\ny = x * 2"
    notebook(cell)
    assert "cache hit" in notebook(cell).text
    notebook("x = ll.ones([3, 2])")
    said = notebook(cell, fails=True).out
    assert "TraceBudgetError: `step` has one trace (--strict)" in said
    assert "argument `x` f32[1,2] -> f32[3,2]" in said
    assert notebook("y.shape").value == (1, 2), "nothing was assigned"


def test_force_traces_afresh(notebook):
    notebook("%%stage step\nprint('traced')\ny = x * 2")
    assert notebook("%%stage step\nprint('traced')\ny = x * 2").out == ""
    ran = notebook("%%stage -f step\nprint('traced')\ny = x * 2")
    assert ran.out == "traced\n"
    assert "the cache was cleared" in ran.text
    assert value(notebook, "len(step.trace_cache)") == 1


# --- times


def test_times_of_a_first_and_a_cached_call_and_of_python(notebook):
    notebook("%%stage -t step -o ran\nw.assign_add(w)\ny = x @ w\nnoise = ll.random.normal([2])")
    times = value(notebook, "ran.times")
    assert min(times.tracing, times.passes, times.planning) > 0
    assert 0 < times.cached.least <= times.cached.mean
    assert 0 < times.eager.least <= times.eager.mean
    assert value(notebook, "w.numpy().ravel().tolist()") == [6.0, 8.0], "it ran once, as far as anybody can tell"
    text = value(notebook, "str(ran)")
    for row in ("first call", "· tracing", "· passes", "· planning", "cached call (", "eager ("):
        assert row in text
    assert "eager Python" in text
    assert value(notebook, "step.trace_cache[0].hits") == 0


@pytest.mark.parametrize(
    ("cached", "eager", "said"),
    [
        ((2.0, 3.0), (6.0, 9.0), "a cached call is 3.0 times as fast as eager Python."),
        ((2.0, 3.0), (2.1, 3.0), "a cached call is about as fast as eager Python."),
        (
            (1.0, 9.0),
            (2.0, 3.0),
            "as fast as eager Python, by the mean 3.0 times as slow: the runs vary much.",
        ),
    ],
)
def test_times_are_compared_by_the_shortest_and_by_the_mean(cached, eager, said):
    times = Times(1.0, 1.0, 1.0, Repeated(*cached, 5), Repeated(*eager, 5))
    note = times.table().note
    assert note.startswith("By the shortest run")
    assert note.endswith(said)


def test_timing_leaves_random_streams_alone(notebook):
    def drawn(flags):
        notebook("g = ll.random.Generator(7)")
        notebook(f"%%stage -q {flags} draw\nnoise = g.normal([2])")
        return value(notebook, "(noise.numpy().tolist(), g.normal([2]).numpy().tolist())")

    assert drawn("") == drawn("-t")


def test_what_has_effects_is_not_run_again_for_its_times(notebook):
    notebook("calls = []\ndef note(t):\n    calls.append(1)\n    return t")
    text = notebook("%%stage -t\ny = ll.py_func(note, [x], ll.TensorSpec([1, 2]))").text
    assert "Not run again for its times: the graph has effects" in text
    assert value(notebook, "len(calls)") == 1
    text = notebook("%%stage -t\ncalls.append(2)\ny = x * 2").text
    assert "Eager Python is not timed, since runs would repeat `calls.append(...)`" in " ".join(text.split())
    assert value(notebook, "calls") == [1, 2]


# --- gradients


def test_gradients_of_the_result(notebook):
    notebook("import numpy as np\na = np.ones([1, 2], 'float32')\nn = 3")
    ran = notebook("%%stage step -g -o ran\nunused = x * n\nloss = ((a @ w) * n).sum()\nloss")
    assert ran.value.item() == 21.0
    found = {one.name: one for one in value(notebook, "ran.gradients.found")}
    assert found["a"].value.numpy().tolist() == [[9.0, 12.0]]
    assert found["w"].value.numpy().tolist() == [[3.0], [3.0]]
    assert found["x"].value is None
    assert "no gradient" in found["x"].why
    assert re.search(r"^w +f32\[2,1\] +norm 4\.243$", ran.text, re.MULTILINE)
    assert "Graph of gradient_of_step" in ran.text
    assert "call forward_step" in " ".join(ran.text.replace("…", "").split()) or "forward" in ran.text
    assert value(notebook, "ran.to_dict()['gradients']['sentence']") == "Gradients of the result f32[]:"


def test_the_gradient_of_a_cell_that_updates_is_that_at_the_old_value(notebook):
    notebook("%%stage -g -o ran\nloss = (w * w).sum()\nw.assign_sub(w)\nloss")
    (found,) = (one for one in value(notebook, "ran.gradients.found") if one.name == "w")
    assert found.value.numpy().tolist() == [[6.0], [8.0]]
    assert value(notebook, "w.numpy().tolist()") == [[0.0], [0.0]]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("y = x * 2", "No gradient: the cell has no result"),
        ("ll.argmax(x)", "No gradient: the cell's result is i64[]"),
        ("y = x\n'text'", "No gradient: the cell's result is a str"),
    ],
)
def test_where_there_is_nothing_to_differentiate(notebook, cell, said):
    assert said in " ".join(notebook(f"%%stage -g\n{cell}").text.split())


def test_a_wrong_gradient_is_an_error_at_the_cells_line(notebook):
    notebook("@ll.custom_gradient\ndef odd(t):\n    return t * 2, lambda g: ll.ones([7])")
    ran = notebook("%%stage step -g\ny = odd(x)\ny.sum()", fails=True)
    assert "----> 2 y = odd(x)" in ran.out
    assert "odd returned a gradient of shape (7,)" in ran.out


def test_a_gradient_that_cannot_be_computed_is_no_error_of_the_cell(notebook, monkeypatch):
    def fail(*_args, **_kwargs):
        raise GradientError("no way back")

    monkeypatch.setattr("limelight_kernel.report.gradients.GradientFunction.get_concrete_function", fail)
    ran = notebook("%%stage step -g\ny = x * 2\ny.sum()")
    assert "No gradient: no way back" in ran.text
    assert notebook("y.numpy().tolist()").value == [[2.0, 4.0]]


def test_no_run_has_no_gradient(notebook):
    assert "No gradient: the cell did not run." in notebook("%%stage -g --no-run\n(x * x).sum()").text


@pytest.mark.parametrize("ending", ["svg", "html", "json", "txt"])
def test_a_staged_cell_is_saved_in_each_form(notebook, tmp_path, ending):
    file = tmp_path / f"cell.{ending}"
    notebook(f"%%stage saved_cell --save {file}\ny = ll.tanh(x) * 2.0")
    text = file.read_text()
    assert ("<svg" in text) == (ending in ("svg",))
    assert "tanh" in text
