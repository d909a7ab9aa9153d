"""autograph=True: names that functions share, objects that outlive a block, and what comprehensions go over."""

# ruff: noqa: B007, B023, B905, C416, E731, PLC3002, PLW0108, SIM108  # the statements are what is tested

import functools
import random

import numpy as np
import pytest

import limelight as ll
from limelight.core import nest
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)
LOG = []
STATE = {"last": 1.0}
COUNT = 1.0


def values(result):
    return nest.map_structure(lambda x: x.tolist() if isinstance(x, ll.Tensor) else x, result)


def closures_over_a_loop_variable(x):
    found = []
    for i in range(3):
        k = 2 * i
        found.append(lambda v: v + i + k if v > 0 else v - k)
    return [f(x) for f in found]


def bound_by_a_default(x):
    return [f(x) for f in [lambda v, i=i: v * i if v > 0 else v for i in range(3)]]


def read_by_an_earlier_lambda(x):
    f = lambda: y
    y = 0.0
    if x > 0:
        y = x
    return f()


def read_by_an_earlier_lambda_after_a_loop(x):
    i = -1
    f = lambda: i
    for i in range(ll.astype(x, ll.int32)):
        pass
    return f()


def lambdas_within_a_block(x):
    if x > 0:
        y = 1
        z = (lambda: y + x)()
    else:
        y = ll.ones((3,))
        z = (lambda: y.sum())()
    return z


def rebound_by_an_inner_function(x):
    n = x

    def add(k):
        nonlocal n
        n = n + k
        return n

    if x > 0:
        add(1.0)
        y = add(2.0)
    else:
        y = n
    for _ in range(ll.constant(3)):
        add(ll.abs(y))
    while n < 20:
        add(1.0)
    return n, y


def rebound_two_functions_down(x):
    def outer():
        def inner():
            nonlocal n
            n = n + x

        inner()

    n = 0.0
    if x > 0:
        outer()
    return n + 1


def choices_within_choices(x):
    f = lambda a: (a if a > 2 else -a) if a > 0 else (a * 2 if a < -5 else 0.0)
    return f(x), f(-x), f(x * -3), (1.0 if (x if x > 0 else -x) > 2 else 0.0)


def only_a_docstring(x):
    """Nothing."""


def leaves_by_return_alone(x):
    while True:
        x = x + 1
        if x > 5:
            return x


def comprehensions(x):
    xs = ll.stack([x, -x, x * 2])
    both = [a * b for a, b in zip(xs, xs)]
    return {i: v for i, v in enumerate(xs)}, both, list(reversed(xs)), x in xs, 7.0 in xs


def zips_a_tuple(x):
    s = 0.0
    for a, weight, name in zip(ll.stack([x, -x]), [1.0, 10.0], ("a", "b")):
        if a > 0:
            s += a * weight + len(name)
    return s


def objects_made_inside(x):
    if x > 0:
        made, parts = Keeper(), {"a": [0.0]}
        made.note(x)
        parts["a"][0] = x
        x = made.last + parts["a"][0]
    return x


AGREE = [
    closures_over_a_loop_variable,
    bound_by_a_default,
    read_by_an_earlier_lambda,
    read_by_an_earlier_lambda_after_a_loop,
    lambdas_within_a_block,
    rebound_by_an_inner_function,
    rebound_two_functions_down,
    choices_within_choices,
    only_a_docstring,
    leaves_by_return_alone,
    comprehensions,
    zips_a_tuple,
]


class Keeper:
    def __init__(self):
        self.seen = []
        self.last = None

    def note(self, x):
        self.last = x


@pytest.mark.parametrize("f", [*AGREE, objects_made_inside], ids=lambda f: f.__name__)
def test_converted_code_does_what_python_does(f):
    g = staged(f)
    for x in (3.0, -3.0):
        expected = values(f(ll.constant(x)))
        assert str(values(g(ll.constant(x)))) == str(expected)
    assert g.trace_count == 1


@pytest.mark.parametrize("f", [rebound_by_an_inner_function, choices_within_choices], ids=lambda f: f.__name__)
def test_so_do_their_gradients(f):
    total = lambda v: sum(nest.leaves_of(f(v)), 0.0)
    g = staged(total)
    for x in (3.0, -3.0):
        expected = ll.grad(total)(ll.constant(x)).item()
        np.testing.assert_allclose(ll.grad(g)(ll.constant(x)).item(), expected)


KEEPER = Keeper()


def appends(x):
    LOG.append(x)
    return x


def counts(x):
    global COUNT
    COUNT = x * 2
    return x


def counter():
    n = 0.0

    def count(x):
        nonlocal n
        n = n + x
        return n

    return count


def by_a_helper(x):
    return appends(x) if x > 0 else x


def on_the_right_of_and(x):
    return x > 0 and appends(x) > 1


def by_a_helper_with_a_global(x):
    if x > 0:
        x = counts(x)
    return x


