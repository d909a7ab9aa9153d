"""`while` and `for`.

`for` over rows is a `scan`; over a range of tensors, or with `break` or `return` in it, a `while_loop`, in which each
example of a batch makes steps of its own. Where a variable is None at first and a tensor later, the first round is
traced apart, if it is known that there is one. The rounds of a Python loop after a `break` that a tensor decides become
conditionals one after the other. A condition with an effect is evaluated before the loop and at the end of its body, so
as often as Python would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from limelight.autograph import conditionals, iterables
from limelight.autograph.branch_merge import Words
from limelight.autograph.conditionals import GetState, SetState, guarded
from limelight.autograph.context import refuse_in_try
from limelight.autograph.iterables import Steps, row_of
from limelight.autograph.logical_operators import decides, truth
from limelight.autograph.loop_variables import Carried
from limelight.autograph.mutation_guards import iterates
from limelight.control_flow.scan import Scan
from limelight.control_flow.while_loop import Loop
from limelight.core import nest
from limelight.core.dispatch import apply
from limelight.core.op import get
from limelight.core.spec import known
from limelight.core.tensor import Tensor, as_tensor
from limelight.errors import ControlFlowError
from limelight.staging.trace_branch import tracing
from limelight.user_code.tracebacks import in_place_of_python

_WHILE = "this `while` loop"
_FOR = "this `for` loop"
_MOST_APART = 4  # variables that are None at first, each until the one before has a value: rarely more than two
_SKIPPED = Words("an earlier `break` or `return`", "without that", "with it", "a loop after `break` or `return`")


@in_place_of_python
def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    options: Any,
) -> None:
    """A `while`: Python's as long as Python knows what the condition says, and from then on a node of the graph.

    Args:
        test: evaluates the condition.
        body: runs one iteration.
        get_state: gives the values of the variables that the loop assigns.
        set_state: sets them.
        names: these variables.
        options: "shared" has the names that matter to functions made within an iteration alone.
    """
    while True:
        mark = _Mark()
        going = test()
        if decides(going):
            break
        if not going:
            return
        body()
    refuse_in_try("a `while`")
    undone = mark.rolled_back()
    carried = Carried(names, get_state, set_state, body, _WHILE, options["shared"], test=test)
    if undone:
        _while(carried, test, body)
    else:
        _while_rotated(carried, truth(going), test, body)


def _while(carried: Carried, test: Callable[[], Any], body: Callable[[], None]) -> None:
    def condition(*leaves: Any) -> Any:
        with carried.during(leaves):
            return truth(test(), f"the condition of {_WHILE}")

    def run() -> None:
        guarded(body, _WHILE)

    def build(leaves: list[Any]) -> Any:
        return _loop(condition, lambda *inner: carried.after(inner, run), {}, carried, leaves)

    carried.stage(run, build)


def _while_rotated(carried: Carried, going: Any, test: Callable[[], Any], body: Callable[[], None]) -> None:
    """The condition does something, and has been traced once already: it comes before the loop, and after the body."""
    answers: list[Any] = []

    def run() -> None:
        guarded(body, _WHILE)
        answers[:] = [truth(test(), f"the condition of {_WHILE}")]

    def step(flag: Any, *inner: Any) -> Any:
        after = carried.after(inner, run)
        return (*answers, *after)

    flag = {"the condition": going}
    carried.stage(run, lambda leaves: _loop(lambda flag, *_: flag, step, flag, carried, leaves)[1:])


def _loop(
    condition: Callable[..., Any],
    step: Callable[..., Any],
    own: dict[str, Tensor],
    carried: Carried,
    leaves: Sequence[Tensor],
) -> Any:
    """`while_loop` with the loop's `own` variables, by name, before those that are `carried`."""
    initial = (*own.values(), *leaves)
    shapes = [*[x.shape for x in own.values()], *carried.kept_shapes]
    specs = [known(shape, x.dtype) for shape, x in zip(shapes, initial, strict=True)]
    return Loop(condition, step, nest.flatten(initial)[1], specs, [*own, *carried.paths]).repeat(initial)


class _Mark:
    """A place in the trace at hand, to which it can be taken back if nothing since then has an effect."""

    def __init__(self) -> None:
        self._tracer = tracing()
        self._at = len(self._tracer.nodes) if self._tracer is not None else 0

    def rolled_back(self) -> bool:
        return self._tracer is None or self._tracer.discard_nodes(self._at)


