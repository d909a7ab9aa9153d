"""Programs that call a staged `f` once more, for each cause of a trace, or of none where one might be expected."""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """`text` ends with the call in question; `said` is in its explanation.

    `traces`: how often `f` has traced by then. `mended`: how often with the printed fix, None where there is no fix.
    """

    text: str
    said: str
    traces: int
    mended: int | None = None


def staged(body: str, calls: str, head: str = "x", setting: str = "", options: str = "") -> str:
    """A program that stages `f(head)` and calls it."""
    return f"{setting}\nx = ll.ones((2, 3))\n@ll.function{options}\ndef f({head}):\n    return {body}\n{calls}"


VIRTUAL = "ll.config.set_virtual_devices(CPU=2)"
CONFIG = "class Config:\n    rate = 2.0\nconfig = Config()"
VARIABLES = "v = ll.Variable(1.0)\nw = ll.Variable(2.0)"

TRACED = {
    "first call": Program(staged("x", "f(x)"), "`f` traced at {here}: first call", 1),
    "shape": Program(
        staged("x", "for n in (2, 3):\n    f(ll.ones((n, 3)))"),
        "argument `x` f32[2,3] -> f32[3,3] (axis 0: 2 -> 3)", 2, 1,
    ),
    "rank": Program(
        staged("x", "for shape in ((3,), (1, 3)):\n    f(ll.ones(shape))"),
        "argument `x` f32[3] -> f32[1,3] (rank 1 -> 2)", 2, 1,
    ),
    "dtype": Program(
        staged("x", "for kind in (ll.float32, ll.int32):\n    f(ll.ones((2,), dtype=kind))"),
        "argument `x` f32[2] -> i32[2]", 2, 1,
    ),
    "Python float": Program(
        staged("x * n", "for n in (0.5, 1.5):\n    f(x, n)", "x, n"), "argument `n` 0.5 -> 1.5", 2, 1
    ),
    "Python float that decides": Program(
        staged("x * n if n > 1 else x", "for n in (0.5, 1.5):\n    f(x, n)", "x, n"),
        "argument `n` 0.5 -> 1.5. Closest: trace #1 ({here}, used once). Cost {cost}. `n` cannot simply be a tensor: "
        "an `if` asks for it at {file} line 4, where ll.cond takes one.", 2,
    ),
    "Python int": Program(
        staged("x * n", "for n in (1, 2):\n    f(x, n)", "x, n"), "argument `n` 1 -> 2", 2, 1
    ),
    "Python int that is a size": Program(
        staged("ll.concat([x] * n)", "for n in (1, 2):\n    f(x, n)", "x, n"),
        "argument `n` 1 -> 2. Closest: trace #1 ({here}, used once). Cost {cost}. `n` cannot simply be a tensor: "
        "`[x] * n` repeats something at {file} line 4.", 2,
    ),
    "string": Program(staged("x", "f(x, 'relu')\nf(x, 'tanh')", "x, kind"), "argument `kind` 'relu' -> 'tanh'", 2),
    "mode flag": Program(
        staged("x", "f(x)\nf(x, training=True)", "x, *, training=False"), "argument `training` False -> True", 2
    ),
    "None": Program(staged("x", "f(x)\nf(x, x)", "x, mask=None"), "argument `mask` None -> f32[2,3]", 2),
    "type of a value": Program(
        staged("x * n", "for n in (1.0, 2):\n    f(x, n)", "x, n"), "argument `n` 1.0 -> 2 (float -> int)", 2, 1
    ),
    "another default": Program(staged("x", "f(x)\nf(x, 4)", "x, n=3"), "argument `n` 3 -> 4", 2),
    "list or tuple": Program(
        staged("xs[0]", "for xs in ([x, x], (x, x)):\n    f(xs)", "xs"), "argument `xs` list of 2 -> tuple of 2", 2, 1
    ),
    "number of values": Program(staged("xs[0]", "f([x])\nf([x, x])", "xs"), "argument `xs` 1 value -> 2 values", 2),
    "dictionary keys": Program(
        staged("d['a']", "part = {'a': x}\nwhole = {'a': x, 'b': x}\nfor d in (part, whole):\n    f(d)", "d"),
        'argument `d` keys {"a"} -> keys {"a", "b"} (with "b")', 2, 1,
    ),
    "new function in a loop": Program(
        staged("g(x)", "for i in range(2):\n    f(x, lambda v: v + 1)", "x, g"),
        "argument `g` function <lambda> (deleted) -> function <lambda> (a new function object)", 2, 1,
    ),
    "redefined function": Program(
        staged("g(x)", "def g(v): return v\nf(x, g)\nkeep = g\ndef g(v): return v + 1\nf(x, g)", "x, g"),
        "argument `g` function g -> function g (defined again: the same name, another object)", 2,
    ),
    "another object": Program(
        staged("x * c.rate", "f(x, config)\nother = Config()\nf(x, other)", "x, c", CONFIG),
        "argument `c` Config object -> Config object (another object)", 2,
    ),
    "deleted object": Program(
        staged("x * c.rate", "for i in range(2):\n    f(x, Config())", "x, c", CONFIG),
        "argument `c` Config object (deleted) -> Config object (the former one has been deleted)", 2, 1,
    ),
    "device of a tensor": Program(
        staged("x", "for y in (x, x.to('CPU:1')):\n    f(y)", setting=VIRTUAL),
        "argument `x` f32[2,3] -> f32[2,3] on CPU:1", 2, 1,
    ),
    "device scope": Program(
        staged("x", "for d in ('CPU:0', 'CPU:1'):\n    with ll.device(d):\n        f(x)", setting=VIRTUAL),
        "the device scope CPU:0 -> CPU:1", 2, 1,
    ),
    "aliasing": Program(
        staged("a * b", "f(v, w)\nf(v, v)", "a, b", VARIABLES),
        "argument `b` a variable of its own -> the same variable as `a`", 2,
    ),
    "closed-over variable": Program(
        staged("a * w", "f(v)\nf(w)", "a", VARIABLES),
        "argument `a` any other variable -> a variable that the function closes over, too", 2,
    ),
    "spec of a variable": Program(
        staged("a", "f(v)\nf(ll.Variable([1.0]))", "a", VARIABLES), "argument `a` var f32[] -> var f32[1]", 2
    ),
    "variable created": Program(
        staged("x * (held or held.append(ll.Variable(2.0)) or held)[0]", "f(x)", setting="held = []"),
        "first call. Its Python code ran twice, since it created 1 variable.", 2,
    ),
    "conflict of symbolic sizes": Program(
        staged("x", "for n in (1, 2):\n    f(ll.ones((n, 3)))\nf(ll.ones((5, 4)))", options="(reduce_retracing=True)"),
        "argument `x` f32[?,3] -> f32[5,4] (axis 1: 3 -> 4)", 3, 1,
    ),
    "nested callee": Program(
        staged("x", "outer = ll.function(lambda v: f(v) + 1.0, name='outer')\nouter(x)\nouter(ll.ones((5, 3)))"),
        "`f` traced again at {here} while tracing `outer`: argument `x` f32[2,3] -> f32[5,3]", 2, 1,
    ),
    "ended capture": Program(
        staged(
            "x + held[-1]",
            "def outer(v):\n    held.append(v)\n    return f(x)\nouter = ll.function(outer)\nouter(ll.ones((3,)))\n"
            "outer(ll.ones((1,)))",
            setting="held = []",
        ),
        "captured a tensor of an enclosing function whose trace has ended", 2,
    ),
    "evicted": Program(
        staged("x", "for n in (2, 3, 2):\n    f(ll.ones((n,)))", options="(cache_size=1)"),
        "its trace #1 ({here}, used once) for these arguments was evicted, since the cache holds 1 trace at most. "
        "Cost {cost}. Fix: @ll.function(cache_size=2)", 3, 2,
    ),
    "cleared": Program(
        staged("x", "f(x)\nf.clear_cache()\nf(x)"), "the cache was cleared; it held trace #1 ({file} line 5", 2
    ),
    "method of another object": Program(
        "x = ll.ones((2,))\nclass Net:\n    @ll.function\n    def step(self, v): return v\nfor i in range(4):\n"
        "    net = Net()\n    net.step(x)\nf = net.step",
        "first call for this Net object, since each has traces of its own; `Net.step` ({file} line 3) was traced for "
        "others 3 times before. Cost {cost}. Make the Net object once, before the loop", 1,
    ),
    "staged anew in a loop": Program(
        "x = ll.ones((2,))\nfor i in range(3):\n    f = ll.function(lambda v: v + i)\n    f(x)",
        "first call of a newly staged function; its definition ({file} line 3) was staged and traced 2 times before", 1,
    ),
}  # fmt: skip

