"""For each cause of a retrace: what the explanation says, and that its fix does what it promises."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import limelight as ll


class Case(NamedTuple):
    """A loop that retraces: of the newest trace the differing part, its fix, and how many traces are left with it."""

    setting: str  # before the function
    head: str  # its parameters
    call: str  # in a loop over i
    path: str
    before: str
    after: str
    cause: str
    fix: str
    left: int = 1
    detail: str = ""
    body: str = "x"


SHAPE = 'll.TensorSpec((None, 3), "float32")'

CASES = {
    "shape": Case(
        "", "x", "f(ll.ones((i + 2, 3)))", "x", "f32[4,3]", "f32[5,3]", "shape",
        f"@ll.function(input_signature=[{SHAPE}])", detail="axis 0: 4 -> 5",
    ),
    "shape in a dictionary": Case(
        "", "batch", 'f({"x": ll.ones((i, 3)), "y": ll.ones((2,))})', 'batch["x"]', "f32[2,3]", "f32[3,3]", "shape",
        f'@ll.function(input_signature=[{{"x": {SHAPE}, "y": ll.TensorSpec((2,), "float32")}}])',
        detail="axis 0: 2 -> 3", body='ll.sum(batch["x"]) + batch["y"]',
    ),
    "shape in a list and a tuple": Case(
        "", "pairs", "f([(ll.ones((i, 3)),), ll.ones((i,))])", "pairs[0][0]", "f32[2,3]", "f32[3,3]", "shape",
        f'@ll.function(input_signature=[[({SHAPE},), ll.TensorSpec((None,), "float32")]])', detail="axis 0: 2 -> 3",
        body="pairs[1] * ll.sum(pairs[0][0])",
    ),
    "only the sizes that vary are left open": Case(
        "", "x, y", "f(ll.ones((2, i + 1, 3)), ll.ones((4,)))", "x", "f32[2,3,3]", "f32[2,4,3]", "shape",
        '@ll.function(input_signature=[ll.TensorSpec((2, None, 3), "float32"), ll.TensorSpec((4,), "float32")])',
        detail="axis 1: 3 -> 4",
    ),
    "sizes that varied in earlier traces": Case(
        "shapes = [(2, 3), (2, 4), (2, 3), (5, 4)]", "x", "f(ll.ones(shapes[i]))", "x", "f32[2,4]", "f32[5,4]", "shape",
        '@ll.function(input_signature=[ll.TensorSpec((None, None), "float32")])', detail="axis 0: 2 -> 5",
    ),
    "shape after an argument that is no tensor": Case(
        "", "flag, x", "f(True, ll.ones((i,)))", "x", "f32[2]", "f32[3]", "shape",
        'f.get_concrete_function(True, ll.TensorSpec((None,), "float32"))', detail="axis 0: 2 -> 3",
    ),
    "shape beside a model and a variable": Case(
        "model, w = ll.nn.Dropout(0.5), ll.Variable(2.0)", "model, w, x", "f(model, w, x=ll.ones((i, 3)))", "x",
        "f32[2,3]", "f32[3,3]", "shape", f"f.get_concrete_function(model, w, x={SHAPE})", detail="axis 0: 2 -> 3",
        body="x * w",
    ),
    "shape beside a function that is made anew": Case(
        "", "loss, x", "f(lambda v: ll.sum(v), ll.ones((i, 3)))", "loss", "function <lambda> (deleted)",
        "function <lambda>", "new function object",
        f"loss = lambda v: ll.sum(v)\nf.get_concrete_function(loss, {SHAPE})\nf(loss, ll.ones((i, 3)))",
        detail="a new function object", body="loss(x)",
    ),
    "shape of a part of what is no tensor": Case(
        "", "pair, x", "f([ll.ones((i, 3)), str(0)], 1)", "pair[0]", "f32[2,3]", "f32[3,3]", "shape",
        "@ll.function(reduce_retracing=True)", left=2, detail="axis 0: 2 -> 3", body="pair[0]",
    ),
    "shape before a default": Case(
        "", "x, flag=True, rate=0.5", "f(ll.ones((i + 2, 3)))", "x", "f32[4,3]", "f32[5,3]", "shape",
        f"@ll.function(input_signature=[{SHAPE}])", detail="axis 0: 4 -> 5", body="x * rate",
    ),
    "shape before a value that is not the default": Case(
        "", "x, flag=True", "f(ll.ones((i + 2, 3)), False)", "x", "f32[4,3]", "f32[5,3]", "shape",
        f"f.get_concrete_function({SHAPE}, False)", detail="axis 0: 4 -> 5",
    ),
    "shape and number": Case(
        "", "x, n", "f(ll.ones((i + 2, 3)), 0.5 * i)", "x", "f32[4,3]", "f32[5,3]", "shape",
        f'@ll.function(input_signature=[{SHAPE}, ll.TensorSpec((), "float32")])', detail="axis 0: 4 -> 5",
        body="x * n",
    ),
    "shape beside a number that stays": Case(
        "", "x, rate", "f(ll.ones((i + 2, 3)), 0.5)", "x", "f32[4,3]", "f32[5,3]", "shape",
        f'@ll.function(input_signature=[{SHAPE}, ll.TensorSpec((), "float32")])', detail="axis 0: 4 -> 5",
        body="x * rate",
    ),
    "shape beside a keyword that is not its default": Case(
        "", "x, *, flag=True", "f(ll.ones((i + 2, 3)), flag=False)", "x", "f32[4,3]", "f32[5,3]", "shape",
        f"f.get_concrete_function({SHAPE}, flag=False)", detail="axis 0: 4 -> 5",
    ),
    "shape beside a keyword that is its default": Case(
        "", "x, *, flag=True", "f(ll.ones((i + 2, 3)), flag=True)", "x", "f32[4,3]", "f32[5,3]", "shape",
        f"@ll.function(input_signature=[{SHAPE}])", detail="axis 0: 4 -> 5",
    ),
    "shape of a keyword": Case(
        "", "*, x", "f(x=ll.ones((i,)))", "x", "f32[2]", "f32[3]", "shape",
        'f.get_concrete_function(x=ll.TensorSpec((None,), "float32"))', detail="axis 0: 2 -> 3",
    ),
    "shape among any number of arguments": Case(
        "", "*xs", "f(ll.ones((2,)), ll.ones((i,)))", "xs[1]", "f32[2]", "f32[3]", "shape",
        '@ll.function(input_signature=[ll.TensorSpec((2,), "float32"), ll.TensorSpec((None,), "float32")])',
        detail="axis 0: 2 -> 3", body="ll.sum(xs[0]) + xs[1]",
    ),
    "rank": Case(
        "shapes = [(3,), (1, 3)]", "x", "f(ll.ones(shapes[i % 2]))", "x", "f32[3]", "f32[1,3]", "rank",
        "f(ll.reshape(ll.ones(shapes[i % 2]), (3,)))", detail="rank 1 -> 2",
    ),
    "dtype": Case(
        'kinds = ["float32", "int32"]', "x", "f(ll.ones((3,), dtype=kinds[i % 2]))", "x", "f32[3]", "i32[3]", "dtype",
        'f(ll.astype(ll.ones((3,), dtype=kinds[i % 2]), "float32"))',
    ),
    "number": Case(
        "x = ll.ones((2,))", "x, n", "f(x, i / 2)", "n", "1.0", "1.5", "Python number", "f(x, ll.constant(i / 2))",
        body="x * n",
    ),
    "number beside tensors of another precision": Case(
        "x = ll.ones((2,), dtype='float64')", "x, n", "f(x, i / 2)", "n", "1.0", "1.5", "Python number",
        'f(x, ll.constant(i / 2, "float64"))', body="x * n",
    ),
    "number beside a variable of another precision": Case(
        "v = ll.Variable(ll.ones((2,), dtype='float64'))", "v, n", "f(v, i / 2)", "n", "1.0", "1.5", "Python number",
        'f(v, ll.constant(i / 2, "float64"))', body="v * n",
    ),
    "shape and number of another precision": Case(
        "", "x, n", "f(ll.ones((i + 2,), dtype='float64'), 0.5 * i)", "x", "f64[4]", "f64[5]", "shape",
        '@ll.function(input_signature=[ll.TensorSpec((None,), "float64"), ll.TensorSpec((), "float64")])',
        detail="axis 0: 4 -> 5", body="x * n",
    ),
    "shape beside a whole number": Case(
        "", "x, n", "f(ll.ones((i + 2, 3)), 1)", "x", "f32[4,3]", "f32[5,3]", "shape",
        f"f.get_concrete_function({SHAPE}, 1)", detail="axis 0: 4 -> 5", body="ll.sum(x, axis=n)",
    ),
    "several numbers in a call over several lines": Case(
        "x = ll.ones((2,))", "x, n, m", "f(\n        x, i / 2,\n        m=2.0 * i)", "n", "1.0", "1.5", "Python number",
        "f(\n        x, ll.constant(i / 2),\n        m=ll.constant(2.0 * i))", body="x * (n + m)",
    ),
    "number by keyword": Case(
        "x = ll.ones((2,))", "x, *, rate", "f(x, rate=0.5 * i)", "rate", "1.0", "1.5", "Python number",
        "f(x, rate=ll.constant(0.5 * i))", body="x * rate",
    ),
    "number among any keywords": Case(
        "x = ll.ones((2,))", "x, **options", "f(x, rate=0.5 * i)", "rate", "1.0", "1.5", "Python number",
        "f(x, rate=ll.constant(0.5 * i))", body='x * options["rate"]',
    ),
    "number in a dictionary": Case(
        "", "batch", 'batch = {"step": i / 2}\n    f(batch)', 'batch["step"]', "1.0", "1.5", "Python number",
        'batch["step"] = ll.constant(batch["step"])', body='batch["step"] + 1',
    ),
    "type of a number": Case(
        "numbers = [1.0, 1, 1.0, 1]", "x", "f(numbers[i])", "x", "1.0", "1", "type of value",
        'f(ll.constant(numbers[i], "float32"))', detail="float -> int",
    ),
    "number or tensor": Case(
        "numbers = [2, ll.constant(2)]", "x", "f(numbers[i % 2])", "x", "2", "i32[]", "type of value",
        'f(ll.constant(numbers[i % 2], "int32"))',
    ),
    "tensor or variable": Case(
        "both = [ll.ones((2,)), ll.Variable(ll.ones((2,)))]", "x", "f(both[i])" , "x", "f32[2]", "var f32[2]",
        "type of value", "f(ll.constant(both[i]))",
    ),
    "list or tuple": Case(
        "x = ll.ones((2,))", "pair", "f([x, x] if i % 2 == 0 else (x, x))", "pair", "list of 2", "tuple of 2",
        "container", "f(list([x, x] if i % 2 == 0 else (x, x)))", body="pair[0] + pair[1]",
    ),
    "more keys": Case(
        'whole = {"x": ll.ones((2,)), "y": ll.ones((2,)), "id": "a"}\npart = {"x": whole["x"], "y": whole["y"]}',
        "batch", "f(whole if i % 2 else part)", "batch", 'keys {"x", "y"}', 'keys {"id", "x", "y"}', "dictionary keys",
        'f({name: (whole if i % 2 else part)[name] for name in ["x", "y"]})',
        detail='with "id"', body='batch["x"] + batch["y"]',
    ),
    "new function in a loop": Case(
        "x = ll.ones((2,))", "x, g", "f(x, lambda v: v * 2)", "g", "function <lambda> (deleted)", "function <lambda>",
        "new function object", "g = lambda v: v * 2\nf(x, g)", detail="a new function object",
        body="g(x)",
    ),
    "new object in a loop": Case(
        "x = ll.ones((2,))\nclass Config:\n    rate = 2.0", "x, config", "f(x, Config())", "config",
        "Config object (deleted)", "Config object", "deleted object", "config = Config()\nf(x, config)",
        detail="the former one has been deleted",
    ),
    "device scope": Case(
        "ll.config.set_virtual_devices(CPU=2)\nx = ll.ones((2,))", "x",
        "with ll.device(['CPU:0', 'CPU:1'][i % 2]):\n        f(x)", "ll.device", "CPU:0", "CPU:1", "device",
        'with ll.device("CPU:0"): f(x)',
    ),
    "device of a tensor": Case(
        "ll.config.set_virtual_devices(CPU=2)\nboth = [ll.ones((2,)), ll.ones((2,)).to('CPU:1')]", "x",
        "f(both[i % 2])", "x", "f32[2]", "f32[2] on CPU:1", "device", 'f(both[i % 2].to("CPU:0"))',
    ),
}  # fmt: skip


def written(case: Case) -> str:
    rounds = 2 if "both[i]" in case.call else 4
    loop = f"for i in range({rounds}):\n    {case.call}\n"
    return f"{case.setting}\n@ll.function\ndef f({case.head}):\n    return {case.body}\n{loop}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_part_that_differs_is_named_and_the_fix_works(program, case):
    retracing = program(written(case))
    difference = retracing.miss.differences[0]
    assert difference == (case.path, case.before, case.after, case.cause, case.detail, difference.fix)
    assert retracing.miss.fix == case.fix
    assert difference.fix
    assert difference.fix in case.fix

    mended = program(retracing.mended())
    assert mended.f.trace_count == case.left < retracing.f.trace_count


def test_without_the_call_in_sight_the_expression_to_pass_is_given(program):
    for call in ("f(*(i, 2))", "f(**{'n': i})", "list(map(f, [i]))", "collections.deque(map(f, [i]))"):
        p = program(f"""
            import collections
            @ll.function
            def f(n, m=2):
                return n
            for i in (0.0, 1.0):
                {call}
        """)
        assert str(p.miss).endswith("Fix: for `n` pass ll.constant(n)"), call


@pytest.mark.parametrize(
    ("head", "body", "calls"),
    [
        ("a, n", "ll.astype(a, ll.int32) * n", "f(x, 1); f(x, 2)"),
        ("a, axis", "ll.sum(a, axis=axis)", "f(x, 0); f(x, 1)"),
        ("a, shape", "a.reshape(shape)", "f(x, (4, 1)); f(x, (2, 2))"),
        ("n, k", "k", "f(ll.constant([1, 2]), 1.0); f(ll.constant([1, 2]), 2.0)"),
        ("a, n", "ll.astype(a, ll.complex64) * n", "f(x, 1j); f(x, 2j)"),
    ],
)
def test_a_number_that_need_not_work_as_a_tensor_has_no_fix(program, head, body, calls):
    p = program(f"x = ll.ones((2, 2))\n@ll.function\ndef f({head}):\n    return {body}\n{calls}")
    assert p.miss.fix == ""
    assert str(p.miss).endswith(
        "Each value needs a trace of its own; if it only takes part in arithmetic, pass a tensor of the dtype that it "
        f"meets, such as ll.constant({p.miss.changes[0].path}, dtype)."
    )


def test_a_flag_that_becomes_a_number_has_no_fix(program):
    p = program("@ll.function\ndef f(a):\n    return 1.0 if a else 2.0\nf(True)\nf(0.5)")
    assert p.miss.fix == ""
    assert str(p.miss).endswith("Pass the same type of value in each call.")


def test_of_a_number_and_a_tensor_the_call_with_the_number_is_to_be_mended(program):
    head = "@ll.function\ndef f(x):\n    return x\n"
    for calls in ("f(1)\nf(ll.constant(1))", "f(1); f(ll.constant(1))", "t = ll.constant(1)\nf(1)\nf(t)"):
        said = str(program(head + calls).miss)
        assert "Fix: the earlier call" in said, calls
        assert said.endswith('becomes f(ll.constant(1, "int32"))'), calls
    p = program(f"{head}f(ll.constant(1))\nf(1)")
    assert str(p.miss).endswith('Fix: call with f(ll.constant(1, "int32"))')
    assert program(p.mended()).f.trace_count == 1
    assert program(f"{head}f(ll.constant(1))\nf(1.5)").miss.fix == ""


@pytest.mark.parametrize(
    "given", ["lambda v: v * i", "(lambda v: v, lambda v: v + 1)[i]", "functools.partial(ll.multiply, i)", "Thing(i)"]
)
def test_what_depends_on_the_loop_is_not_made_once(program, given):
    p = program(f"""
        import functools
        class Thing:
            def __init__(self, n): pass
            def __call__(self, v): return v
        @ll.function
        def f(x, g):
            return g(x)
        for i in range(2):
            f(ll.ones((2,)), {given})
    """)
    assert p.miss.fix == ""
    assert p.f.trace_count == 2


def test_what_means_the_same_before_the_loop_is_made_once(program):
    p = program("""
        import functools
        @ll.function
        def f(x, g):
            return g(x)
        for i in range(2):
            f(ll.ones((2,)), functools.partial(ll.multiply, 2.0))
    """)
    assert p.miss.fix.startswith("g = functools.partial(ll.multiply, 2.0)")
    assert program(p.mended()).f.trace_count == 1


def test_a_container_written_in_the_call_is_not_indexed(program):
    p = program("""
        @ll.function
        def f(batch):
            return batch["b"]
        for shape in ((), (1, 1)):
            f({"b": ll.ones(shape)})
    """)
    assert str(p.miss).endswith('Fix: for `batch["b"]` pass ll.reshape(batch["b"], ())')


def test_a_rank_that_holds_more_has_no_fix(program):
    p = program("""
        @ll.function
        def f(x):
            return x
        f(ll.ones((3,)))
        f(ll.ones((2, 3)))
    """)
    assert p.miss.fix == ""
    assert str(p.miss).endswith("Each rank needs a trace of its own.")


def test_a_fix_says_what_it_leaves() -> None:
    f = ll.function(lambda a, b, c: a)
    f(ll.ones(2), True, "x")
    f(ll.ones(3), False, "y")
    assert "The fix leaves `b` and `c`: another value there traces again. Fix: " in str(ll.explain.retrace(f))
    f(ll.ones(4), False, "y")
    assert "leaves" not in str(ll.explain.retrace(f))
