"""What a cell reads through objects is compared on each call: a change traces again, and the reason names the way."""

from __future__ import annotations

import sys

import pytest

from limelight.staging.guards import HITS

CLASSES = """
from collections import deque
from types import SimpleNamespace
import argparse, array, collections, contextvars, importlib, os, sys, threading
class Config:
    kind = 1.0
    def __init__(self):
        self.rate, self.sizes, self.t = 2.0, [1.0, 2.0], ll.ones(2)
class Schedule:
    def __init__(self): self.decay = 0.5
    def __call__(self, n): return self.decay ** n
    @property
    def half(self): return self.decay / 2
class Table:
    def __init__(self): self.columns = {"a": np.ones(2, "float32")}
    def __getitem__(self, key): return self.columns[key]
class Slots:
    __slots__ = ("rate", "t")
def counter():
    n = 1.0
    def get(): return n
    def inc():
        nonlocal n
        n += 1.0
    return get, inc
class Items:
    def __init__(self): self.at = 0.0
    def __iter__(self): return self
    def __next__(self):
        self.at += 1.0
        if self.at > 2: self.at = 0.0; raise StopIteration
        return self.at
cfg, schedule, table, space, slots = Config(), Schedule(), Table(), SimpleNamespace(k=3.0), Slots()
slots.rate = 1.5
holder = SimpleNamespace(cfg=cfg, table={"k": 1.0}, flags=np.array([1.0, 2.0]), word="ab")
window, names, raw = deque([ll.ones(2), ll.ones(2)], maxlen=2), {"a"}, bytearray(b"ab")
get, inc = counter()
configs = [Config(), Config()]
by_name = {"a": Config(), "b": Config()}
numbers, raw_view = array.array("f", [1.0, 2.0]), memoryview(bytearray(b"ab"))
local, wrapped = threading.local(), collections.UserList([1.0])
local.rate = 2.0
class Base:
    made = 1.0
    def __init__(self): self.w = Base.made
class Child(Base):
    @classmethod
    def of(cls): return cls()
    def __init__(self): super().__init__()
scale = contextvars.ContextVar("scale", default=2.0)
def of_all(): return [c.rate for c in holder.named.values()]
holder.named = by_name
key = "rate"
x = ll.ones(2)
def rate_of(c): return c.rate
def at_default(x, c=cfg): return x * c.rate
"""
WAYS = [
    ("x * cfg.rate", "cfg.rate = 5.0", "`cfg.rate` 2.0 -> 5.0"),
    ("x * cfg.kind", "Config.kind = 5.0", "`cfg.kind` 1.0 -> 5.0"),
    ("x * cfg.sizes[0]", "cfg.sizes[0] = 5.0", "`cfg.sizes[0]` 1.0 -> 5.0"),
    ("x * sum(cfg.sizes)", "cfg.sizes.append(5.0)", "cfg.sizes"),
    ("x * cfg['rate'] if isinstance(cfg, dict) else x * rate_of(cfg)", "cfg.rate = 5.0", "`cfg`"),
    ("x * vars(cfg)['rate']", "cfg.rate = 5.0", "`cfg` Config object -> Config object with other contents"),
    ("x * getattr(cfg, key)", "cfg.rate = 5.0", "`cfg`"),
    ("x * holder.cfg.rate", "cfg.rate = 5.0", "`holder.cfg.rate` 2.0 -> 5.0"),
    ("x * holder.table['k']", "holder.table['k'] = 5.0", "`holder.table['k']` 1.0 -> 5.0"),
    ("x * holder.flags.astype('float32')", "holder.flags[0] = 5.0", "`holder.flags`"),
    ("x * schedule(2)", "schedule.decay = 0.25", "`schedule.decay` 0.5 -> 0.25"),
    ("x * schedule.half", "schedule.decay = 0.25", "`schedule.decay` 0.5 -> 0.25"),
    ("x * space.k", "space.k = 5.0", "`space.k` 3.0 -> 5.0"),
    ("x * slots.rate", "slots.rate = 5.0", "`slots.rate` 1.5 -> 5.0"),
    ("x * table['a']", "table.columns['a'][0] = 5.0", "`table`"),
    ("x * table['a']", "table.columns['a'] = np.zeros(2, 'float32')", "`table`"),
    ("x * window[0]", "window.append(ll.zeros(2)); window.append(ll.zeros(2))", "`window` deque object -> deque"),
    ("x * len(names)", "names.add('b')", "names"),
    ("x * float(raw[0])", "raw[0] = 7", "raw"),
    ("x * get()", "inc()", "`get.n` 1.0 -> 2.0"),
    ("x * sum([c.rate for c in configs])", "configs[1].rate = 5.0", "`configs[...]`"),
    ("x * sum([c.rate for c in by_name.values()])", "by_name['b'].rate = 5.0", "`by_name[...]`"),
    ("x * max(sorted(c.rate for _, c in by_name.items()))", "by_name['b'].rate = 5.0", "`by_name[...]`"),
    ("x * sum(of_all())", "by_name['a'].rate = 5.0", "`holder.named`"),
    ("x * scale.get()", "token = scale.set(5.0)", "`scale`"),
    ("x * float(os.environ['LIMELIGHT_TEST'])", "os.environ['LIMELIGHT_TEST'] = '3'", "`os.environ['LIMELIGHT_TEST']`"),
    ("x * float(os.environ.get('LIMELIGHT_TEST', '0'))", "os.environ['LIMELIGHT_TEST'] = '3'", "`os.environ`"),
    ("x * float(os.getenv('LIMELIGHT_TEST'))", "os.environ['LIMELIGHT_TEST'] = '3'", "`os.environ`"),
    ("x * len(sys.argv)", "sys.argv.append('more')", "`sys.argv`"),
    ("x * numbers[0]", "numbers[0] = 5.0", "`numbers`"),
    ("x * float(raw_view[0])", "raw_view[0] = 5", "`raw_view`"),
    ("x * wrapped[0]", "wrapped[0] = 5.0", "`wrapped`"),
    ("x * local.rate", "local.rate = 5.0", "`local`"),
    ("x * Child.of().w", "Base.made = 5.0", "`Base.made` 1.0 -> 5.0"),
    ("at_default(x)", "cfg.rate = 5.0", "`at_default.__defaults__`"),
    ("x * float(cfg.t.ndim)", "cfg.t = ll.zeros((2, 2))", "`cfg.t`"),
    ("x * holder.flags.T[0]", "holder.flags[0] = 5.0", "`holder.flags`"),
    ("x * len(holder.word.upper())", "holder.word = 'abc'", "`holder.word` 'ab' -> 'abc'"),
    ("x * holder.table.get('k')", "holder.table['k'] = 5.0", '`holder.table["k"]` 1.0 -> 5.0'),
    (
        "x * float(np.dot([1.0], [2.0])) * cfg.rate",
        "cfg.rate = np.float32(5.0)",
        "`cfg.rate` 2.0 -> numpy.float32 '5.0'",
    ),
]