def by_a_function_made_elsewhere(x):
    count = counter()
    if x > 0:
        x = count(x)
    return x + count(x)


def by_a_method(x):
    if x > 0:
        KEEPER.note(x)
    return x


def by_setattr(x):
    if x > 0:
        setattr(KEEPER, "last", x)  # noqa: B010  # the call is what is tested
    return x


def deep_inside(x, parts={"a": [0.0]}):  # noqa: B006  # a dictionary from outside
    if x > 0:
        parts["a"][0] = x
    return parts["a"][0]


def as_a_loop_variable(x):
    for STATE["last"] in ll.stack([x, x]):
        pass
    return x


def as_a_with_target(x):
    if x > 0:
        with ll.GradientTape() as KEEPER.last:
            pass
    return x


def picks(x):
    return [v for v in ll.stack([x, -x]) if v > 0]


ITEMS = iter(range(9))
GENERATOR = np.random.default_rng(0)


def itself_a_global(x):
    global COUNT
    if x > 0:
        COUNT = 1
    else:
        COUNT = 2
    return x


def takes_an_item(x):
    for _ in range(ll.astype(x, ll.int32)):
        x = x + next(ITEMS)
    return x


def goes_over_an_iterator(x):
    if x > 0:
        for i in ITEMS:
            x = x + i
    return x


def draws(x):
    if x > 0:
        x = x + random.random()
    return x


def draws_uniformly(x):
    while x < 3:
        x = x + random.uniform(0, 1)
    return x


def draws_from_numpy(x):
    while x < 3:
        x = x + np.random.rand()
    return x


def draws_by_a_generator(x):
    while x < 3:
        x = x + GENERATOR.normal()
    return x


REFUSED = {
    itself_a_global: r"`COUNT`, a global variable, is assigned in this `if` \(.*COUNT = 1\)",
    takes_an_item: r"next\(\) takes items of a range_iterator in this `for` loop",
    goes_over_an_iterator: r"a `for` takes items of a range_iterator in this `if` .*rows\[i\]",
    draws: r"random\(\) draws a random number in this `if` .*ll.random.normal",
    draws_uniformly: r"uniform\(\) draws a random number in this `while` loop",
    draws_from_numpy: r"rand\(\) draws a random number",
    draws_by_a_generator: r"normal\(\) draws a random number",
    by_a_helper: r"\.append\(\) changes a list in `\.\.\. if x > 0 else \.\.\.` \(.*LOG.append\(x\)\)",
    on_the_right_of_and: r"\.append\(\) changes a list in `and`",
    by_a_helper_with_a_global: r"`COUNT`, a global variable, is assigned in this `if` \(.*COUNT = x \* 2\)",
    by_a_function_made_elsewhere: r"`n`, a nonlocal variable, is assigned by `count` .*Return the value from `count`",
    by_a_method: r"`self.last` is assigned in this `if` \(.*self.last = x\)",
    by_setattr: r"setattr\(\) changes a Keeper in this `if`",
    deep_inside: r"`parts\['a'\]\[0\]` is assigned in this `if`",
    as_a_loop_variable: r"`STATE\['last'\]` is assigned in this `for` loop",
    as_a_with_target: r"`KEEPER.last` is assigned in this `if`",
    picks: r"the `if` of a comprehension is decided by a tensor.*Pick rows by a mask",
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_changes_that_outlive_a_block_are_refused_before_they_happen(f):
    with pytest.raises(ControlFlowError, match=REFUSED[f]) as caught:
        staged(f)(ll.constant(2.0))
    assert "test_reachable_state.py line" in str(caught.value)
    assert (LOG, COUNT, KEEPER.last, STATE["last"]) == ([], 1.0, None, 1.0)


def test_what_a_block_makes_for_itself_may_be_used_up():
    def f(x):
        if x > 0:
            items, generator = iter((1.0, 2.0)), np.random.default_rng(0)
            x = x + next(items) + 0 * generator.normal()
            for item in items:
                x = x + item
        return x

    assert staged(f)(ll.constant(2.0)).item() == 5.0


def test_classes_defined_within_call_what_they_derive_from():
    @staged
    def f(x):
        class First:
            def of(self, y):
                return y + 1

        class Second(First):
            def of(this, y):  # noqa: N805
                if y > 0:
                    y = super().of(y)
                return y * 2

        return Second().of(x)

    assert f(ll.constant(1.0)).item() == 4.0


def test_the_same_is_python_where_python_decides():
    def f(x, n):
        parts, count = {"a": 0.0}, counter()
        for i in range(n):
            parts["a"] += x * i
            count(i)
        return parts["a"], count(x)

    assert values(staged(f)(ll.constant(2.0), 3)) == (6.0, 5.0)


def test_items_of_a_tensor_are_refused_as_anywhere():
    def f(x):
        if x[0] > 0:
            x[0] = 1.0
        return x

    with pytest.raises(ll.errors.DTypeError, match=r"tensors are immutable.*x.at\[i\].set"):
        staged(f)(ll.ones((2,)))
