"""Functions that read sizes: the fix is a signature and `ll.shape_of`, where that runs."""

from __future__ import annotations

import numpy as np
import pytest

BEFORE = "w = ll.Variable(ll.eye(4), name='w')\n"
FUNCTIONS = {
    "a shape": "def f(x):\n    z = ll.ones((x.shape[0], 4))\n    return z @ w + ll.sum(x)\n",
    "from the end, in a list": "def f(x):\n    return ll.zeros([3, x.shape[-3]]) + ll.sum(x)\n",
    "a size that is the same in each call": "def f(x):\n    return ll.zeros((x.shape[2],)) + ll.sum(x, axis=(0, 1))\n",
    "a loop": (
        "def f(x):\n    h = ll.zeros((x.shape[1], x.shape[2]))\n    for t in range(x.shape[0]):\n"
        "        h = ll.tanh(x[t] @ w + h)\n    return h\n"
    ),
    "a loop on a tape": (
        "def f(x):\n    with ll.GradientTape() as tape:\n        h = ll.zeros((2, 4))\n"
        "        for t in range(x.shape[0]):\n            h = ll.tanh(x[t] @ w + h)\n"
        "        loss = ll.sum(h)\n    return tape.gradient(loss, w)\n"
    ),
}
CALLS = "results = [f(ll.ones((n, 2, 4))) for n in (2, 3, 4)]\n"


@pytest.mark.parametrize("written", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_fix_runs_has_one_trace_and_gives_the_same(program, written):
    before = program(f"{BEFORE}@ll.function\n{written}{CALLS}")
    (fix,) = before.miss.fixes
    assert before.f.trace_count == 3
    after = program(f"{BEFORE}{fix.cell or fix.code + chr(10) + written}\n{CALLS}")
    assert after.f.trace_count == 1
    for x, y in zip(before.names["results"], after.names["results"], strict=True):
        assert np.allclose(x.numpy(), y.numpy())


def test_the_sentence_says_what_to_write_for_what(program):
    said = str(program(f"{BEFORE}@ll.function\n{FUNCTIONS['a loop']}{CALLS}").miss)
    assert "write `ll.shape_of(x)[0]` for `x.shape[0]`, which makes one loop of what Python unrolls for each" in said
    assert said.endswith('@ll.function(input_signature=[ll.TensorSpec((None, 2, 4), "float32")], autograph=True)')


@pytest.mark.parametrize(
    "body",
    [
        "return x / x.shape[0]",
        "return x if x.shape[0] == 2 else x * 2.0",
        "n, m, k = x.shape\n    return ll.zeros((n, 3))",
        "x = x[1:]\n    return ll.zeros((x.shape[0],))",
        "y = x[1:]\n    return ll.zeros((y.shape[0],))",
        "return ll.constant(np.zeros((x.shape[0],)))",
        "log = []\n    for t in range(x.shape[0]):\n        log.append(x[t])\n    return log[0]",
        "return [x[t] for t in range(x.shape[0])][0]",
        "return ll.zeros((x.size,))",
    ],
)
def test_sizes_that_may_decide_something_in_python_have_no_fix(program, body):
    assert program(f"import numpy as np\n@ll.function\ndef f(x):\n    {body}\n{CALLS}").miss.fix == ""
