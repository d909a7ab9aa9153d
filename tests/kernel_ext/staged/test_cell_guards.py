"""Calls of a staged cell that are like an earlier one: what they cost, and that no change goes unseen."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from limelight_kernel.staged.cell_guards import HITS, MOST_FORMS

TRAINING = """
import limelight as ll
net, opt = ll.nn.Sequential([ll.nn.Dense(4, activation="relu"), ll.nn.Dense(2)]), ll.optim.Adam(1e-3)
images, labels = ll.ones((3, 5)), ll.constant([0, 1, 1])
w = ll.Variable(ll.ones((5, 2)))
built = net(images)
def loss_of(logits, labels):
    return ll.nn.softmax_cross_entropy(logits, labels).mean()
@ll.function
def train(images, labels):
    with ll.GradientTape() as tape:
        loss = loss_of(net(images), labels)
    gradients = tape.gradient(loss, net.trainable_variables)
    opt.apply(gradients, net.trainable_variables)
    return loss
"""
STEP = """%%stage step -q
with ll.GradientTape() as tape:
    loss = loss_of(net(images), labels)
gradients = tape.gradient(loss, net.trainable_variables)
opt.apply(gradients, net.trainable_variables)
loss
"""


def calls(work: Any) -> list[str]:
    """The Python functions that `work` calls once it is warm."""
    for _ in range(HITS + 3):
        work()
    called: list[str] = []

    def count(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nimport numpy as np\nfrom types import SimpleNamespace\nx = ll.ones(2)")
    return run


def staged(notebook, cell):
    """The staged cell `step`, which has run once."""
    notebook(f"%%stage step -q\n{cell}")
    return notebook("step").value


@pytest.mark.parametrize("give", ["step(images=images, labels=labels)", "step(images, labels)", "step()"])
@pytest.mark.parametrize(
    "specs", ["", " -s 'images=ll.TensorSpec((None, 5))' -s 'labels=ll.TensorSpec((None,), \"int32\")'"]
)
def test_a_step_of_training_calls_little_more_than_the_function(notebook, give, specs):
    notebook(TRAINING)
    notebook(STEP.replace(" -q", f" -q{specs}"))
    names: dict[str, Any] = notebook("globals()").value
    code = compile(give, "<call>", "eval")
    of_function = calls(lambda: names["train"](names["images"], names["labels"]))
    of_cell = calls(lambda: eval(code, names))
    assert len(of_cell) <= len(of_function) + 30, of_cell  # 190 more where the notebook was looked at anew


# What the cell reads, the cell, and what may change between two calls; `y` must be what the plain cell makes.
CHANGES = {
    "a tensor": ("", "y = x * 2.0", "x = ll.zeros(2)"),
    "a shape": ("", "y = x * 2.0", "x = ll.zeros(3)"),
    "a dtype": ("", "y = x * 2", "x = ll.constant([1, 2])"),
    "a tensor to a number": ("", "y = x * 2.0 + ll.zeros(2)", "x = 3.0"),
    "a number": ("n = 2.0", "y = x * n", "n = 3.0"),
    "the sign of zero": ("n = 0.0", "y = x / ll.constant(n)", "n = -0.0"),
    "a scalar of NumPy's": ("n = np.int64(2)", "y = x * int(n)", "n = np.int64(3)"),
    "an array's numbers": ("a = np.ones(2, 'float32')", "y = x + a", "a[0] = 5.0"),
    "an array's shape": ("a = np.ones(2, 'float32')", "y = x.sum() + a", "a = np.ones(3, 'float32')"),
    "an array of strings": ("a = np.array(['p', 'q'])", "y = x * len(a[0])", "a[0] = 'r'; a = np.array(['rrr'])"),
    "a value in an array of objects": ("a = np.array([2, 3], object)", "y = x * a[0]", "a[0] = 5"),
    "a variable's value": ("v = ll.Variable(2.0)", "y = x * v", "v.assign(3.0)"),
    "another variable": ("v = ll.Variable(2.0)", "y = x * v", "v = ll.Variable(3.0)"),
    "variables exchanged": ("v, w = ll.Variable(2.0), ll.Variable(3.0)", "y = x * v - w", "v, w = w, v"),
    "one variable by two names": ("v, w = ll.Variable(2.0), ll.Variable(3.0)", "v.assign(7.0)\ny = x * w", "w = v"),
    "a closed-over variable": (
        "v = ll.Variable(2.0)\ndef f(x): return x * v",
        "y = f(x)",
        "v = ll.Variable(5.0)",
    ),
    "an element": ("ws = [ll.Variable(2.0), ll.Variable(3.0)]", "y = x * ws[0]", "ws[0] = ll.Variable(4.0)"),
    "elements exchanged": ("ws = [ll.Variable(2.0), ll.Variable(3.0)]", "y = x * ws[0]", "ws.reverse()"),
    "an element more": ("ts = [x, x * 2.0]", "y = sum(ts)", "ts.append(x)"),
    "a plain element": ("ns = [2.0, 3.0]", "y = x * ns[0]", "ns[0] = 4.0"),
    "an item": ("d = {'a': x, 'k': 2.0}", "y = d['a'] * d['k']", "d['k'] = 4.0"),
    "an item's name": ("d = {'a': 2.0}", "y = x * sum(len(k) for k in d)", "d = {'aaa': 2.0}"),
    "the order of items": ("d = {'a': 2.0, 'b': x}", "y = x * [*d].index('a')", "d['a'] = d.pop('a')"),
    "one of a thousand tensors": ("many = [x] * 1000", "y = many[7] * 2.0", "many[7] = x * 3.0"),
    "an inner container": ("d = {'a': [2.0, x]}", "y = d['a'][0] * d['a'][1]", "d['a'][0] = 5.0"),
    "a list by two names": ("a, b = [x, x], [x, x]", "a[0] = a[0] * 3.0\ny = b[0] + a[0]", "b = a"),
    "a function": ("def f(x): return x * 2.0", "y = f(x)", "def f(x): return x * 3.0"),
    "what a default holds": ("def f(x, k=[2.0]): return x * k[0]", "y = f(x)", "f.__defaults__[0][0] = 3.0"),
    "a helper's global": ("scale = 2.0\ndef f(x): return x * scale", "y = f(x)", "scale = 3.0"),
    "a helper that reads more": (
        "scale = 2.0\ndef f(x): return x",
        "y = f(x)",
        "def f(x): return x * scale",
    ),
    "a closure": (
        "def make(k):\n    def f(x): return x * k[0]\n    return f\nkept = [2.0]\nf = make(kept)",
        "y = f(x)",
        "kept[0] = 3.0",
    ),
    "an attribute": ("cfg = SimpleNamespace(rate=2.0)", "y = x * cfg.rate", "cfg.rate = 3.0"),
    "a tensor in an object": ("cfg = SimpleNamespace(t=x * 2.0)", "y = x * cfg.t", "cfg.t = ll.zeros(2)"),
    "a tensor's shape in an object": ("cfg = SimpleNamespace(t=x * 2.0)", "y = x.sum() * cfg.t", "cfg.t = ll.zeros(3)"),
    "a list in an object": ("cfg = SimpleNamespace(ks=[2.0])", "y = x * cfg.ks[0]", "cfg.ks[0] = 3.0"),
    "an object": ("class C: k = 2.0\nc = C()", "y = x * c.k", "c = C(); c.k = 3.0"),
    "a class": ("class C: k = 2.0", "y = x * C.k", "C.k = 3.0"),
    "a module": ("import math as m", "y = x * m.floor(2.5)", "m = SimpleNamespace(floor=lambda x: 7.0)"),
    "a name that hides a builtin": ("", "y = x * len('ab')", "def len(x): return 7.0"),
    "a name that comes up": ("", "y = x * (scale if 'scale' in globals() else 2.0)", "scale = 3.0"),
    "a method": (
        "class C:\n    def f(self, x): return x * 2.0\nc = C()",
        "y = c.f(x)",
        "C.f = lambda self, x: x * 3.0",
    ),
    "a set": ("s = {2.0}", "y = x * sum(s)", "s.add(3.0)"),
    "an identity": ("a = b = x", "y = x * (1.0 if a is b else 2.0)", "b = ll.ones(2)"),
    "a list added to that holds an input": (
        "seen, a = [], [x]",
        "seen.append(x)\na[0] = a[0] * 2.0\ny = a[0]",
        "seen.append(a)",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(notebook, change):
    made, cell, changed = CHANGES[change]
    for names in ("plain", "staged"):
        runs = cell if names == "plain" else f"%%stage step -q\n{cell}"
        notebook("x = ll.ones(2)\n" + made)
        for _ in range(HITS + 3):
            notebook(runs)
        notebook(changed)
        seen = []
        for _ in range(2):
            notebook(runs)
            seen.append(notebook("np.copysign(1.0, y.numpy()).tolist(), y.tolist(), str(y.dtype)").value)
        notebook(f"{names} = {seen!r}" if "inf" not in repr(seen) else f"inf = np.inf\n{names} = {seen!r}")
        notebook("for name in ['len', 'scale']:\n    globals().pop(name, None)")
    assert notebook("plain == staged").value, notebook("plain, staged").value


RECOGNISED = [
    *("a number", "another variable", "a closed-over variable", "an element", "an item", "a function", "an attribute"),
    *("a tensor in an object", "a closure", "an array's numbers", "an object", "a list by two names"),
    *("the order of items", "one of a thousand tensors"),
]


@pytest.mark.parametrize("case", RECOGNISED)
def test_such_calls_are_recognised(notebook, case):
    made, cell, _ = CHANGES[case]
    notebook(made)
    assert "_sent" not in calls(staged(notebook, cell))


def test_positions_follow_what_the_notebook_means(notebook):
    notebook("k = 1.0")
    staged(notebook, "y = k * 2.0 + x")
    notebook("def call(): return step(5.0).outputs['y'].tolist()")
    for _ in range(HITS + 3):
        assert notebook("call()").value == [11.0, 11.0]
    notebook("k = ll.Variable(1.0)")  # which has no position: x is the first that has one
    assert notebook("call()").value == 7.0


def test_what_is_no_input_is_refused_still(notebook):
    staged(notebook, "y = x * 2.0")
    notebook("for _ in range(9): step(x=x)")
    assert "unexpected input 'z'" in str(notebook("step(z=x)", fails=True).error)
    notebook("del x")
    assert notebook("step(x=ll.ones(2)).outputs['y'].tolist()").value == [2.0, 2.0]
    assert isinstance(notebook("step()", fails=True).error, NameError)


def test_nothing_is_kept_alive(notebook):
    notebook("import gc, weakref\nclass Net(ll.Module): pass\nnet = Net()\nnet.k, ws = 2.0, [ll.Variable(1.0)]")
    staged(notebook, "y = x * ws[0] * net.k")
    notebook("for _ in range(9): step()")
    notebook("refs = [weakref.ref(net), weakref.ref(ws[0])]\ndel net, ws\ncollected = gc.collect()")
    assert notebook("refs[1]()").value is None


def test_events_and_devices_take_the_long_way(notebook):
    staged(notebook, "y = x * 2.0")
    notebook("for _ in range(9): step()")
    assert notebook("with ll.GradientTape() as tape:\n    tape.watch(x)\n    y = step().outputs['y']")
    assert notebook("tape.gradient(y, x).tolist()").value == [2.0, 2.0]
    assert notebook("len(step.trace_cache), step.trace_cache[0].hits").value == (1, 10)


def test_forms_and_tries_are_bounded(notebook):
    notebook("k = 2.0\n" + "\n".join(f"p{i} = 1.0" for i in range(20)))
    step = staged(notebook, "y = x * (" + " + ".join(f"p{i}" for i in range(20)) + ")")
    notebook("for i in range(20):\n    for _ in range(5): step(**{f'p{i}': 1.0})")
    assert len(step._guards._by_form) <= MOST_FORMS


def test_open_views_do_not_mind(notebook):
    step = staged(notebook, "y = x * 2.0")
    notebook("%devices")
    assert "_sent" not in calls(step)
    assert notebook("step.trace_cache[0].hits").value == HITS + 4
