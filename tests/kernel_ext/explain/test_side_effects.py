"""What helpers of a staged cell do besides computing: to globals, to lists, while it is timed."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nfrom limelight import nn\nx = ll.constant([1.0, 2.0])")
    return run


def said(ran):
    return " ".join(ran.text.split())


def test_a_global_that_a_helper_sets_is_the_notebooks(notebook):
    notebook("steps = 0\ndef counted(t):\n    global steps\n    steps += 1\n    return t * steps")
    assert notebook("%%stage f\ncounted(x).sum()").value.item() == 3.0
    assert notebook("steps").value == 1
    assert notebook("%%stage f\ncounted(x).sum()").value.item() == 6.0
    assert notebook("steps").value == 2
    notebook("f()")
    assert notebook("steps").value == 2, "a call assigns nothing"


def test_a_tensor_that_a_helper_sets_is_an_output(notebook):
    notebook("total = ll.zeros([2])\ndef add(t):\n    global total\n    total = total + t")
    notebook("%%stage f\nadd(x)")
    assert "cache hit" in notebook("%%stage f\nadd(x)").text
    assert notebook("total.numpy().tolist()").value == [2.0, 4.0]


def test_an_error_leaves_the_global_as_it_was(notebook):
    notebook("steps = 0\ndef counted(t):\n    global steps\n    steps += 1\n    return t @ t @ t")
    notebook("%%stage f\ncounted(x)", fails=True)
    assert notebook("steps").value == 0


def test_a_cell_that_changes_its_own_input_is_told_so(notebook):
    notebook("history = []\ndef h(t):\n    history.append(1)\n    return t * 2")
    notebook("%%stage f\nh(x)")
    text = said(notebook("%%stage f\nh(x)"))
    assert (
        "The cell changes `history` itself (In[3] line 3: history.append(1)), so running it leads to another trace"
        in text
    )
    assert "ll.stack" not in text
    assert "`history` itself" in str(notebook("f.explain()").value)
    notebook("%%stage --max-traces 1 g\nh(x)")
    error = notebook("%%stage --max-traces 1 g\nh(x)", fails=True).error
    assert "The cell changes `history` itself" in str(error)


def test_an_input_that_others_change_is_none_of_the_cells(notebook):
    notebook("history, seen = [], {1}\ndef h(t):\n    seen.add(1)\n    return t * (1 + len(history))")
    notebook("%%stage f\nh(x)")
    notebook("history.append(1)")
    assert "itself" not in said(notebook("%%stage f\nh(x)"))


@pytest.mark.parametrize(
    ("code", "helper", "count"),
    [
        (
            "class M:\n    def go(self, t):\n        self.n = 1\n        return t * 2\nm = M()",
            "m.go",
            "m.n",
        ),
        (
            "import os, tempfile\npath = tempfile.mktemp()\ndef go(t):\n    with open(path, 'a') as f:\n"
            "        f.write('.')\n    return t * 2",
            "go",
            "os.path.getsize(path)",
        ),
    ],
)
def test_times_do_not_repeat_what_python_does_besides(notebook, code, helper, count):
    notebook(code)
    ran = notebook(f"%%stage -t -o ran f\n{helper}(x)")
    assert notebook(count).value == 1
    assert "Eager Python is not timed, since runs would repeat `" in said(ran)
    assert notebook("ran.times.cached is not None and ran.times.eager is None").value


def test_times_leave_the_hosts_random_stream_alone(notebook):
    notebook("import numpy as np\ndef noisy(t):\n    return t * np.random.uniform()")
    notebook("np.random.seed(0)\nnp.random.uniform()\nexpected = np.random.uniform()\nnp.random.seed(0)")
    notebook("%%stage -t f\nnoisy(x)")
    assert notebook("np.random.uniform() == expected").value


def test_prints_do_not_keep_a_cell_from_being_timed(notebook):
    ran = notebook("%%stage -t -o ran f\nprint('once')\ny = x * 2")
    assert ran.out == "once\n"
    assert notebook("ran.times.eager is not None").value


def test_gradients_of_variables_that_share_a_name(notebook):
    notebook("v1 = ll.Variable(2.0, name='v')\nv2 = ll.Variable(3.0, name='v')")
    notebook("%%stage -g -o ran\nv1 * v2 * v2")
    assert notebook("[one.row for one in ran.gradients.found]").value == [("v1", "f32[]", "9"), ("v2", "f32[]", "12")]


def test_variables_that_the_notebook_cannot_name_are_numbered(notebook):
    notebook(
        "def make():\n    a, b = ll.Variable(2.0, name='v'), ll.Variable(3.0, name='v')\n    return lambda: a * b * b"
    )
    notebook("g = make()")
    notebook("%%stage -g -o ran\ng()")
    assert notebook("[one.row[::2] for one in ran.gradients.found]").value == [("v", "9"), ("v (2)", "12")]


def test_variables_in_modules_have_the_modules_path(notebook):
    notebook("net = nn.Sequential(nn.Dense(32), nn.Dense(3))")
    notebook("%%stage -g -o ran\nnet(ll.reshape(x, [1, 2])).sum()")
    kernels = [f"net.layers/{i}/{name}" for i in range(2) for name in ("kernel", "bias")]
    assert notebook("[one.name for one in ran.gradients.found]").value == ["x", *kernels]
    assert notebook("[one.value.shape for one in ran.gradients.found[1:]]").value == [(2, 32), (32,), (32, 3), (3,)]


def test_a_decision_by_a_tensor_offers_the_flag_of_the_cell(notebook):
    ran = notebook("%%stage f\nif x.sum() > 0:\n    y = x", fails=True)
    assert "`%%stage f --autograph`" in ran.out
    assert "ll.function" not in ran.out
    assert notebook("%%stage f --autograph\nif x.sum() > 0:\n    x = -x\nx").value.numpy().tolist() == [-1.0, -2.0]


def test_a_module_is_no_input_to_name(notebook):
    notebook("%%stage f\nll.exp(x)")
    assert "unexpected input 'z'; its inputs are x (" in str(notebook("f(z=1)", fails=True).error)
    assert notebook("%%stage -i qq f\nll.exp(x)", fails=None).err.rstrip().endswith("'qq'; its inputs are x")


def test_force_on_a_cell_that_was_never_traced_clears_nothing(notebook):
    ran = notebook("%%stage -f f\nx + 1")
    assert said(ran).startswith("f: traced (")
    assert "the cache was cleared" in said(notebook("%%stage -f f\nx + 1"))


def test_gradients_of_a_variable_that_the_cell_reads_and_a_helper_closes_over(notebook):
    notebook("v = ll.Variable(2.0)\ndef make(w):\n    return lambda: w * 3.0\ng = make(v)")
    notebook("%%stage -g -o ran\nx.sum() * g() * v")
    assert notebook("{one.name: one.row[2] for one in ran.gradients.found}").value == {"x": "norm 16.97", "v": "36"}
    assert notebook("ran.gradient_graph is not None").value


def test_variables_in_lists_that_an_object_has(notebook):
    notebook("class Pair: pass\np = Pair()\np.both = [ll.Variable(2.0, name='q'), ll.Variable(3.0, name='q')]")
    notebook("%%stage -g -o ran\np.both[0] * p.both[1]")
    assert notebook("[one.name for one in ran.gradients.found]").value == ["p.both[0]", "p.both[1]"]


def test_a_decision_in_a_staged_function_that_the_cell_calls_is_that_functions(notebook):
    notebook("@ll.function(autograph=False)\ndef inner(t):\n    return t if t.sum() > 0 else -t")
    ran = notebook("%%stage f\ninner(x)", fails=True)
    assert "ll.function(autograph=True)" in ran.out
    assert "--autograph" not in ran.out
