"""Functions that read sizes: the fix is a signature and `ll.shape_of`, where that runs."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

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


HELPERS = {
    "a shape": "def helper(x):\n    return x + ll.random.normal(x.shape)\n",
    "sizes by name": "def helper(x):\n    b, t, d = x.shape\n    return x + ll.ones((b, 1, 1)) * float(t)\n",
    "a loop over a size": "def helper(x):\n    return sum([x[t] for t in range(x.shape[0])])\n",
    "a loop over rows": "def helper(x):\n    return sum([row for row in x])\n",
    "a module": (
        "class Cell(ll.Module):\n    def call(self, x):\n        h = ll.zeros((2, 4))\n"
        "        for t in range(x.shape[0]):\n            h = h + x[t]\n        return h\nhelper = Cell()\n"
    ),
}


@pytest.mark.parametrize("written", HELPERS.values(), ids=HELPERS)
def test_a_helper_that_needs_a_size_as_a_number_has_no_fix(program, written):
    assert program(f"{written}@ll.function\ndef f(x):\n    return helper(x * 2.0)\n{CALLS}").miss.fix == ""


def test_a_loop_over_rows_has_no_fix_even_at_the_second_call(program):
    body = "    total = 0.0\n    for row in x:\n        total = total + row\n    return total\n"
    assert program(f"@ll.function\ndef f(x):\n{body}f(ll.ones((2, 4)))\nf(ll.ones((3, 4)))").miss.fix == ""


@pytest.mark.parametrize("read", ["x / float(x.shape[-1])", "x + ll.zeros((x.shape[2],))"])
def test_a_helper_that_reads_a_size_which_never_varies_leaves_the_fix(program, read):
    written = f"def helper(x):\n    return {read}\n@ll.function\ndef f(x):\n    return helper(x)\n"
    before = program(f"{written}{CALLS}")
    (fix,) = before.miss.fixes
    after = program(f"{written.replace('@ll.function', fix.code)}{CALLS}")
    assert after.f.trace_count == 1


def test_a_size_that_is_printed_leaves_the_fix(program):
    written = "def helper(x):\n    print(x.shape)\n@ll.function\ndef f(x):\n    print('batch', x.shape)\n"
    before = program(f"{written}    helper(x)\n    return x * 2.0\n{CALLS}")
    assert before.miss.fix == '@ll.function(input_signature=[ll.TensorSpec((None, 2, 4), "float32")])'


SHAPES = {
    "by name": "def helper(x):\n    b = x.shape[0]\n    return ll.reshape(x, (b, 8))\n",
    "beside a product of others": (
        "def helper(x):\n    b = x.shape[0]\n    n = 1\n    for size in x.shape[1:]:\n        n *= size\n"
        "    return ll.reshape(x, (b, n))\n"
    ),
    "of a shape taken apart": "def helper(x):\n    b, t, d = x.shape\n    return ll.reshape(x, [b, t * d])\n",
    "of a tensor's method": "def helper(x):\n    return x.reshape(x.shape[0], 8)\n",
}
THREE = "results = [f(ll.ones((n, 2, 4))) for n in (3, 4, 5)]\n"


@pytest.mark.parametrize("calls", [THREE, THREE.replace(", 5", "")], ids=["three sizes", "two sizes"])
@pytest.mark.parametrize("written", SHAPES.values(), ids=SHAPES)
def test_a_size_that_a_helper_passes_on_to_reshape_leaves_the_fix(program, written, calls):
    staged = f"{written}@ll.function\ndef f(x):\n    return helper(x * 2.0)\n"
    before = program(f"{staged}{calls}")
    (fix,) = before.miss.fixes
    after = program(f"{staged.replace('@ll.function', fix.code)}{THREE}")
    assert after.f.trace_count == 1


def test_a_size_that_the_function_itself_passes_on_by_name_leaves_the_fix(program):
    written = "@ll.function\ndef f(x):\n    b, t, d = x.shape\n    return ll.reshape(x, (b, t * d))\n"
    (fix,) = program(f"{written}{THREE}").miss.fixes
    assert program(f"{written.replace('@ll.function', fix.code)}{THREE}").f.trace_count == 1


@pytest.mark.parametrize(
    "body",
    [
        "b = x.shape[0]\n    return ll.reshape(ll.ones((b * 4,)), (b, 4))",
        "b = x.shape[0]\n    return ll.zeros((b, 4))",
        "b = x.shape[0]\n    b = b + 1\n    return ll.reshape(x, (b - 1, 8))",
        "b, t, d = x.shape\n    return ll.reshape(x, (t, b, d)) / b",
    ],
)
@pytest.mark.parametrize("calls", [THREE, THREE.replace(", 5", "")], ids=["three sizes", "two sizes"])
def test_a_helper_that_needs_the_number_is_named_with_what_to_write(program, body, calls):
    staged = f"def helper(x):\n    {body}\n@ll.function\ndef f(x):\n    return helper(x * 2.0)\n"
    miss = program(f"{staged}{calls}").miss
    assert miss.fix == ""
    assert "`x.shape[0]` in `helper` (program" in str(miss)
    assert "is needed as a number" in str(miss)
    assert "write `ll.shape_of(x)[0]` there" in str(miss)


def test_sizes_that_vary_together_with_others_only_in_this_call_are_known_after_it(program):
    staged = "def helper(x):\n    return x / x.shape[1]\n@ll.function\ndef f(x):\n    return helper(x)\n"
    calls = "for shape in ((3, 2), (4, 2), (4, 5)):\n    f(ll.ones(shape))\n"
    assert program(f"{staged}{calls}").miss.fix == ""


def test_a_prediction_says_what_may_need_a_number(program):
    staged = "def helper(x):\n    b = x.shape[0]\n    return ll.reshape(x, (b, 8))\n@ll.function\n"
    ran = program(f"{staged}def f(x):\n    return helper(x)\nf(ll.ones((3, 2, 4)))")
    said = str(ran.f.explain(ll.ones((4, 2, 4))))
    assert "`x.shape[0]` in `helper` (program" in said
    assert "may be needed as a number" in said
