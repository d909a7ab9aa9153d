"""autograph=True: what is rewritten, from which kinds of functions, and what stays Python."""

# ruff: noqa: SIM108  # the statements are what is tested

import ast
import dataclasses
import functools
import pickle

import numpy as np
import pytest

import limelight as ll

staged = functools.partial(ll.function, autograph=True)
SCALE = 3.0
heard = print


def ops(f):
    return [node.op.name for node in f.trace_cache[0].graph.nodes]


def magnitude(x):
    if x > 0:
        y = x
    else:
        y = -x
    return y + 0


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def first_above(xs, limit):
    """Returns from the loop, or at the end."""
    for x in xs:
        if x > limit:
            return x
    return limit


def odd_sum(n):
    total = 0
    for i in range(n):
        if i % 2 == 0:
            continue
        if total > 20:
            break
        total += i
    else:
        total = -total
    return total


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (magnitude, [(2.0,), (-2.0,)]),
        (collatz, [(1,), (6,), (27,)]),
        (first_above, [([1.0, 5.0, 9.0], 3.0), ([1.0, 2.0, 0.0], 3.0)]),
        (odd_sum, [(0,), (4,), (30,)]),
    ],
)
def test_one_trace_serves_all_values(f, arguments):
    g = staged(f)
    for given in arguments:
        assert g(*map(ll.constant, given)).item() == f(*given)
    assert g.trace_count == 1
    assert f"{g(*map(ll.constant, arguments[0])).item():g}" == f"{f(*arguments[0]):g}"


def test_python_values_stay_python():
    def power(x, n, mode="up"):
        y = x
        for _ in range(n):
            y = y * x
        return y if mode == "up" else -y

    g = staged(power)
    assert g(ll.constant(2.0), 3).item() == 16.0
    assert ops(g) == ["multiply"] * 3
    assert g(ll.constant(2.0), 3, mode="down").item() == -16.0
    assert g.trace_count == 2


def test_loops_over_tensors_are_one_node():
    def total(xs):
        s = 0.0
        for x in xs:
            s += x
        return s

    g = staged(total)
    assert g(ll.ones((50,))).item() == 50.0
    assert ops(g).count("scan") == 1
    assert len(ops(g)) < 6


def helper(x):
    return -x if x < 0 else x


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2 * f(*args, **kwargs)

    return wrapper


@doubled
def decorated(x):
    if x < 0:
        return -x
    return x


class Counter:
    def __init__(self, limit):
        self.limit = limit
        self.__steps = 1

    @ll.function(autograph=True)
    def count(self, x):
        n = 0
        while x < self.limit:
            x = x * 2
            n += self.__steps
        return n

    def __call__(self, x):
        if x > self.limit:
            x = x - self.limit
        return x


class Child(Counter):
    def __call__(self, x):
        if x < 0:
            x = -x
        return super().__call__(x)


def local(x):
    def inner(y):
        if y > SCALE:
            return y
        return y * scale

    scale = 10.0
    return inner(x)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: helper(x) + 1, -2.0, 3.0),
        (lambda x: x if x > 0 else -x, -4.0, 4.0),
        (decorated, -2.0, 4.0),
        (local, 2.0, 20.0),
        (local, 5.0, 5.0),
        (Child(3.0), -5.0, 2.0),
        (Counter(3.0).__call__, 4.0, 1.0),
        (functools.partial(first_above, [1.0, 7.0]), 3.0, 7.0),
    ],
    ids=["helper", "lambda", "decorated", "closure", "closure, other way", "object", "bound method", "partial"],
)
def test_any_function_whose_source_can_be_read(f, x, expected):
    assert staged(f)(ll.constant(x)).item() == expected


def test_two_lambdas_on_a_line_are_told_apart():
    pair = (lambda x: x if x > 0 else 0 * x, lambda x: x if x < 0 else 0 * x)
    assert [staged(f)(ll.constant(2.0)).item() for f in pair] == [2.0, 0.0]


def test_methods_have_a_cache_for_each_instance():
    a, b = Counter(8.0), Counter(100.0)
    assert (a.count(ll.constant(1.0)).item(), b.count(ll.constant(1.0)).item()) == (3, 7)
    assert (a.count.trace_count, b.count.trace_count) == (1, 1)


def test_functions_handed_to_limelight_are_converted():
    def loss(w):
        return ll.vectorize(helper)(w).sum() + ll.cond(w[0] > 0, lambda: helper(w[1]), lambda: w[1])

    assert staged(loss)(ll.constant([1.0, -2.0])).item() == 5.0
    assert staged(lambda x: sum(map(helper, [x, -x])))(ll.constant(3.0)).item() == 6.0


def test_operands_are_worked_out_once_and_only_if_needed():
    calls = []

    def seen(x):
        calls.append(1)
        return x

    def between(x):
        return 0 < seen(x) < 3

    assert staged(between)(ll.constant(2)).item() is True
    assert calls == [1]

    def guarded(xs, i):
        return i < 3 and xs[i] > 0

    g = staged(guarded)
    assert [g(ll.constant([1.0, -1.0, 2.0]), ll.constant(i)).item() for i in (0, 1, 2, 7)] == [True, False, True, False]


