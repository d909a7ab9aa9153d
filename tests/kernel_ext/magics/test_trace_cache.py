"""`%trace_cache`: predictions, comparisons; `%%trace_cache`: cells that may trace so often and no more."""

from __future__ import annotations

import json
import re

import pytest

NETS = """\
class Net:
    @ll.function
    def forward(self, t):
        return t * 2
    def plain(self, t):
        return t
net, nets = Net(), [Net()]
@ll.function
def never(t):
    return t
by_name = {'f': net.forward}
"""


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])")
    run("@ll.function\ndef step(t, rate=0.5):\n    return ll.tanh(t) * rate\nstep(x)")
    return run


def test_would_predicts_without_running(notebook):
    hit = repr(notebook("%trace_cache --would step(x + 1)").value)
    assert hit.startswith("`step` would run trace #1 (In[3] line 4")
    miss = repr(notebook("%trace_cache --would step(x[:, :1], rate=0.25)").value)
    assert "`step` would trace: argument `t` f32[1,2] -> f32[1,1]" in miss
    assert "`rate` 0.5 -> 0.25" in miss
    assert notebook("step.trace_count, step.trace_cache[0].hits").value == (1, 0)
    assert repr(notebook('%trace_cache step --would "step(x)"').value) == repr(
        notebook("%trace_cache --would step(x)").value
    )
    assert notebook("%trace_cache --would step(x);").value is None


def test_gain_is_measured_and_shown(notebook):
    notebook("with ll.config.executor('step'):\n    slow = ll.function(lambda x: ll.tanh(x) * 2.0)\n    slow(x)")
    said = str(notebook("%trace_cache --gain slow(x)").value)
    assert "on step" in said
    assert "as plan" in said
    assert "step, " in str(notebook("%trace_cache slow --text").value)  # and the rest, broken at words


def test_would_of_a_staged_cell_offers_a_fix_for_the_cell(notebook):
    notebook("%%stage -q double\ny = x + x")
    said = repr(notebook("%trace_cache --would double(x=ll.ones([3, 2]))").value)
    assert 'Fix: %%stage double -s "x=ll.TensorSpec([None, 2])"' in said


def test_would_takes_braces_and_dollars_as_code(notebook):
    assert "would run" in repr(notebook("%trace_cache --would step(*[{'x': x}['x']])").value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--would stpe(x)", "NameError: name 'stpe' is not defined"),
        ("--would step", "'step' is no call; write one, as in --would step(x[:3], 0.1)"),
        ("--would", "--would: no call follows; write one, as in --would step(x[:3], 0.1)"),
        ("--would len(x)", "'len' is built in"),
        ("--would step(x, y)", "NameError: name 'y' is not defined"),
        ("--would step(x, 1, 2)", "takes from 1 to 2 positional arguments but 3 were given"),
        ("--diff 1", "expected 2 arguments"),
        ("step --diff 1 2", "step has no trace #2; its traces: #1"),
        ("step --expect 1", "--expect counts the traces of a cell"),
        ("step --whyy", "did you mean '--why'?"),
        ("step other --why", "unrecognized arguments: other; one NAME at a time"),
        ("step --why --diff 1 1", "--why and --diff: ask one at a time"),
        ("net --why", "'net' is a Net, not a staged function: write net.forward"),
        ("net.plain", "'net.plain' is a method, not a staged function: stage it with ll.function(net.plain)"),
        ("net.forwrd", "a Net has no 'forwrd'; did you mean 'forward'?"),
        ("nets[3]", "'nets[3]': IndexError: list index out of range"),
        ("nets[len(nets)]", "'nets[len(nets)]' is no name; write one, such as step, net.step or nets[0].step"),
        ("never --diff 1 2", "never has no trace #1; its traces: none yet, so call it first"),
    ],
)
def test_usage_errors_are_one_line(notebook, line, words):
    notebook(NETS)
    ran = notebook(f"%trace_cache {line}", fails=None)
    said = ran.err or repr(ran.value)
    assert words in said
    assert said.rstrip().count("\n") == 0
    assert "Traceback" not in ran.out + ran.err


def test_diff_of_two_traces(notebook):
    notebook("step(x[:, :1], 3)")
    found = notebook("%trace_cache step --diff 1 2 -o kept").value
    text = repr(found)
    assert text.startswith("step: the signatures of traces #1 and #2 differ in 2 parts, their graphs (")
    assert re.search(r"^t +f32\[1,2\] +f32\[1,1\] +axis 1: 2 -> 1$", text, re.MULTILINE)
    assert re.search(r"^rate +0\.5 +3 ", text, re.MULTILINE)
    assert re.search(r"^In\[3\]:3 +tanh +f32\[1,2\] +f32\[1,1\]$", text, re.MULTILINE)
    assert max(map(len, text.splitlines()[1:])) <= 80
    assert json.loads(json.dumps(notebook("kept.to_dict()").value))["traces"] == [1, 2]
    assert "second trace" in found._repr_mimebundle_()["text/html"]
    same = repr(notebook("%trace_cache step --diff 2 2").value)
    assert same == "step: traces #2 and #2 have the same signature and the same graph."


