"""Why a gradient is None: every cause, with its line, and its fix applied where that is code."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError
from limelight.explain.none_gradients.report import CAUSES

HEAD = """
x = ll.constant([1.5, 2.5])
v = ll.Variable([1.0, 2.0], name="v")
with HISTORY ll.GradientTape(persistent=True) as tape:
"""
_numbers = itertools.count(1)


def run(body: str, history: bool = False) -> dict[str, Any]:
    """Runs the body of a tape's block, as a file of its own; it leaves `y`, and asks about `x` or `source`."""
    head = HEAD.replace("HISTORY", "ll.explain.History()," if history else "")
    text = head + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    text += "\nsource = globals().get('source', x)\nwhy = ll.explain.why_none(tape, y, source)\n"
    name = f"<program {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict[str, Any] = {"ll": ll, "np": np}
    exec(compile(text, name, "exec"), scope)
    return scope


# Each with the line that is to blame, where there is one; what stands for the fix is marked in the program:
# "# before" where its code is to be inserted, "# instead" at the line that it replaces.
PROGRAMS = {
    "never watched": """
        # before
        y = ll.sum(x * x)
        """,
    "stop_gradient": """
        tape.watch(x)
        z = x * x
        w = ll.stop_gradient(z) + 1.0  # instead
        y = ll.sum(w)
        """,
    "left through NumPy": """
        tape.watch(x)
        z = x * x
        w = np.sin(z.numpy())  # instead
        y = ll.sum(ll.constant(w))
        """,
    "assign": """
        tape.watch(x)
        v.assign(x * x)  # blame
        y = ll.sum(v)
        """,
    "integer or boolean dtype": """
        tape.watch(x)
        n = ll.astype(x * 2.0, ll.int32)  # blame
        y = ll.sum(ll.astype(n, ll.float32))
        """,
    "no rule": """
        tape.watch(x)
        y = ll.sum(ll.floor(x * 2.0))  # blame
        """,
    "not reachable": """
        tape.watch(x)
        z = ll.exp(x)  # blame
        y = ll.sum(v * 2.0)
        """,
}


def line_of(scope: dict[str, Any], mark: str) -> str:
    return next(line for line in linecache.getlines(scope["why"].line.file) if mark in line).strip()


@pytest.mark.parametrize("history", [False, True], ids=["tape alone", "history"])
@pytest.mark.parametrize("cause", PROGRAMS)
def test_the_cause_and_its_line(cause: str, history: bool) -> None:
    program = PROGRAMS[cause]
    scope = run(program, history)
    why = scope["why"]
    assert scope["tape"].gradient(scope["y"], scope["x"]) is None
    assert why.cause == cause, str(why)
    assert "`y` has no gradient for `x`" in str(why)
    mark = next((mark for mark in ("# blame", "# instead") if mark in program), "")
    if mark and not (cause == "not reachable" and history):  # then there is no op to blame
        assert why.line.text == line_of(scope, mark)


@pytest.mark.parametrize(
    "cause", [cause for cause, text in PROGRAMS.items() if "# before" in text or "# instead" in text]
)
def test_the_fix_is_code_that_mends_it(cause: str) -> None:
    program = PROGRAMS[cause]
    why = run(program)["why"]
    mark = "# before" if "# before" in program else "# instead"
    old = next(line for line in program.splitlines() if mark in line)
    indent = old[: len(old) - len(old.lstrip())]
    mended = program.replace(old, indent + why.fix)
    scope = run(mended)
    assert scope["tape"].gradient(scope["y"], scope["x"]) is not None, why.fix
    assert scope["why"].cause == "connected"
    assert scope["why"].to_story().kind == "gradient"  # not "None gradient": there is one


def test_an_assigned_value_is_to_be_kept() -> None:
    why = run(PROGRAMS["assign"])["why"]
    assert why.op == "assign"
    assert "connection cut by assign" in str(why)
    assert why.fix == "value = x * x; v.assign(value)"
    scope = run("tape.watch(x)\n" + why.fix + "\ny = ll.sum(value)")
    assert scope["tape"].gradient(scope["y"], scope["x"]).tolist() == [3.0, 5.0]
    direct = run("tape.watch(x)\nv.assign(x * x)\ny = v")
    assert direct["why"].cause == "assign"