@pytest.fixture
def notebook(run, monkeypatch):
    monkeypatch.setenv("LIMELIGHT_TEST", "2")
    monkeypatch.setattr(sys, "argv", ["notebook"])
    run("%load_ext limelight")
    run("import limelight as ll\nimport numpy as np")
    run(CLASSES)
    return run


def count(notebook):
    return notebook("step.trace_count").value


@pytest.mark.parametrize(("code", "change", "reason"), WAYS)
def test_a_change_traces_again(notebook, code, change, reason):
    cell = f"%%stage -q step\ny = {code}\ny"
    for _ in range(2):
        assert notebook(cell).value.tolist() == notebook(code).value.tolist()
    assert count(notebook) == 1
    notebook(change)
    for _ in range(2):
        assert notebook(cell).value.tolist() == notebook(code).value.tolist()
    assert count(notebook) == 2
    assert reason in " ".join(notebook("step.trace_cache[-1].reason").value.split())


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("x * cfg.t", "cfg.t = cfg.t + 5.0"),
        ("x * cfg.t.sum()", "cfg.t = ll.zeros(2)"),
        ("x * vars(cfg)['t']", "cfg.t = ll.zeros(2)"),
        ("x * getattr(cfg, 't')", "cfg.t = ll.zeros(2)"),
        ("x * holder.table['t']", "holder.table['t'] = ll.zeros(2)"),
        ("x * sum(holder.ts)", "holder.ts[1] = ll.zeros(2)"),
        ("x * sum(vars(holder)['ts'])", "holder.ts[0], holder.ts[1] = holder.ts[1] * 2.0, holder.ts[0]"),
        ("x * space.t", "space.t = ll.zeros(2)"),
        ("x * slots.t", "slots.t = slots.t * 2.0"),
        ("x * (lambda o: o.t)(cfg)", "cfg.t = ll.zeros(2)"),
    ],
)
def test_another_tensor_of_its_type_finds_the_trace(notebook, code, change):
    notebook(
        "holder.table['t'], holder.ts, space.t, slots.t = ll.ones(2), [ll.ones(2), ll.ones(2)], ll.ones(2), ll.ones(2)"
    )
    cell = f"%%stage -q step\ny = {code}\ny"
    for text in ("0", change, "1", change):
        notebook(text)
        assert notebook(cell).value.tolist() == notebook(code).value.tolist()
    assert count(notebook) == 1


