"""Lists and dictionaries that converted code makes are changed in staged blocks as Python does; others are refused."""

# ruff: noqa: PLW0108, PLC0206, PLW0602  # the statements are what is tested

import bisect
import collections
import copy
import functools
import heapq
import operator

import numpy as np
import pytest

import limelight as ll
from limelight.autograph import local_containers
from limelight.core import nest
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)
KNOWN = [1, 2]


def values(result):
    return nest.map_structure(lambda x: x.item() if hasattr(x, "item") else x, result)


def a_key_in_a_loop(n):
    d = {"a": 0, "b": 2.5}
    for i in range(n):
        d["a"] += i
    return d


def elements_in_a_loop(n):
    y = [0, 0]
    while n > 0:
        y[0], y[1] = y[1], n
        n = n - 1
    return y


def lists_in_a_list(n):
    y = [[0, 0] for _ in range(2)]
    row = y[1]
    for i in range(n):
        for j in range(i):
            y[1][0] += j
            y[0][1] = row[0] + i
    return y, row


def tuples_inside(n):
    d = {"t": (0, 0)}
    for i in range(n):
        d["t"] = (i, d["t"][0])
    return d["t"]


def two_names(n):
    d = {"a": 0, "b": 1}
    e = d
    if n > 1:
        d["a"] = n
        e["b"] = d["a"] * 2
    return e["a"], e["b"], d["b"]


def another_name_in_a_block(n):
    y, w = [0, 0], [5, 5]
    z = y
    for i in range(n):
        y[0] += i
        w = y
    return w, z


def one_of_two(n):
    y = [0, n]
    if n > 2:
        y[0] = n
        z = y
    else:
        z = [7, 8]
    return z


def returned_from_a_branch(n):
    y = [0, n]
    if n > 2:
        y[0] = n
        return y
    return [1, 2]


def by_a_helper(n):
    def put(d, key, value):
        d[key] = d[key] + value

    d = dict(a=0, b=1)  # noqa: C408  # the call is what is tested
    for i in range(n):
        put(d, "a", i)
        if i > 1:
            put(d, "b", i)
    return d


def with_a_break(n):
    d = {"a": 0}
    while n > 0:
        n = n - 1
        d["a"] += n
        if d["a"] > 3:
            break
    return d


def in_a_loop_over_its_keys(n):
    d = {"a": 0, "b": 0}
    for key in d:
        if n > 2:
            d[key] = d[key] + n
    return d


def both_sides_append(n):
    out = [0]
    if n > 2:
        out.append(n)
    else:
        out += [-n]
    out.append(3)
    return out


def both_sides_add_a_key(n):
    d = {}
    if n > 2:
        d["a"] = 1
    else:
        d["a"] = 2
    d["b"] = d["a"] + 1
    return d


def takes_and_puts_back(n):
    y = [1, 2]
    for i in range(n):
        last = y.pop()
        y.append(last + i)
        y.reverse()
    return y


def copies(n, *, given=KNOWN):
    a, b, c, d, e = list(given), given[:], given.copy(), copy.copy(given), sorted(given)
    for i in range(n):
        a[0] += i
        b[0] += i
        c[0] += i
        d[0] += i
        e[0] += i
    return a, b, c, d, e


def repeated(n):
    y = [0] * 3
    for i in range(n):
        y[2] += i
    return y


def assigned_and_changed(n):
    y = [0, 1]
    for i in range(n):
        y = [y[1], y[0]]
        y[0] += i
    return y