def test_diff_names_ops_that_only_one_trace_has(notebook):
    notebook(
        "@ll.function\ndef f(t, deep=False):\n    y = t + 1\n    if deep:\n        y = ll.exp(y)\n    return y * 2"
    )
    notebook("f(x)\nf(x, deep=True)")
    text = repr(notebook("%trace_cache f --diff 1 2").value)
    assert re.search(r"^In\[4\]:5 +exp +– +f32\[1,2\]$", text, re.MULTILINE)
    assert "add" not in text
    assert re.search(r"^deep +False +True", text, re.MULTILINE)


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_why_tells_of_every_cause_once_the_costliest_first(notebook):
    notebook("for n in range(2, 4):\n    step(ll.ones([n]))")
    said = repr(notebook("%trace_cache step --why").value)
    assert all(words in said for words in ("f32[2] -> f32[3]", "f32[1,2] -> f32[2]", "first call"))
    costs = [story.seconds for story in notebook("_").value.view.stories]
    assert costs == sorted(costs, reverse=True)
    notebook("for n in range(4, 14):\n    step(ll.ones([n]))")
    said = repr(notebook("%trace_cache step --why").value)
    assert said.count("`t` f32") == 2, "one for each cause"
    assert "11 traces for this reason (`t`, shape) cost " in said
    assert notebook("kept = %trace_cache step --why\nlen(kept.view.records)").value == 13


def test_clear(notebook):
    said = repr(notebook("%trace_cache step --clear").value)
    assert said == "step has forgotten 1 trace: its next call traces."
    assert notebook("len(step.trace_cache)").value == 0
    assert repr(notebook("%trace_cache step --clear").value) == "step has no traces to forget."
    assert notebook("%trace_cache step --clear --why").value is not None


def test_a_function_that_never_ran_has_no_cache_that_was_cleared(notebook):
    notebook(NETS)
    assert repr(notebook("%trace_cache never --why").value).startswith("`never` has not traced yet: call it once")
    notebook("%trace_cache never --clear")
    assert repr(notebook("%trace_cache --would never(x)").value) == "`never` would trace: first call."


def test_methods_and_functions_in_containers_have_names(notebook):
    notebook(NETS)
    notebook("net.forward(x)\nnets[0].forward(x[:, :1])")
    for name in ("net.forward", "nets[0].forward", "Net.forward", "by_name['f']"):
        assert "first call" in repr(notebook(f"%trace_cache {name} --why").value), name
    said = repr(notebook("%trace_cache net.forward --would net.forward(x[:, :1])").value)
    assert said.startswith("`forward` would trace: argument `t` f32[1,2] -> f32[1,1]")
    text = notebook("%%trace_cache nets[0].forward --max 0\nnet.forward(x[:, :1])").text
    assert text == "The cell made no trace."


def test_a_prediction_mends_the_call_that_was_written(notebook):
    said = repr(notebook("%trace_cache --would step(ll.astype(x, 'float64'))").value)
    assert said.endswith('Fix: call with step(ll.astype(x, "float32"))')


# --- %%trace_cache


def test_a_cell_that_keeps_its_promise(notebook):
    ran = notebook(
        "%%trace_cache step --expect 1 --max 2\nstep(ll.ones([3]))\nresult = step(ll.ones([3]))\nresult.shape"
    )
    assert ran.value == (3,)
    assert ran.text.startswith("The cell made 1 trace:\n- trace #2: `step` traced again at In[4] line 2")
    assert notebook("result.shape").value == (3,)
    assert notebook("%%trace_cache --expect 0\nstep(x)").text == "The cell made no trace."


def test_too_many_traces_are_explained(notebook):
    ran = notebook("%%trace_cache step --max 1\nfor n in (2, 3, 4):\n    step(ll.ones([n]))", fails=True)
    assert "TraceCountError: the cell made 3 traces of step, and at most 1 trace was expected. Too many:" in ran.out
    assert ran.out.count("- trace #") == 2
    assert "argument `t` f32[3] -> f32[4]" in ran.out
    assert "Traceback" not in ran.out