def test_a_tensor_whose_value_is_asked_for_is_compared(notebook):
    cell = "%%stage -q step\ny = x * cfg.t.tolist()[0]\ny"
    for _ in range(2):
        assert notebook(cell).value.tolist() == notebook("x * cfg.t.tolist()[0]").value.tolist()
        notebook("cfg.t = cfg.t + 3.0")
    assert len(notebook("step.trace_cache").value) == 2


def test_what_is_not_read_may_change(notebook):
    notebook("%%stage -q step\ny = x * cfg.rate")
    notebook("cfg.other, cfg.t = 1, None\nouts = step()")
    assert count(notebook) == 1


def test_what_goes_back_finds_its_trace(notebook):
    notebook("%%stage -q step\ny = x * cfg.rate + len(window)")
    notebook("cfg.rate = 5.0\nouts = step()\ncfg.rate = 2.0\nouts = step()")
    notebook("first = window.popleft()\nouts = step()\nwindow.appendleft(first)\nouts = step()")
    assert count(notebook) == 3


def test_another_object_is_read_instead(notebook):
    notebook("%%stage -q step\ny = x * cfg.rate\ny")
    notebook("cfg = Config()\ncfg.rate = 9.0")
    assert notebook("%%stage -q step\ny = x * cfg.rate\ny").value.tolist() == [9.0, 9.0]
    notebook("other = Config()\nother.rate = 4.0")
    assert notebook("step(cfg=other)[1].tolist()").value == [4.0, 4.0]


def test_an_iterator_of_the_users_class_is_gone_through_again(notebook):
    notebook("items = Items()")
    for _ in range(3):
        assert notebook("%%stage -q\ny = x * sum(items)\ny").value.tolist() == [3.0, 3.0]