def test_builtins_take_tensors():
    def f(xs, ys, n):
        s, places = 0.0, 0
        for i, (x, y) in enumerate(zip(xs, ys)):  # noqa: B905  # the plain form is what people write
            s += max(x, y) - min(x, 1.0)
            places += i
        for i in range(n, 0, -2):
            places += i
        for i in reversed(range(n)):
            places = 2 * places + i
        for x in reversed(xs):
            s = s * 2 + x
        return s, places, len(xs), all(x > 0 for x in (xs[0], xs[1])), any([xs[0] > 1, xs[1] > 1])

    given = [1.0, 3.0], [2.0, 0.5], 5
    expected = f(*given)
    assert [x.item() for x in staged(f)(*map(ll.constant, given))] == list(expected)


def test_membership_is_a_comparison_with_each():
    def f(x, y):
        return (x in (1, y, 5), x not in [1, y], 3 in {3: y})

    g = staged(f)
    for x, y in ((1, 2), (2, 2), (3, 2), (5, 0)):
        assert [v.item() for v in g(ll.constant(x), ll.constant(y))] == list(f(x, y))


def test_classes_within_functions():
    def f(x):
        @dataclasses.dataclass
        class Scaled:
            value: object
            by: float = 3.0

            def positive(self):
                if self.value > 0:
                    return self.value * self.by
                return -self.value

        return Scaled(x).positive(), Scaled.__qualname__.endswith("f.<locals>.Scaled")

    g = staged(f)
    assert [g(ll.constant(x))[0].item() for x in (2.0, -2.0)] == [6.0, 2.0]
    assert g(ll.constant(1.0))[1].item()


def test_sizes_may_be_unknown():
    def total(xs):
        s = ll.zeros((2,))
        for x in xs:
            if x[0] > 0:
                s = s + x
        return s, len(xs)

    g = staged(total, input_signature=[ll.TensorSpec((None, 2), "float32")])
    for n in (0, 1, 4):
        s, count = g(ll.ones((n, 2)))
        assert s.tolist() == [n, n]
        assert count.item() == n
    assert g.trace_count == 1


def test_asserts_are_checked_when_the_graph_runs():
    def root(x):
        assert x >= 0, f"no root of {'this'}"
        return x**0.5

    g = staged(root)
    assert g(ll.constant(4.0)).item() == 2.0
    with pytest.raises(AssertionError, match=r"no root of this \(test_conversion.py line \d+: assert x >= 0"):
        g(ll.constant(-4.0))
    assert g.trace_count == 1


def test_print_is_heard_once_per_trace(capsys):
    def f(x):
        heard("f")
        if x > 0:
            heard("if")
            y = x
        else:
            heard("else")
            y = -x
        for row in ll.ones((3,)):
            heard("for")
            y = y + row
        while y < 10:
            heard("while")
            y = y * 2
        return y

    g = staged(f)
    assert [g(ll.constant(x)).item() for x in (1.0, -2.0)] == [16.0, 10.0]
    assert capsys.readouterr().out.split() == ["f", "if", "else", "for", "while"]


@pytest.mark.parametrize(
    ("dtype", "start"), [("float16", 0.0), ("bfloat16", 0), ("float64", 0.0), ("float32", 0), ("int64", 0)]
)
def test_a_number_takes_on_the_dtype_that_it_meets(dtype, start):
    def total(xs, s):
        for x in xs:
            s = s + x
        return s

    found = staged(total)(ll.ones((3,), dtype=dtype), start)
    assert (str(found.dtype), found.item()) == (dtype, 3)


def test_run_eagerly_runs_the_source_itself():
    seen = []

    def f(x):
        while x < 10:
            seen.append(x.item())
            x = x * 2
        return x

    g = staged(f, run_eagerly=True)
    assert g(ll.constant(3.0)).item() == 12.0
    assert seen == [3.0, 6.0]
    assert g.python_function is f


def test_pickled_by_reference_with_its_options():
    g = pickle.loads(pickle.dumps(staged(magnitude)))
    assert g.python_function is magnitude
    assert g(ll.constant(-3.0)).item() == 3.0


def test_without_autograph_the_error_names_it():
    with pytest.raises(ll.errors.SymbolicValueError, match=r"ll.function\(autograph=True\)"):
        ll.function(magnitude)(ll.constant(1.0))


def test_the_cache_hits_as_ever():
    g = staged(magnitude)
    g(ll.constant(1.0))
    g(ll.constant(np.float32(-7.0)))
    assert (g.trace_count, g.trace_cache[0].hits) == (1, 1)
    assert g.explain(ll.constant(2.0)).hit


def test_recursion_ends_where_python_knows_it():
    def power(x, n):
        if n == 0:
            return 1.0
        if x > 100:
            return x
        return x * power(x, n - 1)

    assert staged(power)(ll.constant(2.0), 5).item() == 32.0


def test_values_that_are_no_tensors_may_go_through_unchanged():
    def f(x):
        name, extra = "a", {"k": 2.0}
        if x > 0:
            name = "a"
            size = len("ab") + 998
            y = x * extra["k"]
        else:
            size = len("abc") + 997
            y = x
        assert len("b" * size) == 1000
        for _ in range(2):
            name = name + "b"
        return y if name == "abb" else -y

    assert staged(f)(ll.constant(3.0)).item() == 6.0


def test_nodes_that_all_trees_share_stay_as_they_are():
    """Notes on these would lead from each tree to all that were converted before, and copies of it would copy them."""

    def f(x, n):
        for i in range(n):
            if x > i and not n < 2:
                x = -x if x > 3.0 else x - 1
        return x

    assert ll.function(f, autograph=True)(ll.constant(2.0), 2).item() == 1.0
    shared = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    tree = ast.parse("x = -y + 1\nfor i in not x and y > 2: del x")
    assert [vars(node) for node in ast.walk(tree) if isinstance(node, shared) and vars(node)] == []