def test_a_read_before_an_assignment_keeps_its_path() -> None:
    scope = run("before = v * 1.0\nv.assign(v * 5.0)\ny = ll.sum(before)\nsource = v")
    assert scope["why"].cause == "connected"
    assert scope["tape"].gradient(scope["y"], scope["v"]).tolist() == [1.0, 1.0]


TOO_LATE = """
y = ll.sum(x * x)
tape.watch(x)
"""


def test_watched_too_late() -> None:
    scope = run(TOO_LATE, history=True)
    why = scope["why"]
    assert (why.cause, why.op, why.line.text) == ("watched too late", "multiply", "y = ll.sum(x * x)")
    assert run(why.fix + TOO_LATE)["why"].cause == "connected"
    unsure = run(TOO_LATE)["why"]
    assert unsure.cause == "not reachable"
    assert "too late" in str(unsure)
    assert "ll.explain.History()" in unsure.fix


def test_read_outside_the_tape() -> None:
    v = ll.Variable(2.0)
    w = v * 3.0
    with ll.GradientTape(persistent=True) as tape:
        y = w * w
    why = ll.explain.why_none(tape, y, v)
    assert why.cause == "read outside the tape"
    assert "read it within the tape's block" in str(why)
    with ll.GradientTape(persistent=True) as tape:
        w = v * 3.0
        y = w * w
    assert ll.explain.why_none(tape, y, v).cause == "connected"


def test_computed_outside_the_block() -> None:
    x = ll.constant(2.0)
    with ll.explain.History():
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            z = x * x
        y = z * 3.0
    why = ll.explain.why_none(tape, y, x)
    assert (why.cause, why.op, why.line.text) == ("read outside the tape", "multiply", "y = z * 3.0")


def test_paused() -> None:
    scope = run("tape.watch(x)\nwith tape.stop_recording():\n    z = x * x\ny = ll.sum(z)", history=True)
    assert scope["why"].cause == "recording paused"
    assert scope["why"].op == "multiply"


def test_integers_as_the_source() -> None:
    n, x = ll.constant([1, 2]), ll.constant([1.0, 2.0])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.sum(ll.astype(n, ll.float32) * x)
    why = ll.explain.why_none(tape, y, n)
    assert (why.cause, why.fix) == ("integer or boolean dtype", "n = ll.astype(n, ll.float32)")
    scope = {"ll": ll, "n": n}
    exec(why.fix, scope)
    n = scope["n"]
    with ll.GradientTape() as tape:
        tape.watch(n)
        y = ll.sum(n * x)
    assert tape.gradient(y, n) is not None


TABLE = ll.Variable(np.ones((5, 3), "float32"), name="table")


@pytest.mark.parametrize("asked_before", [False, True], ids=["recorded", "used"])
@pytest.mark.parametrize(
    "uses",
    [
        lambda n: ll.gather(TABLE, n),
        lambda n: TABLE[n],
        lambda n: ll.nn.embedding(TABLE, n[:-1]),
        lambda n: ll.nn.softmax_cross_entropy(TABLE[:2], n),
        lambda n: ll.where(n > 1, TABLE[0, 0], 2.0),
        ll.function(lambda n: ll.nn.embedding(TABLE, n[:-1])),
        lambda n: ll.take_along_axis(TABLE[:2], n[:, None], 1),
    ],
)
def test_no_cast_mends_integers_that_pick(uses, asked_before) -> None:
    n = ll.constant([1, 2])
    with ll.GradientTape() as tape:
        y = ll.sum(uses(n))
    if asked_before:
        assert tape.gradient(y, n) is None
    why = ll.explain.why_none(tape, y, n)
    assert (why.cause, why.fix) == ("integer or boolean dtype", "")
    assert "ask for what it picks from" in str(why)


def test_integers_as_the_target() -> None:
    x = ll.constant([1.0, 2.0])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.argmax(x * 2.0)
    why = ll.explain.why_none(tape, y, x)
    assert (why.cause, why.op) == ("integer or boolean dtype", "argmax")