UNTRACED = {
    "positional or keyword": Program(
        staged("a + b", "f(x, x)\nf(b=x, a=x)", "a, b"), "Arguments by keyword and by position, and defaults", 1
    ),
    "default given or left out": Program(
        staged("x", "f(x)\nf(x, n=3)", "x, n=3"), "defaults left out or given, make one call", 1
    ),
    "order of keys": Program(
        staged("d['a']", "f({'a': x, 'b': x})\nf({'b': x, 'a': x})", "d"),
        "The order of a dictionary's keys makes no difference.", 1,
    ),
    "changed global": Program(
        staged("x * scale", "f(x)\nscale = 3.0\nf(x)", setting="scale = 2.0"),
        "It would not see that `scale` (global) was 2.0 then and is 3.0 now.", 1,
    ),
    "changed closure": Program(
        "x = ll.ones((2,))\ndef made():\n    n = 1.0\n    def set(to):\n        nonlocal n\n        n = to\n"
        "    return ll.function(lambda v: v * n), set\nf, set = made()\nf(x)\nset(2.0)\nf(x)",
        "It would not see that `n` (closure) was 1.0 then and is 2.0 now.", 1,
    ),
    "mutated attribute": Program(
        staged("x * c.rate", "f(x, config)\nconfig.rate = 3.0\nf(x, config)", "x, c", CONFIG),
        "It would not see that `c.rate` (attribute) was 2.0 then and is 3.0 now.", 1,
    ),
    "run eagerly": Program(
        staged("x", "f(x)", options="(run_eagerly=True)"),
        "would run its Python code, and trace nothing.\nIts run_eagerly is on.", 0,
    ),
}  # fmt: skip

REFUSED = {
    "unhashable": Program(staged("x", "f(x, {1, 2})", "x, names"), "a set cannot be part of a cache key", 0),
    "dead reference": Program(
        staged("x * held[0]", "f(x)\nheld.clear()\nf(x)", setting="held = [ll.Variable(1.0)]"),
        "DeadVariableError: f uses the variable 'variable', which has been deleted", 1,
    ),
    "declared sizes": Program(
        staged("x", "f(ll.ones((2, 4)))", options="(input_signature=[ll.TensorSpec((None, 3))])"),
        "SignatureError: f: argument `x` must be TensorSpec((None, 3), float32) by the", 0,
    ),
    "wrong arguments": Program(
        staged("x", "f(x, x)"), "TypeError: f() takes 1 positional argument but 2 were given", 0
    ),
    "spent budget": Program(
        staged("x", "f(x)\nf(ll.ones((5,)))", options="(max_traces=1)"), "TraceBudgetError: `f` has its 1 trace", 1
    ),
}  # fmt: skip