def test_too_few_traces(notebook):
    ran = notebook("%%trace_cache step --expect 2\nstep(x)", fails=True)
    assert "the cell made 0 traces of step, and exactly 2 traces were expected: the other calls found" in ran.out


def test_it_counts_a_function_that_the_cell_makes_and_all_without_a_name(notebook):
    notebook("%%trace_cache g --expect 1\ng = ll.function(lambda t: t)\ng(x)\nstep(ll.ones([5]))")
    assert notebook("%%trace_cache\ng(ll.ones([6]))\nstep(ll.ones([6]))").text.startswith("The cell made 2 traces:")


def test_above_a_staged_cell_and_below_another_magic(notebook):
    cell = "%%time\n%%trace_cache --expect {}\n%%stage inner\ny = x * 2\ny"
    assert notebook(cell.format(1)).value.numpy().tolist() == [[2.0, 4.0]]
    assert "4 ● staged" in notebook(cell.format(0)).text
    assert notebook("inner.trace_count").value == 1


def test_errors_point_at_the_cells_line(notebook):
    ran = notebook("%%trace_cache --expect 0\nn = 1\nn / 0", fails=True)
    assert "----> 3 n / 0" in ran.out
    assert "limelight_kernel" not in ran.out
    said = notebook("%%trace_cache --expect 0\nn = 1\nn = = 1", fails=True).out
    assert said.startswith("  Cell In[5], line 3\n    n = = 1\n")
    assert "SyntaxError: invalid syntax" in said


def test_what_cannot_be_counted_is_said_before_the_cell_runs(notebook):
    err = notebook("%%trace_cache x --max 1\nran = True", fails=True).err
    assert err.startswith("UsageError: 'x' is a Tensor, not a staged function")
    assert notebook("'ran' in dir()").value is False


def test_flags_of_the_line_magic_do_not_stand_on_a_cell(notebook):
    err = notebook("%%trace_cache step --clear\nx", fails=True).err
    assert err == "UsageError: %%trace_cache: --clear asks about no cell; write %trace_cache on a line of its own\n"
    assert "-1 is too few" in notebook("%%trace_cache --max -1\nx", fails=True).err


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_why_of_one_trace(notebook):
    notebook("for n in range(2, 5):\n    step(ll.ones([n]))")
    (story,) = notebook("%trace_cache step --why 3").value.view.stories
    assert "f32[2] -> f32[3]" in str(story)
    assert "traces for this reason" not in str(story)
    assert "first call" in repr(notebook("%trace_cache --why #1 step").value)
    assert "first call" in repr(notebook("%trace_cache --why step").value), "the word after --why may be NAME"
    error = notebook("%trace_cache step --why 9", fails=True).err
    assert "why step made trace #9 is not known; it is of #1 to #4" in error
    assert "'nine' is no number of a trace" in notebook("%trace_cache step --why nine", fails=True).err


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
def test_traces_and_causes_in_another_order(notebook):
    notebook("for n in (2, 3, 3, 3, 2):\n    step(ll.ones([n]))")
    rows = "[e['hits'] for e in _v.state()['functions'][0]['entries']]"
    notebook("_v = %trace_cache step --sort count")
    assert notebook(rows).value == sorted(notebook(rows).value, reverse=True)
    notebook("_v = %trace_cache step --sort cost")
    seconds = notebook(rows.replace("hits", "seconds")).value
    assert seconds == sorted(seconds, reverse=True)
    table = repr(notebook("%trace_cache step --sort count --text").value)
    assert table.index("#3") < table.index("#1")
    counts = [one.count for one in notebook("%trace_cache step --why --sort count").value.view.stories]
    assert counts == sorted(counts, reverse=True)
    latest = str(notebook("%trace_cache step --why --sort time").value.view.stories[0])
    assert "f32[2] -> f32[3]" in latest


def test_functions_of_the_library_are_shown_when_asked_for(notebook):
    names = "{f['name'] for f in %s.state()['functions']} & {'cell', 'gradient_of_cell'}"
    notebook("_v = %trace_cache\n_w = %trace_cache --all\n_v._feed.open(), _w._feed.open()")
    try:
        notebook("%%stage -g -q -o ran cell\n(x * x).sum()")
        assert notebook(names % "_v").value == {"cell"}, "one that was staged while it is open is not met either"
        assert notebook(names % "_w").value == {"cell", "gradient_of_cell"}
    finally:
        notebook("_v._feed.close(), _w._feed.close()")
    notebook("_v = %trace_cache\n_w = %trace_cache --all")
    assert notebook(names % "_v").value == {"cell"}
    assert notebook(names % "_w").value == {"cell", "gradient_of_cell"}
    assert "it is about all functions" in notebook("%trace_cache --all step", fails=True).err
