"""What a reader may not expect of a staged cell: said at its line, forbidden by `--strict`, told by `%explain`."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nimport numpy as np\nx = ll.constant([[1.0, 2.0]])\nseen = []")
    run("class Config:\n    rate = 0.5\nconfig = Config()")
    return run


def flat(text):
    return " ".join(text.split())


def test_side_effects_of_tracing_stand_under_their_lines(notebook):
    ran = notebook("%%stage -o ran\nprint('hello')\nnoise = np.random.normal()\ny = x + noise\nseen.append(1)")
    lines = notebook("ran.lines").value
    assert [bool(line.remarks) for line in lines] == [True, True, False, True]
    assert lines[3].remarks == ("↩ written back at each run: `seen`",)
    text = flat(ran.text)
    assert "2 ○ trace-time only print('hello') ⚠ print: `print(...)` prints once for each trace" in text
    assert "⚠ host randomness: `np.random.normal(...)` draws once for each trace" in text
    assert "Instead: `ll.random.normal()`, which draws anew at each call" in text
    assert "⚠ mutation" not in text, "the list is changed at each run"
    assert "(In[" not in text.partition("Graph of")[0], "a remark stands at its line and need not name it"
    assert max(map(len, ran.text.splitlines())) <= 80
    html = ran.shown[0].data["text/html"]
    assert "<br>⚠ print: <code>print(...)</code> prints once" in html
    assert json.loads(json.dumps(notebook("ran.to_dict()").value))["lines"][0]["remarks"]


def test_those_of_helpers_name_their_place(notebook):
    notebook("def helper(t):\n    print('inside')\n    return t + 1")
    text = flat(notebook("%%stage\ny = helper(x)").text)
    assert "⚠ print: `print(...)` prints once for each trace, and not on calls that find it (In[4] line 2" in text


def test_a_value_read_through_an_object_makes_another_trace(notebook):
    cell = "%%stage step\ny = x * config.rate\ny"
    assert "⚠" not in notebook(cell).text
    notebook("config.rate = 0.25")
    ran = notebook(cell)
    assert ran.value.numpy().tolist() == [[0.25, 0.5]]
    assert "traced again at In[6] line 1: argument `config.rate` 0.5 -> 0.25" in flat(ran.text)
    assert "⚠" not in ran.text
    notebook("config.rate = 0.5")
    assert "cache hit on trace #1" in notebook(cell).text


def test_the_printed_fix_helps(notebook):
    cell = "%%stage step\ny = x * rate\ny"
    notebook("rate = config.rate")
    notebook(cell)
    notebook("config.rate = 0.25\nrate = config.rate")
    assert notebook(cell).value.numpy().tolist() == [[0.25, 0.5]]


def test_names_that_the_cell_reads_are_inputs_and_never_out_of_date(notebook):
    notebook("rate = 0.5\ndef helper(t):\n    return t * rate")
    cell = "%%stage step\ny = helper(x) * rate"
    notebook(cell)
    notebook("rate = 0.25")
    assert "⚠" not in notebook(cell).text


def test_strict_forbids_them(notebook):
    cell = "%%stage --strict step\nprint('hello')\ny = x * 2"
    for _ in range(2):
        ran = notebook(cell, fails=True)
        assert "StrictError: `step` does what --strict forbids" in ran.out
        assert "- line 2: `print(...)` prints once for each trace" in ran.out
        assert "Traceback" not in ran.out
    assert notebook("'y' in dir(), 'step' in dir()").value == (False, False)


def test_strict_takes_what_each_run_does(notebook):
    notebook("seen = []")
    for _ in range(2):
        notebook("%%stage --strict step\nseen.append(1)\ny = x * 2")
    assert notebook("seen").value == [1, 1]


def test_a_strict_cell_without_surprises_runs_once(notebook):
    notebook("v = ll.Variable(1.0)")
    ran = notebook("%%stage --strict step\nv.assign_add(1.0)\ny = x * v\ny")
    assert ran.value.numpy().tolist() == [[2.0, 4.0]]
    assert "step: traced (" in ran.text
    assert notebook("step.trace_count").value == 1


# --- control flow


def test_autograph_stages_python_control_flow(notebook):
    cell = "%%stage --autograph flow\nif ll.sum(x) > 0:\n    y = x * 2\nelse:\n    y = -x\ny"
    ran = notebook(cell)
    assert ran.value.numpy().tolist() == [[2.0, 4.0]]
    assert "2 ● staged           if ll.sum(x) > 0:" in ran.text
    copied = notebook("%%stage --autograph\nif ll.sum(x) > 0:\n    z = x\nelse:\n    z = -x\nif 1 > 0:\n    q = 1").text
    assert "3 ● staged               z = x" in copied, "it belongs to the branch, although it makes no op"
    assert "7 ○ trace-time only      q = 1" in copied
    notebook("x = -x")
    ran = notebook(cell)
    assert "cache hit" in ran.text
    assert ran.value.numpy().tolist() == [[1.0, 2.0]]
    assert notebook(cell.replace(" --autograph", ""), fails=True).error is not None


# --- %explain


def test_explain_says_all_of_it(notebook):
    notebook("%%stage -q step\nprint('hello')\ny = x * config.rate")
    notebook("x = ll.ones([3, 2])\nstep()\nconfig.rate = 0.25")
    text = flat(repr(notebook("%explain step -o kept").value))
    assert "`step` traced again at In[5] line 2: argument `x` f32[1,2] -> f32[3,2]" in text
    assert "`print(...)` prints once for each trace" in text
    assert "`step` has no values baked in" in text
    assert set(notebook("kept.to_dict()").value) == {"retrace", "side_effects", "baked"}
    assert repr(notebook("%explain").value).startswith("`step` traced again")


def test_explain_finds_the_first_nan(notebook):
    notebook("%%stage -q step\nz = x * 0\ny = ll.log(z) + 1")
    text = repr(notebook("%explain --nan step()").value)
    assert text.startswith("`step`: the first number that is not finite comes from log (In[4] line 3")
    assert notebook("step.trace_count").value == 1
    notebook("f = ll.function(lambda t: ll.sqrt(t))")
    assert "comes from sqrt" in repr(notebook("%explain --nan f(-x)").value)
    assert repr(notebook("%explain --nan f(x)").value) == "all numbers of `<lambda>` are finite for these arguments"


def test_explain_traces_twice_and_tells_what_differs(notebook):
    notebook("import itertools\ncount = itertools.count()")
    notebook("f = ll.function(lambda t: t + float(next(count)), name='f')")
    assert "constant: 1.0, then 2.0" in repr(notebook("%explain --pure f(x)").value)
    notebook("%%stage -q step\ny = x * 2 + np.random.normal()")
    said = flat(repr(notebook("%explain --pure step()").value))
    assert said.startswith("`step` did not trace twice alike")
    assert "host randomness" in said or "draws once for each trace" in said
    assert notebook("step.trace_count, step()[0]['y'].shape").value == (1, (1, 2))


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
@pytest.mark.slow  # looks through all objects of the process
def test_explain_lists_what_something_has_kept(notebook):
    notebook("@ll.function\ndef f(t):\n    seen.append(t + 1)\n    return t\nf(x);")
    assert "kept as" in repr(notebook("%explain f --leaks").value)
    notebook("seen.clear()")
    assert repr(notebook("%explain f --leaks").value) == "no symbolic tensor has outlived its trace"


def test_one_switch_shows_the_librarys_frames(notebook):
    notebook("f = ll.function(lambda t: t @ t)")
    assert "limelight" not in notebook("f(ll.ones([2, 3]))", fails=True).out.replace("limelight.errors", "")
    notebook("ll.config.show_library_frames()")
    try:
        assert "engine/limelight/" in notebook("f(ll.ones([2, 3]))", fails=True).out
    finally:
        notebook("ll.config.show_library_frames(False)")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%explain x", "'x' is a Tensor, not a staged function"),
        ("%explain --nan f", "'f' is no call; write one, as in --nan step(x[:3], 0.1)"),
        ("%explain --nan len(x)", "'len' is built in"),
        ("%explain --nann", "did you mean '--nan'?"),
    ],
)
def test_usage_errors_are_one_line(notebook, line, words):
    ran = notebook(line, fails=True)
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_nothing_to_explain(notebook):
    assert "No function is staged yet" in repr(notebook("%explain").value)


def test_an_input_is_not_baked_in(notebook):
    notebook("rate = 0.1\noptions = {'rate': 0.5}\nclass Net:\n    rate = 1.0\nnet = Net()")
    notebook("def helper(t):\n    return t * rate * options['rate']")
    notebook("%%stage step\ny = helper(x) * rate * options['rate'] * net.rate")
    notebook("Net.rate = 4.0")
    assert notebook("ll.explain.baked(step).changed").value == (), "it is compared on each call"
    notebook("net.rate = 1.0\nrate = 0.2\noptions = {'rate': 0.7}\nouts = step()")
    assert notebook("ll.explain.baked(step).changed").value == ()
    notebook("net = Net()\nouts = step()")
    assert notebook("ll.explain.baked(step).changed").value == ()
    assert "does not see" not in notebook("%trace_cache step --why").text
    assert notebook("step.trace_count").value == 3


def test_what_a_spec_makes_an_input_is_not_baked_in(notebook):
    notebook("lr = 0.1")
    notebook('%%stage step -s "lr=ll.TensorSpec([])"\ny = x * lr')
    notebook("lr = 0.2")
    assert notebook("ll.explain.baked(step).records").value == ()


def test_the_code_told_for_a_cell_has_its_names_and_runs(notebook):
    text = flat(notebook("%%stage step\ny = x * 2\nprint('y is', y, x)\ny").text)
    code = "ll.py_func(lambda y, x: print('y is', y, x), [y, x], None)"
    assert code in text
    assert "y is ll.Tensor( [[2., 4.]]" in flat(notebook(f"%%stage other\ny = x * 2\n{code}\ny").out)


def test_a_list_that_is_changed_at_each_run_is_no_surprise(notebook):
    notebook("seen = []")
    text = " ".join(notebook("%%stage step\ny = x * 2\nseen.append(y)\ny").text.split())
    assert "Instead" not in text
    assert "seen.append" not in " ".join(str(notebook("%explain step").value).split())
    assert notebook("[one.numpy().tolist() for one in seen]").value == [[[2.0, 4.0]]]


def test_what_cannot_be_read_is_told_where_the_cell_names_it(notebook):
    notebook("made = {'seen': seen}\nexec('def helper(t):\\n    seen.append(1)\\n    return t * 2', made)")
    notebook("helper = made['helper']")
    ran = notebook("%%stage -o ran\nz = x + 1\ny = helper(z)")
    said = "⚠ not known: What `helper` (<string> line 1) does is not known: its source cannot be read."
    assert flat(ran.text).count(said) == 1
    kinds = [(one.line, one.kind) for one in notebook("ran.surprises").value]
    assert kinds == [(3, "not known"), (0, "mutation")], "what its instructions tell is told besides"
    notebook("exec('def helper(t):\\n    return t * 2', made)\nhelper = made['helper']")
    assert said in flat(notebook("%%stage --strict\ny = helper(x)").text), "shown, and not refused"


def test_what_cannot_be_read_is_not_run_again_for_its_times(notebook):
    notebook("made = {'seen': seen}\nexec('def helper(t):\\n    seen.append(1)\\n    return t * 2', made)")
    notebook("helper = made['helper']")
    text = flat(notebook("%%stage --time\ny = helper(x)").text)
    assert "Eager Python is not timed, since runs would repeat `seen.append(...)` (<string> line 2)." in text
    assert notebook("len(seen)").value == 1
    notebook("exec('def helper(t):\\n    return t * 2', made)\nhelper = made['helper']")
    text = flat(notebook("%%stage --time\ny = helper(x)").text)
    assert "Eager Python is not timed. What `helper` (<string> line 1) does is not known" in text
