"""Cells drawn from a grammar of statements, run with `%%stage` and without; LIMELIGHT_DRAWN_TWINS=N draws N of them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_twins import check, shell  # noqa: F401  # beside this file; the fixture
from twin import Twin

EXAMPLES = int(os.environ.get("LIMELIGHT_DRAWN_TWINS", "100"))

SETUP = """\
from collections import deque, defaultdict
class Box:
    def __init__(self):
        self.t, self.n, self.kept = ll.ones(2), 1, []
    def keep(self, x):
        self.kept.append(x)
        return x * 2.0
def helper(x, k=2.0):
    return ll.tanh(x) * k + scale
def noisy(x):
    return x + 0.1 * ll.random.normal((2,))
scale, n, flag, word = 0.5, 2, True, "ab"
a, b = ll.constant([1.0, -2.0]), ll.constant([0.5, 3.0])
v, u = ll.Variable([1.0, 2.0]), ll.Variable([0.1, 0.2])
xs, ys = [a, b], [ll.zeros(2)]
alias = xs
d = {"p": a, "q": b * 0.5, "m": 1}
groups, window, names = defaultdict(list), deque([ll.zeros(2)], maxlen=3), {"x"}
box = Box()"""

CHANGES = st.sampled_from(
    [
        "n = n % 3 + 1",
        "flag = not flag",
        "a = a * 0.5 + 1.0",
        "xs.append(b)",
        "d['q'] = ll.ones(2)",
        "box.t = box.t + 1.0",
        "scale = scale + 0.25",
        "v.assign([3.0, -1.0])",
        "box = Box()",
        "xs = [b, a]",
        "def helper(x, k=2.0):\n    return x * k - scale",
        "ys = xs",
        "names.add(word + str(n))",
        "box.n += 1",
    ]
)
TESTS = st.sampled_from(
    ["flag", "n > 1", "len(xs) % 2 == 0", "'x' in names", "xs is alias", "word == 'ab'", "box.n > 1"]
)
ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "v",
        "u",
        "xs[0]",
        "xs[-1]",
        "ys[-1]",
        "d['p']",
        "d['q']",
        "box.t",
        "alias[0]",
        "window[-1]",
        "ll.ones(2)",
        "sum(xs)",
        "(v * scale)",
        "ll.random.normal((2,))",
        "d.get('z', a)",
        "box.keep(b)",
    ]
)
TENSORS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), ATOMS),
        st.builds("{}({})".format, st.sampled_from(["helper", "noisy", "ll.tanh", "ll.sin", "ll.abs"]), inner),
        st.builds("({} * {})".format, inner, st.sampled_from(["n", "len(xs)", "0.5", "scale", "box.n", "len(word)"])),
        st.builds("({} if {} else {})".format, inner, TESTS, ATOMS),
    ),
    max_leaves=3,
)
NAMES = st.sampled_from(["a", "b", "c", "box.t", "xs[0]", "xs[-1]", "d['p']", "d['z']"])
CHANGING = st.sampled_from(["assign_add", "assign_sub", "assign"])
STEP = "with ll.GradientTape() as tape:\n    loss = ll.sum(v * v * a)\nv.assign_sub(0.01 * tape.gradient(loss, v))"
SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, TENSORS),
    st.builds("{} += {}".format, st.sampled_from(["a", "b", "d['q']", "xs[0]", "box.t"]), TENSORS),
    st.builds("{}.append({})".format, st.sampled_from(["xs", "ys", "window", "groups['g']", "box.kept"]), TENSORS),
    st.builds("{}.{}({})".format, st.sampled_from("vu"), CHANGING, TENSORS),
    st.builds("ys = [{}, {}]".format, TENSORS, TENSORS),
    st.builds("ys += [{}]".format, TENSORS),
    st.builds("d.update(p={})".format, TENSORS),
    st.builds("made = [t + {} for t in xs]".format, TENSORS),
    st.builds("table = {{k: [t, {}] for k, t in d.items() if k != 'm'}}".format, TENSORS),
    st.builds("g = ll.grad(lambda t: ll.sum(t * {}))({})".format, TENSORS, TENSORS),
    st.builds("def own(x, y=2.0):\n    return x * y + {}\ne = own({})".format, TENSORS, TENSORS),
    st.sampled_from(
        [
            "n = n + 1", "n, m = n % 4, n", "word = word + 'c'", "names.add(word)", "d['m'] += 1", "box.n += 1",
            "xs[0], xs[-1] = xs[-1], xs[0]", "a, b = b, a", "alias = list(xs)", "ys = xs", "kept = box", "w = v",
            "xs.reverse()", "last = ys.pop() if len(ys) > 1 else None", "window.popleft() if len(window) > 1 else None",
            "box = Box()", "copied = dict(d)", "pair = (a, xs)", "label = f'{word}{n}'", "gone = d.pop('z', None)",
            "flag = not flag", "old = box.kept\nbox.kept = []",
            STEP,
        ]
    ),
)  # fmt: skip


def indented(lines: list[str]) -> str:
    return "\n".join("    " + line for text in lines for line in text.splitlines())


BLOCKS = st.lists(SIMPLE, min_size=1, max_size=2).map(indented)
STATEMENTS = st.one_of(
    SIMPLE,
    SIMPLE,
    st.builds("if {}:\n{}\nelse:\n{}".format, TESTS, BLOCKS, BLOCKS),
    st.builds("for i in range({}):\n{}".format, st.sampled_from(["2", "n % 3"]), BLOCKS),
    st.builds("for t in list(xs):\n{}".format, BLOCKS),
)
CELLS = st.lists(STATEMENTS, min_size=1, max_size=4).map(lambda lines: "%%stage\n" + "\n".join(lines))
ORDERS = st.lists(st.sampled_from([2, 2, 2, 3, 3, 4]), min_size=2, max_size=6).map(lambda order: (1, 2, 2, *order))


@pytest.mark.slow  # a hundred notebooks, each run twice
@given(CELLS, CELLS, CHANGES, ORDERS)
@example("%%stage\nxs[0], ys[-1] = ys[-1], xs[0]", "%%stage\nd['z'] = xs\nys = alias", "n = n % 3 + 1", (1, 2, 3, 4, 2))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_drawn_cells_are_their_plain_twins(shell: Any, one: str, other: str, change: str, order: Any) -> None:  # noqa: F811
    cells = (SETUP, one, other, change)
    check(Twin("\n----\n".join(cells[1:]), cells, (), (order,)), shell)