def test_variables_that_are_not_watched() -> None:
    frozen, v = ll.Variable(2.0, trainable=False), ll.Variable(3.0)
    with ll.GradientTape() as tape:
        y = frozen * frozen
    why = ll.explain.why_none(tape, y, frozen)
    assert (why.cause, why.fix) == ("never watched", "tape.watch(frozen)")
    assert "not trainable" in str(why)
    with ll.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    why = ll.explain.why_none(tape, y, v)
    assert (why.cause, why.fix) == ("never watched", "tape.watch(v)")


def test_a_tape_that_has_answered() -> None:
    x, v = ll.constant(2.0), ll.Variable(3.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = v * ll.stop_gradient(x)
    assert tape.gradient(y, [x, v])[0] is None
    why = ll.explain.why_none(tape, y, x)
    assert why.cause == "tape already used"
    assert "stop_gradient" in str(why), "what it noted, it still knows"
    assert "persistent=True" in why.fix
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = v * ll.stop_gradient(x)
    assert tape.gradient(y, [x, v])[0] is None
    assert ll.explain.why_none(tape, y, x).cause == "stop_gradient"


def test_a_question_without_any_answer_leaves_enough_to_explain_it() -> None:
    x = ll.constant(2.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        z = ll.exp(x)
        y = ll.stop_gradient(z * z) + 1.0
    assert tape.gradient(y, x) is None
    assert ll.explain.why_none(tape, y, x).cause == "stop_gradient"


@pytest.mark.parametrize("depth", [1, 2])
def test_inside_a_staged_function(depth: int) -> None:
    def body(a: Any) -> Any:
        return ll.exp(a), ll.sum(ll.stop_gradient(a * 2.0))

    f = ll.function(body)
    for _ in range(depth - 1):
        f = ll.function(lambda a, f=f: f(a))
    x = ll.constant([1.0, 2.0])
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z, y = f(x)
    assert tape.gradient(y, x) is None
    why = ll.explain.why_none(tape, y, x)
    assert (why.cause, why.op) == ("stop_gradient", "stop_gradient")
    assert why.line.text == "return ll.exp(a), ll.sum(ll.stop_gradient(a * 2.0))"
    assert ll.explain.why_none(tape, z, x).cause == "connected"


def test_bad_questions() -> None:
    x = ll.constant(1.0)
    with ll.GradientTape() as tape:
        pass
    with pytest.raises(ArgumentError, match="gradient tape"):
        ll.explain.why_none(x, x, x)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="target must be a tensor"):
        ll.explain.why_none(tape, 3.0, x)


def test_every_cause_is_known() -> None:
    tested = {
        *PROGRAMS,
        "connected",
        "watched too late",
        "read outside the tape",
        "recording paused",
        "tape already used",
    }
    assert tested == set(CAUSES)


def test_inside_a_staged_function_only_what_leads_to_the_target_counts() -> None:
    v, x = ll.Variable(3.0, name="v"), ll.constant(2.0)

    @ll.function
    def f(a: Any) -> Any:
        before = v.read_value()
        v.assign(a * a)
        return before, v.read_value()

    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        before, after = f(x)
    assert ll.explain.why_none(tape, after, x).cause == "assign"
    assert ll.explain.why_none(tape, after, x).line.text == "v.assign(a * a)"  # type: ignore[union-attr]
    assert ll.explain.why_none(tape, before, x).cause == "not reachable"
    assert ll.explain.why_none(tape, before, v).cause == "connected"


def test_a_branch_is_looked_into_and_its_condition_is_not_blamed() -> None:
    x = ll.constant(2.0)
    f = ll.function(lambda a: ll.cond(a > 0, lambda: ll.stop_gradient(a) * 2.0, lambda: ll.floor(a)))
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x) is None
    assert ll.explain.why_none(tape, y, x).op == "stop_gradient"


