"""Calls of modules, methods and functions that are not staged, on the lines of magics."""

from __future__ import annotations

import pytest

SETUP = """
import limelight as ll
class Net(ll.Module):
    def __init__(self):
        self.conv1, self.head = ll.nn.Conv(2, 3), ll.nn.Dense(3)
    def call(self, image):
        h = ll.nn.relu(self.conv1(image))
        return self.head(h.reshape((h.shape[0], -1)))
net, x = Net(), ll.ones((2, 4, 4, 1))
def plain(v):
    return ll.log(v) * 2.0
"""


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run(SETUP)
    return run


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%graph net(x) --text", ("Graph of net: ", "conv1.kernel", "head.bias", "conv   image")),
        ("%graph net.head(x) --text", ("Graph of net.head: ", "matmul")),
        ("%graph plain(x) --text --overlay nan", ("Graph of plain: ", "log")),
        ("%graph (lambda v: v + 1)(x) --text", ("add",)),
        ("%steps net(x) --text", ("`net` in", "self.conv1(image)")),
        ("%explain --nan net(x)", ("all numbers of `net` are finite",)),
        ("%explain --nan plain(x - 1)", ("comes from log",)),
        ("%explain --pure net(x)", ("`net` traced twice alike",)),
        ("%tape --check net(x)", ("`image`", "`conv1.kernel`", "`head.bias`")),
        ("%tape --flow net(x)", ("Gradient of net", "matmul")),
        ("%tape --recompute net(x)", ("Kept for the gradient of net",)),
    ],
)
def test_a_call_of_what_is_not_staged_is_staged_for_the_question(notebook, line, says):
    ran = notebook(line)
    said = " ".join((repr(ran.value) + ran.text).split())
    for words in says:
        assert " ".join(words.split()) in said, said