PROGRAMS = [
    *(a_key_in_a_loop, elements_in_a_loop, lists_in_a_list, tuples_inside, two_names, another_name_in_a_block),
    *(one_of_two, returned_from_a_branch, by_a_helper, with_a_break, in_a_loop_over_its_keys, both_sides_append),
    *(both_sides_add_a_key, takes_and_puts_back, copies, repeated, assigned_and_changed),
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_they_are_changed_as_python_does(f):
    g = staged(f)
    for n in (0, 1, 2, 5):
        assert values(g(ll.constant(n))) == values(f(ll.constant(n)))
    assert g.trace_count == 1
    assert KNOWN == [1, 2]


def test_gradients_and_batches_go_through_them():
    def f(x, n):
        d = {"product": x, "sums": [x * 0, 1.0]}
        for _ in range(n):
            d["product"] = d["product"] * x
            if d["product"] < 100:
                d["sums"][0] += d["product"]
        return d["sums"][0]

    g, n = staged(f), ll.constant(3)
    assert ll.grad(lambda x: g(x, n))(ll.constant(2.0)).item() == ll.grad(lambda x: f(x, n))(ll.constant(2.0)).item()
    assert ll.vectorize(g, in_axes=(0, None))(ll.constant([1.0, 2.0]), n).tolist() == [3.0, 28.0]


def of_an_argument(n, given):
    for i in range(n):
        given[0] = i
    return n


def of_a_global(n):
    if n > 0:
        KNOWN[0] = n
    return n


def takes_parts(n):
    y = [0, 0]
    for _ in range(n):
        del y[0]
    return y


def adds_a_key(n):
    d = {}
    for i in range(n):
        d["last"] = i
    return d


def another_list_inside(n):
    d = {"l": [0, 0]}
    for i in range(n):
        d["l"] = [i, i]
    return d


def on_one_side(n):
    out = [n]
    if n > 0:
        out.append(n)
    return out


def a_second_name_is_assigned(n):
    y = [1, 2]
    e = y
    for i in range(n):
        y = [y[1], i]
        e[0] = 9
    return y, e


def in_a_condition(n):
    seen = [0]

    def counted():
        seen[0] += 1
        return seen[0] < n

    while counted():
        n = n - 1
    return seen


REFUSED = {
    of_an_argument: r"`given\[0\]` is assigned in this `for` loop \(.*: given\[0\] = i\).*not made itself.*list\(...\)",
    of_a_global: r"`KNOWN\[0\]` is assigned in this `if` .*as by list\(...\), made before",
    takes_parts: r"`y` is \[\*, \*\] on entry .* and \[\*\] after one iteration \(.*: del y\[0\]\).*make all its parts",
    adds_a_key: r"`d` is {} on entry of this `for` loop and {last: \*} after .*make all its parts before the loop",
    another_list_inside: r"`d` is {l: \*} on entry .* and {l: \[\*, \*\]} after .*lists and dictionaries in it stay",
    on_one_side: r"`out` is \[\*, \*\] in the `if` branch and \[\*\] in the `else` branch \(.*: out.append\(n\)\)",
    a_second_name_is_assigned: r"e\[0\] = 9\).*`y` still is the list that other names know.*list\(y\)",
    in_a_condition: r"`seen\[0\]` is assigned in this `while` loop",
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_refused_at_the_line(f):
    further = ([1, 2],) if f is of_an_argument else ()
    with pytest.raises(ControlFlowError, match=REFUSED[f]) as caught:
        staged(f)(ll.constant(2), *further)
    assert "test_local_containers.py line" in str(caught.value)
    assert KNOWN == [1, 2]


def test_another_trace_does_not_know_them():
    @staged
    def changes(n):
        if n > 0:
            shared[0] = n
        return n

    def f(n):
        global shared
        return changes(n)

    globals()["shared"] = [0]
    with pytest.raises(ControlFlowError, match=r"`shared\[0\]` is assigned"):
        staged(f)(ll.constant(1))


def test_those_that_nobody_has_any_more_are_forgotten():
    with local_containers.registry():
        kept = local_containers.made([1])
        for i in range(25_000):
            local_containers.made([i])
        assert len(local_containers._known.entries) <= 10_001
        assert local_containers.age(kept) is not None
    assert local_containers.age(kept) is None


def _renamed(x):
    a = [1.0]
    b = a
    if x > 0:
        a = [2.0]
        b[0] = 7.0
    b[0] = b[0] + 1.0
    return a[0]


def _replaced(x):
    a = [1.0]
    c = {"z": a}
    if x > 0:
        a[0] = 4.0
        c = {"z": [6.0]}
    a[0] = a[0] * 10.0
    return c["z"][0]


@pytest.mark.parametrize("f", [_renamed, _replaced])
def test_a_name_that_leaves_an_older_container_in_a_block_that_changes_one_is_refused(f):
    with pytest.raises(ll.errors.ControlFlowError, match="another list or dictionary after one of the blocks"):
        ll.function(f, autograph=True)(ll.constant(-1.0))


OTHER_SPELLINGS = {
    "list.append": ([1.0, 2.0], lambda a, x: list.append(a, x)),
    "__setitem__": ([1.0, 2.0], lambda a, x: a.__setitem__(0, x)),
    "list.__setitem__": ([1.0, 2.0], lambda a, x: list.__setitem__(a, 0, x)),
    "operator.setitem": ([1.0, 2.0], lambda a, x: operator.setitem(a, 0, x)),
    "operator.iadd": ([1.0, 2.0], lambda a, x: operator.iadd(a, [x])),
    "list.reverse": ([1.0, 2.0], lambda a, x: list.reverse(a)),
    "heapq.heappush": ([1.0, 2.0], lambda a, x: heapq.heappush(a, 0.5)),
    "heapq.heappop": ([1.0, 2.0], lambda a, x: heapq.heappop(a)),
    "bisect.insort": ([1.0, 2.0], lambda a, x: bisect.insort(a, 1.5)),
    "partial": ([1.0, 2.0], lambda a, x: functools.partial(a.append, x)()),
    "partial of unbound": ([1.0, 2.0], lambda a, x: functools.partial(list.append, a)(x)),
    "methodcaller": ([1.0, 2.0], lambda a, x: operator.methodcaller("append", x)(a)),
    "map": ([1.0, 2.0], lambda a, x: list(map(a.append, [x, x]))),
    "any": ([1.0, 2.0], lambda a, x: any(map(a.append, [x]))),
    "dict.update": ({"a": 1.0}, lambda a, x: dict.update(a, a=x)),
    "dict.__ior__": ({"a": 1.0}, lambda a, x: a.__ior__({"a": x})),
    "operator.ior": ({"a": 1.0}, lambda a, x: operator.ior(a, {"a": x})),
    "dict.setdefault": ({"a": 1.0}, lambda a, x: dict.setdefault(a, "a", x)),
}


@pytest.mark.parametrize("spelling", OTHER_SPELLINGS)
@pytest.mark.parametrize("known_by", ["its name", "another name", "a container"])
def test_changes_by_whichever_way_are_state(spelling, known_by):
    made, change = OTHER_SPELLINGS[spelling]

    def f(x):
        a = list(made) if isinstance(made, list) else dict(made)
        b = {"its name": a, "another name": a, "a container": [a]}[known_by]
        grown = list(made) if isinstance(made, list) else dict(made)
        change(grown, x)
        if x > 0:
            change(a if known_by == "its name" else b[0] if known_by == "a container" else b, x)
        elif isinstance(a, list):
            while len(a) < len(grown):
                a.append(-x)
            while len(a) > len(grown):
                a.pop()
        return a, b

    for x in (2.0, -2.0):
        assert values(staged(f)(ll.constant(x))) == values(f(ll.constant(x)))


OUTSIDE = {
    "deque.append": (collections.deque([1.0]), lambda a, x: collections.deque.append(a, x)),
    "deque.rotate": (collections.deque([1.0, 2.0]), lambda a, x: a.rotate(1)),
    "methodcaller": (collections.deque([1.0]), operator.methodcaller("append", 2.0)),
    "set.add": ({1.0}, lambda a, x: set.add(a, 2.0)),
    "Counter": (collections.Counter("a"), lambda a, x: a.subtract("a")),
    "list.append": ([1.0], lambda a, x: list.append(a, x)),
    "map": ([1.0], lambda a, x: list(map(a.append, [x]))),
    "heappush": ([1.0], lambda a, x: heapq.heappush(a, 2.0)),
    "copyto": (np.ones(2), lambda a, x: np.copyto(a, 3.0)),
    "out": (np.ones(2), lambda a, x: np.add(a, 1.0, out=a)),
    "add.at": (np.ones(2), lambda a, x: np.add.at(a, 0, 1.0)),
}


@pytest.mark.parametrize("how", OUTSIDE)
def test_what_no_block_can_hold_is_refused_and_stays(how):
    container, change = OUTSIDE[how]
    before = list(container.items() if isinstance(container, dict) else container)

    def f(x):
        if x > 0:
            change(container, x) if how != "methodcaller" else change(container)
        return x

    with pytest.raises(ControlFlowError, match=r"(changes|is changed).* in this `if`") as caught:
        staged(f)(ll.constant(2.0))
    assert "test_local_containers.py line" in str(caught.value)
    assert list(container.items() if isinstance(container, dict) else container) == before


def test_a_condition_changes_nothing():
    def f(x):
        a = [3.0]
        while list(map(a.append, [x])) and x > 0:
            x = x - 1
        return x

    with pytest.raises(ControlFlowError, match=r"a list,? is changed"):
        staged(f)(ll.constant(2.0))


class Kept:
    v = 1.0


@pytest.mark.parametrize("how", ["object.__setattr__(c, 'v', x)", "c.__setattr__('v', x)", "vars(c)['v'] = x"])
def test_attributes_by_whichever_way_are_refused(how, tmp_path):
    source = f"def f(x):\n    c = Kept()\n    if x > 0:\n        {how}\n    return c.v\n"
    (tmp_path / "attributes.py").write_text(source)
    namespace = {"Kept": Kept}
    exec(compile(source, str(tmp_path / "attributes.py"), "exec"), namespace)
    with pytest.raises(ControlFlowError, match="in this `if`"):
        staged(namespace["f"])(ll.constant(2.0))