def test_a_loop_without_gradient_and_a_rule_that_gives_none() -> None:
    x = ll.constant(2.0)
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ll.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * 2.0), (0, x), back_prop=False)[1]
    assert ll.explain.why_none(tape, y, x).cause == "stop_gradient"
    own = ll.custom_gradient(lambda a: (a * 2.0, lambda dy: None))
    with ll.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = own(x)
    assert tape.gradient(y, x) is None
    assert "custom_gradient returns None" in str(ll.explain.why_none(tape, y, x))


@pytest.mark.parametrize("staged", [False, True])
def test_a_real_sign_ends_a_path_and_a_complex_one_does_not(staged):
    def answer(x):
        f = ll.function(ll.sign) if staged else ll.sign
        with ll.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = ll.sum(ll.real(f(x)))
        return tape.gradient(y, x), ll.explain.why_none(tape, y, x)

    grad, why = answer(ll.constant([1.0, -2.0]))
    assert grad is None
    assert (why.cause, why.op) == ("no rule", "sign")
    assert "it ends at sign" in str(why)
    assert "it is constant between jumps" in str(why)
    grad, why = answer(ll.constant([1.0 + 1.0j]))
    assert grad is not None
    assert why.cause == "connected"


def _floored(w):
    s = ll.max(w)
    return ll.sum(s * ll.floor(w / s))


def _cast(w):
    return ll.sum(w * ll.astype(ll.astype(w, "int32"), "float32"))


def _stopped(w):
    return ll.sum(w * ll.stop_gradient(w))


def _decided(w):
    return ll.sum(ll.where(w > 1.0, w, 0.0) * w[ll.argmax(w)])


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize(
    ("fn", "ends"),
    [
        (_floored, "it ends at floor"),
        (_cast, "astype"),
        (_stopped, "stop_gradient"),
        (_decided, ""),
    ],
)
def test_a_gradient_by_one_path_names_the_cuts_on_the_others(fn, ends, stage):
    w, f = ll.Variable([1.3, 2.7]), stage(fn)
    with ll.GradientTape(persistent=True) as tape:
        y = f(w)
    assert tape.gradient(y, w) is not None
    why = str(ll.explain.why_none(tape, y, w))
    assert "every op from `w` to `y` was recorded" in why
    assert ("but not on every path: " in why) == bool(ends), "conditions and indices are no paths"
    assert ends in why
    assert not ends or "test_report.py line" in why


def test_the_cast_of_an_integer_variable_is_a_variable():
    count = ll.Variable(2)
    with ll.GradientTape(persistent=True) as tape:
        y = ll.astype(count, "float32") * 2.0
    assert ll.explain.why_none(tape, y, count).fix == "count = ll.Variable(ll.astype(count, ll.float32))"


def test_of_a_tape_that_has_answered_no_gradient_is_said_to_be_missing():
    v = ll.Variable(1.0)
    with ll.GradientTape() as tape:
        y = v * 3.0
    tape.gradient(y, v)
    assert "has no gradient" not in str(ll.explain.why_none(tape, y, v))


def test_what_an_object_or_a_container_holds_is_named_by_the_way_to_it():
    class Holder:
        pass

    model = Holder()
    model.inner, model.weights = Holder(), {"W": ll.Variable([1.0])}
    model.inner.table = [ll.Variable([2.0])]
    with ll.GradientTape() as tape:
        y = ll.constant(1.0) * 2.0
    assert "for `model.inner.table[0]`" in str(ll.explain.why_none(tape, y, model.inner.table[0]))
    assert "for `model.weights['W']`" in str(ll.explain.why_none(tape, y, model.weights["W"]))


def test_a_target_of_another_tape_is_said_to_be_of_that_one():
    v, w = ll.Variable([1.0]), ll.Variable([2.0])
    with ll.GradientTape(persistent=True) as first:
        y = v * 3.0
    with ll.GradientTape() as second:
        z = w * 3.0
    answer = ll.explain.why_none(second, y, v)
    assert answer.cause == "read outside the tape"
    assert "`y` was computed on `first`, not on `second`: ask that tape" in str(answer)
    assert "was not read while" in str(ll.explain.why_none(first, y, w))
    assert "was not read while" in str(ll.explain.why_none(second, z, v))
