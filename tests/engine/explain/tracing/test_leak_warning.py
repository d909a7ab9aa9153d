"""A symbolic tensor that is left behind is told of at the line that stores it, at the first call."""

import gc
import re
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace

import pytest

import limelight as ll
from limelight.errors import LostChangeWarning
from limelight.user_code import holders

STORES = {  # the line that stores a tensor, and where it is kept
    "list": ("kept.append(y)", "kept[0]"),
    "extended": ("kept.extend([y, y])", "kept[0]"),
    "deque": ("window.append(y)", "window[0]"),
    "dictionary": ("table['k'] = y", "table['k']"),
    "nested": ("groups['g'].append({'y': y})", "groups['g'][0]['y']"),
    "ordered": ("order['y'] = (1, y)", "order['y'][1]"),
    "counter": ("tally['y'] = y", "tally['y']"),
    "set default": ("table.setdefault('k', y)", "table['k']"),
    "attribute": ("box.last = y", "box.last"),
    "list of an object": ("box.kept.append(y)", "box.kept[0]"),
    "namespace": ("space.y = y", "space.y"),
    "class": ("Box.shared = y", "Box.shared"),
    "argument": ("given.last = y", "box.last"),
    "default": ("helper(y)", "helper.__defaults__[0][0]"),
    "function": ("helper.memo = y", "helper.memo"),
}


class Box:
    def __init__(self):
        self.kept = []


def names_of(store):
    def helper(y, into=[]):  # noqa: B006  # a mutable default is what is tried
        into.append(y)

    names = {"ll": ll, "kept": [], "window": deque(), "table": {}, "groups": defaultdict(list), "tally": Counter()}
    names |= {"order": OrderedDict(), "box": Box(), "space": SimpleNamespace(), "Box": type("Box", (), {})}
    names |= {"helper": helper}
    exec(
        compile(f"@ll.function\ndef f(x, given=box):\n    y = x * 2.0\n    {store}\n    return y", "<f>", "exec"), names
    )
    return names


@pytest.fixture(autouse=True)
def as_in_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """One module of the user's: all those of the tests are more to look through than 0.2 s are meant for."""
    modules = list(holders._modules())
    mine = [root for root in modules if root[0] is globals()]
    assert mine or not modules
    monkeypatch.setattr(holders, "_modules", lambda: iter(mine))
    monkeypatch.setattr(holders, "SECONDS", 5.0)  # on a busy machine


@pytest.mark.parametrize(("store", "place"), STORES.values(), ids=STORES)
def test_what_is_stored_is_told_of_at_the_first_call(store, place):
    names = names_of(store)
    with pytest.warns(LostChangeWarning, match="leaves a symbolic tensor behind: the result of multiply") as told:
        names["f"](ll.ones(2))
    assert re.sub(r"^\w+", r"names['\g<0>']", place) in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        names["f"](ll.ones(2))  # a hit


def test_the_line_is_that_of_the_store(tmp_path):
    file = tmp_path / "program.py"
    body = "@ll.function\ndef f(x):\n    y = 2 * x\n\n    log.append(x)\n    return y\n"
    file.write_text(f"import limelight as ll\nlog = []\n\n{body}")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.warns(LostChangeWarning) as told:
        names["f"](ll.ones(2))
    assert (told[0].filename, told[0].lineno) == (str(file), 8)


def test_what_is_not_kept_is_not_told_of():
    passing = []

    @ll.function
    def f(x):
        local = [x * 2.0]
        passing.append(local[0])
        inner = ll.function(lambda t: t * local[0])  # which captures a tensor of this trace
        made = inner(x) + passing.pop()
        cycle = [made]
        cycle.append(cycle)
        try:
            raise ValueError(made)
        except ValueError as error:
            return error.args[0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(ll.ones(2))
        f(ll.ones(3))


def test_numbers_that_are_kept_are_the_effect_of_a_trace_and_not_told_of():
    runs, count = [], Counter()

    @ll.function
    def f(x):
        runs.append(x.shape)
        count["traces"] += 1
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(ll.ones(2))
    assert (runs, count["traces"]) == ([(2,)], 1)
    assert [one.kind for one in ll.explain.side_effects(f).records] == ["mutation", "mutation"]


def test_it_keeps_nothing_alive():
    box = Box()

    @ll.function
    def f(x):
        box.kept.append(x * 2.0)
        return x

    with pytest.warns(LostChangeWarning):
        f(ll.ones(2))
    tracer = weakref.ref(box.kept[0]._tracer)
    box.kept.clear()
    gc.collect()
    assert tracer() is None


def test_what_an_inner_trace_has_captured_is_not_searched_for(monkeypatch):
    searched = []
    monkeypatch.setattr("limelight.explain.tracing.leak_warning.first_holder", searched.append)

    @ll.function
    def outer(x):
        y = x * 2.0
        return ll.function(lambda z: z + y)(x)

    inner = []

    @ll.function
    def keeping(x):
        y = x * 2.0
        inner.append(ll.function(lambda z: z + y))
        return inner[-1](x)

    assert outer(ll.constant(1.0)).item() == 3.0
    assert not searched
    keeping(ll.constant(1.0))
    assert searched, "the function that is kept has one in its closure, too"
