"""`if`, `a if c else b` and `assert`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from limelight.autograph import user_lines
from limelight.autograph.branch_merge import Ran, Words, join, refuse_lost_aliases, trace_block
from limelight.autograph.container_aliases import link, lonely
from limelight.autograph.context import refuse_in_try, restore_on_error
from limelight.autograph.logical_operators import decides, truth
from limelight.autograph.reachable_state import reachable
from limelight.autograph.undefined_variables import is_hidden
from limelight.control_flow.py_func import py_func
from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.tensor import Tensor
from limelight.errors import ControlFlowError, LimelightError
from limelight.staging.symbolic import SymbolicTensor
from limelight.user_code import source_line
from limelight.user_code.tracebacks import in_place_of_python

GetState = Callable[[], tuple[Any, ...]]
SetState = Callable[[Any], None]
_WORDS = Words("this `if`", "in the `if` branch", "in the `else` branch")


@in_place_of_python
def if_stmt(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    n_outputs: int,
    guard: str = "",
) -> None:
    """An `if`: Python's where Python knows the condition, else a `cond` of the graph.

    Args:
        test: the condition.
        body: the block of the `if`, which assigns the variables `names`.
        orelse: that of the `else`, the same.
        get_state: gives the values of these variables.
        set_state: sets them.
        names: the variables.
        n_outputs: how many of them, from the first on, are read later.
        guard: of an `if` that was added after a `return`, `break` or `continue`, which of these ("rest": an `else`).
    """
    if not decides(test):
        if test:
            body()
        else:
            orelse()
        return
    refuse_in_try("an `if`")
    choose_block(test, body, orelse, (get_state, set_state), names, n_outputs, _words(guard))


def _words(guard: str) -> Words:
    """How to speak of an `if`: the user's, or one around what follows a `return`, `break` or `continue`."""
    if not guard:
        return _WORDS
    if guard == "rest":
        return Words("this `if`", "in the `if` branch", "after it", "this `if`, or what follows its `return`")
    if guard == "return":
        return Words("an earlier `return`", "at the later `return`", "at an earlier one", "what follows a `return`")
    return Words(f"an earlier {guard}", f"without an earlier {guard}", "with it", f"what follows a {guard}")


def choose_block(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    state: tuple[GetState, SetState],
    names: Sequence[str],
    n_outputs: int,
    words: Words,
    roots: Sequence[Any] = (),
) -> None:
    """Stages both blocks, and gives each variable the value of the one that the graph will choose.

    Args:
        test: the condition, a tensor.
        body: the block for True.
        orelse: the block for False.
        state: what gives the values of the variables, and what sets them.
        names: the variables.
        n_outputs: how many of them, from the first on, are read later.
        words: how messages speak of the blocks.
        roots: further functions that run in them, whose reach counts.
    """
    pred = truth(test, f"the condition of {words.whole}")
    get_state, set_state = state
    before = get_state()
    alone = lonely(before)
    outer = reachable(body, orelse, *roots, state=get_state, names=names)

    def run(block: Callable[[], None], outcome: bool) -> Ran:
        def values() -> tuple[Any, ...]:
            set_state(tuple(_told(name, x, pred, outcome) for name, x in zip(names, before, strict=True)))
            guarded(block, words.block or words.whole)
            return get_state()

        return trace_block(_graph_name(words, outcome), words.block or words.whole, outer, values)

    with restore_on_error(set_state, before):
        true, false = run(body, True), run(orelse, False)
    set_state(before)
    refuse_lost_aliases(before, true, false, names[:n_outputs])
    joined = join(pred, _first(true, n_outputs), _first(false, n_outputs), names[:n_outputs], words, (body, orelse))
    link(names, (true.values, false.values), joined, alone)
    set_state((*joined, *before[n_outputs:]))


def _graph_name(words: Words, outcome: bool) -> str:
    if words.block and words.whole != "this `if`":
        return "going_on" if outcome else "having_left"
    return (words.true if outcome else words.false).replace("`", "").removeprefix("in the ").replace(" ", "_")


def _first(ran: Ran, n: int) -> Ran:
    return ran._replace(values=ran.values[:n])


def _told(name: str, value: Any, pred: Tensor, outcome: bool) -> Any:
    """A flag that decides, within the block that it leads to: there it is known.

    So a function that returns from a loop, and again after it, is seen to return in any case.
    """
    if not is_hidden(name) or not isinstance(value, SymbolicTensor) or not isinstance(pred, SymbolicTensor):
        return value
    node = pred._value.node
    if pred._value is value._value:
        return outcome
    if node is not None and node.op.name == "logical_not" and node.inputs[0] is value._value:
        return not outcome
    return value


def guarded(block: Callable[..., None], what: str, *arguments: Any) -> None:
    """Runs a block that is being staged; a `raise` in it is refused, since it comes whatever the tensor says."""
    try:
        block(*arguments)
    except LimelightError:
        raise
    except Exception as error:
        line = user_lines.raised_by_user(error)
        if line is None:
            raise
        raise ControlFlowError(
            f"`raise` in a block that a tensor decides{source_line.at(line)}: {what} is staged, so this would be "
            f"raised while tracing, whatever the tensor says. Write `assert condition, message`, which is checked when "
            "the graph runs, or raise from ll.py_func(fn, inputs, None)"
        ) from error


@in_place_of_python
def if_exp(test: Any, if_true: Callable[[], Any], if_false: Callable[[], Any], said: str) -> Any:
    """`if_true() if test else if_false()`.

    Args:
        test: the condition.
        if_true: evaluates the one expression.
        if_false: evaluates the other.
        said: the source of the condition, for messages.
    """
    if not decides(test):
        return if_true() if test else if_false()
    refuse_in_try("a conditional expression")
    pred = truth(test, f"the condition `{said}`")
    outer = reachable(if_true, if_false)
    words = Words(f"`... if {said} else ...`", "before `if`", "after `else`")
    true = trace_block("if_expression", words.whole, outer, lambda: (if_true(),))
    false = trace_block("else_expression", words.whole, outer, lambda: (if_false(),))
    joined = join(pred, true, false, ["the value"], words)
    link(["the value"], (true.values, false.values), joined, set())
    return joined[0]


@in_place_of_python
def assert_stmt(test: Any, message: Callable[[], Any]) -> None:
    """An `assert`: checked now, or, if a tensor decides, each time that the graph runs."""
    if not decides(test):
        if not test:
            said = message()
            raise AssertionError(*([] if said is None else [said]))
        return
    refuse_in_try("an `assert`")
    said = message()
    line = source_line.here()
    text = f"{'assertion failed' if said is None else said}{line}"

    def check(holds: Tensor) -> None:
        if not holds.item():
            raise AssertionError(text)

    py_func(check, [apply(get("identity"), (truth(test, "the condition of an `assert`"),))], None)
