"""autograph=True and the rest of Python: where source comes from, who looks at their caller, loops that leave."""

# ruff: noqa: PLC3002, SIM108  # the statements are what is tested

import functools
import importlib
import linecache
import sys
import warnings
import zipfile

import pytest

import limelight as ll
from limelight.errors import ArgumentError, ControlFlowError

staged = functools.partial(ll.function, autograph=True)
WHERE = "a global"


def after_a_loop_that_may_break(x):
    for v in ll.stack([x, x * 2]):
        if v > 3:
            break
    else:
        return -v
    return v


def found_in_rows(x):
    for row in ll.stack([ll.stack([x, -x]), ll.stack([x * 2, x])]):
        for v in row:
            if v > 3:
                return v
            if v < -3:
                break
        else:
            continue
        return -row[0]
    return x * 0


def while_with_else(x):
    while 0 < x < 10:
        x = x * 2
        if x == 8:
            break
    else:
        x = x + 100
    return x


def returns_through_finally(x):
    seen = []
    try:
        with ll.name_scope("inside"):
            if x > 0:
                return x * 2
        x = x - 1
    finally:
        seen.append(1)
    return x


def tries_while_python_decides(x):
    for i in range(3):
        try:
            if i == 1:
                raise ValueError
            x = x + 1
        except ValueError:
            x = x * 2
        else:
            x = x + 10
        finally:
            x = x - 1
    return x if x > 0 else -x


def returns_only_where_python_says_so(x, never=False):
    for i in range(ll.astype(ll.abs(x), ll.int32)):
        if never:
            return x - i
        x = x + 1
    return x * 2


def larger_and_smaller_of_equal_ones(x):
    return max(x, 2.0, 1) * 3 + min(x, x * 1, 4.0) + max(1, 2)


def shadows(x):
    dict, tuple = {"b": 2.0}, (x, 1.0)  # the names that a call's arguments might be made with
    return (lambda a, c, b=0.0, **more: a + b + c + more["d"] if a > 0 else a)(*tuple, **dict, d=x)


@pytest.mark.parametrize(
    "f",
    [
        after_a_loop_that_may_break,
        found_in_rows,
        while_with_else,
        returns_through_finally,
        tries_while_python_decides,
        returns_only_where_python_says_so,
        larger_and_smaller_of_equal_ones,
        shadows,
    ],
    ids=lambda f: f.__name__,
)
def test_converted_code_goes_where_python_goes(f):
    g = staged(f)
    for x in (-6.0, -1.0, 0.5, 1.0, 2.0, 4.0):
        assert g(ll.constant(x)).item() == f(ll.constant(x)).item()
    assert g.trace_count == 1
    total = ll.grad(g)(ll.constant(2.0)).item(), ll.grad(f)(ll.constant(2.0)).item()
    assert total[0] == total[1]


def test_source_in_an_archive_and_source_that_was_compiled(tmp_path, monkeypatch):
    text = "def size(x):\n    if x > 0:\n        return x\n    return -x\n"
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("module_in_an_archive.py", text)
    monkeypatch.syspath_prepend(str(tmp_path / "archive.zip"))
    module = importlib.import_module("module_in_an_archive")
    assert staged(module.size)(ll.constant(-2.0)).item() == 2.0
    space = {}
    exec(compile(text, "<written here>", "exec"), space)
    with pytest.raises(
        ControlFlowError, match=r"the source of `size` is not available .*define it in a file or a note"
    ):
        staged(space["size"])(ll.constant(-2.0))
    exec(compile(text, "<written there>", "exec"), space)
    monkeypatch.setitem(linecache.cache, "<written there>", (len(text), None, text.splitlines(True), "<written there>"))
    assert staged(space["size"])(ll.constant(-2.0)).item() == 2.0
    sys.modules.pop("module_in_an_archive")


def test_a_file_that_has_changed_says_so(tmp_path, monkeypatch):
    path = tmp_path / "changing_module.py"
    path.write_text("def size(x):\n    return x if x > 0 else -x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("changing_module")
    path.write_text("# another line\n\n\ndef other(x):\n    return x\n")
    linecache.checkcache()
    with pytest.raises(ControlFlowError, match=r"`size` is not where changing_module.py says: the file has changed"):
        staged(module.size)(ll.constant(-2.0))
    sys.modules.pop("changing_module")


def test_functions_that_look_at_their_caller_find_the_user():
    def f(x):
        warnings.warn("mine", stacklevel=1)
        if x > 0:
            y = len(globals()["WHERE"])
        else:
            y = 0
        return y

    with pytest.warns(UserWarning, match="mine") as caught:
        assert staged(f)(ll.constant(1.0)).item() == 8
    assert caught[0].filename == __file__


def sees_locals(x):
    y = 1
    names = sorted(locals())
    return x if x > 0 else y + len(names)


def evaluates(x):
    return eval("x + 1") if x > 0 else x


def hands_out(x):
    def inner():
        yield x

    return next(inner()) if x > 0 else x


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (sees_locals, r"it asks for the names around it \(`locals\(\)`\)"),
        (evaluates, r"it asks for the names around it \(`eval\(\)`\)"),
        (hands_out, r"it has a generator in it \(`inner`\); define that outside"),
    ],
)
def test_what_needs_its_own_frame_stays_as_it_is(f, why):
    with pytest.raises(ControlFlowError, match=rf"`{f.__name__}` asks a tensor .*could not be converted: {why}"):
        staged(f)(ll.constant(1.0))
    assert f(1.0) is not None


def test_what_a_graph_cannot_do_is_refused_when_it_is_staged():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    with pytest.raises(ArgumentError, match=r"generator is a generator function \(`yield`\).*Return a list or tuple"):
        ll.function(generator)
    with pytest.raises(
        ArgumentError, match=r"coroutine is a coroutine function \(`async def`\).*Give it a plain function"
    ):
        staged(coroutine)