def test_modules_that_are_edited(notebook, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "edited_helpers.py"
    path.write_text("SCALE = 2.0\ndef act(x):\n    return x * SCALE\n")
    notebook("import edited_helpers\nfrom edited_helpers import act")
    cell = "%%stage -q step\ny = edited_helpers.act(x) + act(x)\ny"
    try:
        assert notebook(cell).value.tolist() == [4.0, 4.0]
        path.write_text("SCALE = 2.0\ndef act(x):\n    return x * SCALE + 100.0\n")
        notebook("old = act.__code__\nimportlib.reload(edited_helpers)")
        assert notebook(cell).value.tolist() == [104.0, 104.0]
        notebook("edited_helpers.SCALE = 3.0")
        assert notebook(cell).value.tolist() == [106.0, 106.0]
        notebook("act.__code__ = edited_helpers.act.__code__  # as %autoreload does")
        assert notebook(cell).value.tolist() == [206.0, 206.0]
    finally:
        sys.modules.pop("edited_helpers", None)


@pytest.mark.parametrize(
    ("made", "taken", "what"),
    [
        ("it = (ll.ones(2) for _ in range(3))", "for b in it:\n    y = b", "generator"),
        ("it = iter([ll.ones(2), x, x])", "y = next(it)", "list_iterator"),
        ("it = map(abs, [1.0, 2.0, 3.0])", "y = x * sum(it)", "map"),
        ("holder.it = zip([x, x, x])\nit = holder.it", "for (b,) in holder.it:\n    y = b", "zip"),
        ("it = enumerate([x, x, x])\ndef helper():\n    return next(it)[1]", "y = helper()", "enumerate"),
    ],
)
def test_iterators_are_refused_and_keep_their_items(notebook, made, taken, what):
    notebook(made)
    ran = notebook(f"%%stage -q\n{taken}", fails=True)
    assert f"is a {what}, whose items are gone once they are taken" in str(ran.error)
    assert "in a cell above" in str(ran.error)
    assert notebook("len(list(it))").value == 3
    assert notebook("'y' in dir()").value is False


@pytest.mark.parametrize("view", ["keys", "values", "items"])
def test_views_of_dictionaries_are_refused(notebook, view):
    notebook(f"d = {{'a': x}}\nview = d.{view}()")
    ran = notebook("%%stage -q\ny = len(list(view)) * x\nd['b'] = y", fails=True)
    assert "`view` is a view of a dictionary" in str(ran.error)
    assert f"Write `items = list(view)` in a cell above and read `items` here, or `d.{view}()`" in str(ran.error)
    assert notebook("len(d)").value == 1


@pytest.mark.parametrize(
    ("made", "changes", "state"),
    [
        ("import io\nout = io.StringIO()", "out.write('a')", "out.getvalue()"),
        ("import io\nout = io.BytesIO()", "out.write(b'a')", "out.getvalue()"),
        ("import io, csv\nout = io.StringIO()\nw = csv.writer(out)", "w.writerow([1])", "out.getvalue()"),
        ("import hashlib\nout = hashlib.md5()", "out.update(b'a')", "out.digest()"),
        ("import queue\nout = queue.Queue()", "out.put(1)", "out.qsize()"),
        ("import queue\nout = queue.SimpleQueue()", "out.put(1)", "out.qsize()"),
        ("import array\nout = array.array('d')", "out.append(1.0)", "len(out)"),
        ("import zlib\nout = zlib.compressobj()", "n = out.compress(bytes(1000))", "len(out.copy().flush())"),
        ("import io\nout = io.StringIO()", "if True: k = out.write('a')", "out.getvalue()"),
        ("import io, pickle\nout = io.BytesIO()", "pickle.dump(1, out)", "out.getvalue()"),
        ("import collections\nout = collections.UserList()", "out.append(1)", "len(out)"),
        ("import shlex\nout = shlex.shlex('a b c d e f')", "word = out.get_token()", "out.token, out.instream.tell()"),
        ("import sqlite3\nout = sqlite3.connect(':memory:')\nc = out.execute('create table t (a)')",
         "done = out.execute('insert into t values (1)') and None", "out.total_changes"),
    ],
)  # fmt: skip
def test_each_run_changes_the_objects_of_pythons_library_whose_methods_it_calls(notebook, made, changes, state):
    notebook(made)
    states = []
    for _ in range(3):
        notebook(f"%%stage -q\n{changes}\ny = x * 2.0")
        states.append(notebook(state).value)
    assert len({repr(one) for one in states}) == 3
    if "sqlite3" in made:
        notebook("c.close()\nout.close()")


def test_what_each_run_changes_is_told_by_its_type(notebook):
    notebook("import io\nout = io.StringIO()")
    for _ in range(2):
        notebook("%%stage -q step\nout.write('a')\ny = x * 2.0")
    said = notebook("%trace_cache step --why --text").out
    assert "argument `out` StringIO as this run finds it" in " ".join(said.split())
    assert "EachRun" not in said


def test_a_cell_that_each_run_traces_does_not_warn_of_what_tracing_does(notebook):
    notebook("import io\nout = io.StringIO()")
    ran = notebook("%%stage -q step\nprint('a', file=out)\nprint('b')\ny = x * 2.0")
    assert (ran.warned, ran.out) == ([], "b\n")
    assert notebook("%%stage -q step\nprint('a', file=out)\nprint('b')\ny = x * 2.0").out == "b\n"
    assert notebook("out.getvalue()").value == "a\na\n"


def test_what_a_trace_changes_and_nothing_puts_back_makes_the_next_run_trace(notebook):
    """Although the object is, before the third run, what it was before the first."""
    notebook("import types\nbox = types.SimpleNamespace(mask=np.array([True, False]))")
    seen = []
    for _ in range(4):
        notebook("%%stage -q step\nbox.mask ^= True\ny = x * 2.0")
        seen.append(notebook("box.mask.tolist()").value)
    assert seen == [[False, True], [True, False]] * 2


def test_objects_of_libraries_are_compared_by_their_attributes(notebook):
    notebook("import textwrap\nwrapper = textwrap.TextWrapper(width=8)")
    cell = "%%stage -q step\nlines = wrapper.wrap('one two three four')\ny = x * len(lines)"
    notebook(cell)
    notebook("wrapper.width = 40")
    notebook(cell)
    assert notebook("lines").value == ["one two three four"]
    notebook("wrapper.width = 8")
    notebook(cell)
    assert notebook("len(lines), len(step.trace_cache)").value == (3, 2)


@pytest.mark.parametrize("taken", ["y = averager.send(x)", "y = averager.__next__()", "y = x\naverager.close()"])
def test_generators_are_not_led_on(notebook, taken):
    notebook("def average():\n    total = 0.0\n    while True:\n        total = total + (yield total)")
    notebook("averager = average()\nstart = next(averager)")
    ran = notebook(f"%%stage -q\n{taken}", fails=True)
    assert "is a generator, which `averager." in str(ran.error)
    assert "in a cell without %%stage" in str(ran.error)
    assert notebook("averager.send(2.0)").value == 2.0


def test_names_of_the_history_are_inputs(notebook):
    notebook("x * 3.0")
    cell = "%%stage -q step\ny = _4 + Out[4] * 2.0"
    notebook(cell)
    assert notebook("y.tolist()").value == [9.0, 9.0]
    notebook("len(In)")
    notebook(cell)
    assert count(notebook) == 1, "only what is read of it matters"
    last = "%%stage -q latest\nz = _ * 2.0"
    notebook("x * 5.0")
    notebook(last)
    notebook("x * 7.0")
    notebook(last)
    assert notebook("z.tolist()").value == [14.0, 14.0]


def test_a_call_looks_at_attributes_cheaply(notebook):
    notebook("many = SimpleNamespace(**{f'a{i}': i / 2 for i in range(20)})")
    notebook("%%stage -q step\ny = x * (" + "+".join(f"many.a{i}" for i in range(20)) + ")")
    assert _calls(notebook("step").value) < 230


def test_a_call_with_plain_inputs_is_cheap(notebook):
    notebook("\n".join(f"p{i} = {i / 2 if i % 2 else i}" for i in range(20)))
    notebook("%%stage -q step\ny = x * (" + "+".join(f"p{i}" for i in range(20)) + ")")
    assert _calls(notebook("step").value) < 200


def test_a_large_dictionary_is_compared_as_a_whole(notebook):
    notebook("vocab = {f'w{i}': i for i in range(5000)}")
    notebook("%%stage -q step\ny = x * vocab['w7']")
    assert _calls(notebook("step").value) < 150
    notebook("vocab['w7'] = 8\nouts, _ = step()")
    assert notebook("outs['y'].tolist()").value == [8.0, 8.0]
    notebook("vocab['w7'] = 8.0\nouts, _ = step()\nvocab['w8'] = True")
    assert count(notebook) == 3


def _calls(staged):
    """How many functions of Python's a cached call enters."""
    for _ in range(2 * HITS):
        staged.call({})
    calls = 0

    def note(_frame, event, _arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        staged.call({})
    finally:
        sys.setprofile(None)
    return calls


def test_an_iterator_over_data_is_an_op_of_the_cell(notebook):
    notebook("data = ll.data.from_sequence([1.0, 2.0, 3.0, 4.0])\nit = iter(data)\ntable = ll.lookup.HashTable()")
    cell = "%%stage step --strict -q\ny = next(it) * 2.0\ntable.insert(ll.constant(5), y)\nz = table.lookup(5)"
    ran = notebook(cell)
    assert ran.error is None
    assert ran.warned == []
    assert notebook("y.item(), z.item()").value == (2.0, 2.0)
    notebook(cell)
    assert notebook("y.item(), z.item(), step.trace_count").value == (4.0, 4.0, 1)
    notebook("state = it.get_state()")
    notebook(cell)
    notebook("it.set_state(state)")
    notebook(cell)
    assert notebook("y.item(), step.trace_count").value == (6.0, 1)
    assert isinstance(notebook("for _ in range(9): step()", fails=True).error, StopIteration)


@pytest.mark.parametrize("options", ["", "--autograph"])
def test_a_for_over_data_begins_anew_at_each_run_of_the_cell(notebook, options):
    notebook("data = ll.data.from_arrays(ll.ones((5, 2))).batch(2)")
    ran = notebook(f"%%stage step -q {options}\ntotal = 0.0\nfor batch in data:\n    total = total + ll.sum(batch)")
    assert ran.error is None
    assert notebook("total.item()").value == 10.0
    notebook(f"%%stage step -q {options}\ntotal = 0.0\nfor batch in data:\n    total = total + ll.sum(batch)")
    assert notebook("total.item(), step.trace_count").value == (10.0, 1)
    kept = notebook("%%stage own -q\nit = iter(data)\nfirst = next(it)", fails=True)
    assert "make it in a cell below" in str(kept.error)