def test_the_view_lives_on_and_is_drawn(notebook):
    assert "conv1.kernel" in notebook("%graph net(x)").value.static().text
    assert [layer.output for _, layer in notebook("net.summary()").value.root.walk()][1] == "f32[?,4,4,2]"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%graph net", "write a call of it, as in %graph net(x), or stage it with ll.function(net)"),
        ("%steps plain", "write a call of it, as in %steps plain(x)"),
        ("%trace_cache net", "stage it with ll.function(net)"),
        ("%dashboard net", "stage it with ll.function(net)"),
        ("%trace_cache --would net(x)", "no call of it is ever traced; write staged = ll.function(net)"),
        ("%graph nosuch(1)", "%graph 'nosuch(1)': NameError"),
        ("%graph Net(x)", "'Net' is a class: make an object of it"),
        ("%graph ll", "'ll' is a Python module, not a staged function"),
        ("%explain --nan net(x) --text", "--text goes before --nan"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(notebook, line, says):
    assert says in str(notebook(line, fails=True).error)


def test_the_gradient_of_a_cell_is_that_of_its_result_alone(notebook):
    notebook("w = ll.constant([1.0, 3.0])")
    notebook("%%stage named -q\nloss = (w * w).sum()\nloss")
    steps = notebook("%steps --grad named").value.recording
    assert str(steps.of("backward")[-1].value) == "f32[2] = 2, 6"
    notebook("%tape -o flow --flow named()")
    assert notebook("flow").value.steps[-1].norm == pytest.approx((4 + 36) ** 0.5)
    assert "agrees" in repr(notebook("%tape --check named()").value)
    notebook("%%stage unnamed -q\na = w * 2.0\nb = a")  # no result: each value once
    assert str(notebook("%steps --grad unnamed").value.recording.of("backward")[-1].value) == "f32[2] = 2, 2"


def test_what_a_call_of_a_cell_returns_is_told_in_lines_and_hints(notebook):
    notebook("%%stage cell -q\nbig = ll.ones((100, 100)) * x.sum()\nloss = big.mean()\nloss")
    ran = notebook("cell()")
    lines = [" ".join(line.split()) for line in repr(ran.value).splitlines()]
    assert lines == [
        "CellOutputs", "outputs['big'] f32[100,100]", "outputs['loss'] f32[] = 32.0", "result f32[] = 32.0"
    ]  # fmt: skip
    outputs, result = ran.value
    assert outputs["loss"] is ran.value[0]["loss"]
    assert result is ran.value[1]
    assert "write .outputs['loss']" in str(notebook("cell().loss", fails=True).error)
    assert "write .outputs['loss']" in str(notebook("cell()['loss']", fails=True).error)
    shown = notebook("cell().los", fails=True)
    assert "calling.py" not in shown.out
    assert "'big', 'loss'" in str(shown.error)


def test_a_variable_is_named_by_its_path_where_an_update_fails(notebook):
    notebook("net(x)\nadam = ll.optim.Adam(0.1)")
    said = str(notebook("adam.apply([None] * 4, net.variables)", fails=True).error)
    assert "('conv1.kernel', 'conv1.bias', 'head.kernel', 'head.bias')" in said
    said = str(notebook("adam.apply([ll.ones(7)], [net.head.bias])", fails=True).error)
    assert "variable 'head.bias' has shape (7,)" in said


def test_all_causes_of_traces_are_told(notebook):
    notebook("f = ll.function(lambda v, k: v * k)")
    notebook("f(ll.ones(2), 1.0)\nf(ll.ones(3), 1.0)\nf(ll.ones(3), 2.0)")
    said = notebook("str(ll.explain.retrace(f))").value
    assert "3 traces have 3 causes" in said
    assert "f32[2] -> f32[3]" in said


def test_functions_staged_for_a_question_are_no_users_functions_and_keep_nothing(notebook, shell):
    notebook("def unusual(v):\n    return v * 3.0\nunusual_net = net")
    notebook("%explain --nan unusual(x)\n%graph unusual_net(x)\nf = ll.function(unusual)\nf(x)")
    names = [one["name"] for one in notebook("%trace_cache").value.state()["functions"]]
    assert [name for name in names if "unusual" in name] == ["unusual"]
    notebook("%%stage cell -q\ny = x * 2.0\ny.sum()")
    notebook("big = ll.ones((300, 300))")
    notebook("%%stage reads -q\nbig.sum()")
    notebook("%tape --flow reads()")
    notebook("del big")
    assert "f32[300,300]" not in repr(notebook("%devices --live --text").value)


def test_answers_quote_the_magic_as_it_was_typed(notebook):
    said = repr(notebook("y = 1\n%explain --nan ll.log(x - 1.0)").value)
    assert "%explain --nan ll.log(x - 1.0)" in " ".join(said.split())
    assert "run_line_magic" not in said


def test_lines_of_the_views_are_no_steps(notebook):
    notebook("net(x)\n%trace_cache")  # a view that follows what is traced
    steps = notebook("%steps net(x)").value.recording
    assert [step.text.strip() for step in steps.of("trace")] == [
        "h = ll.nn.relu(self.conv1(image))",
        "return self.head(h.reshape((h.shape[0], -1)))",
    ]


def test_records_of_a_tape_name_variables_by_their_paths(notebook):
    notebook("with ll.GradientTape() as tape:\n    y = net(x)")
    inputs = [text for entry in notebook("tape.entries").value for text in entry.inputs]
    assert "conv1.kernel f32[3,3,1,2]" in inputs
    assert "head.bias f32[3]" in inputs


@pytest.mark.parametrize("magic", ["%steps", "%tape --flow", "%explain --nan"])
def test_a_lambda_on_the_line_of_a_magic_has_that_line(run, magic):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones((2,))")
    call = "(lambda t: ll.log(t - t))(x)"
    said = repr(run(f"# ü {call}\n{magic} {call}").value)
    assert ("In[2]:2" in said) or ("In[2] line 2: " + magic in said)


def test_below_another_magic_too(run):
    run("%load_ext limelight\nimport limelight as ll\nx = ll.ones((2,))")
    said = repr(run("%%time\n\n%explain --nan (lambda t: ll.log(t - t))(x)").value)
    assert "In[2] line 3: %explain" in said