def for_stmt(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: GetState,
    set_state: SetState,
    names: Sequence[str],
    options: Any,
) -> None:
    """A `for`: over tensors and ranges of tensors a node of the graph, over anything else unrolled by Python.

    Args:
        iterated: what it goes over.
        extra_test: whether to go on, where a `break` or `return` is in the body.
        body: runs one iteration, of an item.
        get_state: gives the values of the variables that the loop assigns.
        set_state: sets them.
        names: these variables.
        options: "shared" has the names that matter to functions made within an iteration alone.
    """
    steps = iterables.steps(iterated)
    rounds = iterables.rounds(iterated) if steps is None else None
    if rounds is not None:
        refuse_in_try("a `for`")
        always = rounds.run_always and (extra_test is None or extra_test() is True)
        carried = Carried(names, get_state, set_state, body, _FOR, options["shared"], always, extra_test)
        _while_more(carried, rounds, extra_test, body)
        return
    if steps is None:
        _unrolled(iterated, extra_test, body, (get_state, set_state), names)
        return
    if type(steps.count) is int and steps.count == 0:  # which is known: nothing is assigned, and nothing made
        return
    refuse_in_try("a `for`")
    for _ in range(_MOST_APART):
        always = isinstance(steps.count, int) and steps.count > 0 and (extra_test is None or extra_test() is True)
        carried = Carried(names, get_state, set_state, body, _FOR, options["shared"], always, extra_test)
        try:
            if extra_test is None and (steps.rows is not None or isinstance(steps.count, int)):
                _scanned(carried, steps, body)
            else:
                _until(carried, steps, extra_test, body)
            return
        except ControlFlowError:
            if not (always and carried.none_at_first):
                raise
        body(steps.value(as_tensor(0), row_of(steps.rows, 0)))  # the first round is sure: what was None has a value now
        steps = steps.after_first()
        if steps.count == 0 or (extra_test is not None and extra_test() is False):
            return
    raise carried.none_at_first  # type: ignore[misc]  # the loop ends here with an error alone


@in_place_of_python
def _unrolled(
    iterated: Any,
    extra_test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    state: tuple[GetState, SetState],
    names: Sequence[str],
) -> None:
    iterates(iterated)
    for target in iterated:
        going = True if extra_test is None else extra_test()
        if decides(going):  # each further round happens only if no tensor has ended the loop
            refuse_in_try("the end of a `for`")

            def round_(target: Any = target) -> None:
                body(target)

            conditionals.choose_block(going, round_, _nothing, state, names, len(names), _SKIPPED, roots=(body,))
            continue
        if not going:
            return
        body(target)
        if extra_test is not None:
            going = extra_test()
            if not decides(going) and not going:
                return


def _nothing() -> None:
    pass


def _trial(steps: Steps, body: Callable[[Any], None]) -> Callable[[], None]:
    """One step, for finding out what a step does."""

    def run() -> None:
        k = as_tensor(0)
        guarded(body, _FOR, steps.value(k, row_of(steps.rows, k)))

    return run


def _scanned(carried: Carried, steps: Steps, body: Callable[[Any], None]) -> None:
    def step(carry: Any, row: Any) -> Any:
        k, *inner = carry
        after = carried.after(inner, lambda: guarded(body, _FOR, steps.value(k, row)))
        return [k + 1, *after], None

    def build(leaves: list[Any]) -> Any:
        length = None if steps.rows is not None else steps.count
        scan = Scan.of("scan", step, [as_tensor(0), *leaves], steps.rows, length, False)
        return scan._replace(
            names=["the count of rounds", *carried.paths], carry_shapes=[(), *carried.kept_shapes]
        ).run()[0][1:]

    carried.stage(_trial(steps, body), build)


def _until(carried: Carried, steps: Steps, extra_test: Callable[[], Any] | None, body: Callable[[Any], None]) -> None:
    def condition(k: Any, *inner: Any) -> Any:
        if extra_test is None:
            return k < steps.count
        with carried.during(inner):
            return apply(get("logical_and"), (k < steps.count, truth(extra_test())))

    def step(k: Any, *inner: Any) -> Any:
        after = carried.after(inner, lambda: guarded(body, _FOR, steps.value(k, row_of(steps.rows, k))))
        return (k + 1, *after)

    def build(leaves: list[Any]) -> Any:
        return _loop(condition, step, {"the count of rounds": as_tensor(0)}, carried, leaves)[1:]

    carried.stage(_trial(steps, body), build)


def _while_more(
    carried: Carried, rounds: Any, extra_test: Callable[[], Any] | None, body: Callable[[Any], None]
) -> None:
    """A `for` over data: whether there is more is asked before each round."""

    def condition(*inner: Any) -> Any:
        with carried.during(inner):
            more = rounds.more()
            return more if extra_test is None else apply(get("logical_and"), (more, truth(extra_test())))

    def run() -> None:
        guarded(body, _FOR, rounds.next())

    def build(leaves: list[Any]) -> Any:
        return _loop(condition, lambda *inner: carried.after(inner, run), {}, carried, leaves)

    carried.stage(run, build)
