"""The variables that a staged loop carries from one iteration to the next.

The dtype of a Python number shows only after an iteration; where it is doubtful, a trial trace of the body tells.
Where the shapes on entry and after an iteration differ, the body is traced again for unknown sizes, as often as there
are more of them: the loop then computes what Python would, which is what converting is for. The rank stays. Where
converted code of the same trace reads `.shape` or `.size` it is refused instead: an unknown size is None, so
`out.shape[0] == 0` would be decided while tracing, and otherwise than eagerly.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from limelight.autograph import user_lines
from limelight.autograph.branch_merge import (
    Ran,
    assigned_if,
    blank_of,
    can_be_carried,
    described,
    fits,
    flag_beside,
    is_value,
    trace_block,
)
from limelight.autograph.container_aliases import link, lonely
from limelight.autograph.context import changes_next, here, restore_on_error, staged_block, widen
from limelight.autograph.local_containers import Changed, Changes, contents, fill, made_within, now
from limelight.autograph.python_numbers import Blank, after_loop, code_of, in_loop, is_array, mixed_in_loop, tells
from limelight.autograph.reachable_state import reachable
from limelight.autograph.reserved_names import added
from limelight.autograph.undefined_variables import (
    AssignedIfRun,
    Doubtful,
    NotYet,
    Undefined,
    is_flag,
    is_hidden,
    may_have_value,
    shown,
)
from limelight.control_flow.tensor_array import TensorArray
from limelight.core import dtypes, nest, shapes
from limelight.core.tensor import Tensor, as_tensor, constant
from limelight.errors import ControlFlowError, DTypeError
from limelight.staging.array_changes import hand_out
from limelight.staging.trace_branch import tracing
from limelight.user_code import source_line

_WEAK = (int, float, complex)


_NAME = re.compile(r"\w+")
_APPENDED = re.compile(r"append\((.+)\)(\s*#.*)?\)$")  # in a place with its line of code
_REMEDY = "Assign it before the loop, with the dtype and shape that it has there"


class _DoubtfulDtypeError(Exception):
    """Python numbers may have been given the wrong dtype: a trial trace of the body tells."""


class _MoreStateError(Exception):
    """An iteration changes what the loop did not carry: it is made again, with more to carry."""


class _WiderError(Exception):
    """A variable had another shape after an iteration than before it: the loop is made again, for both."""


class _Slot(NamedTuple):
    """A part of a variable, by the path to it; `at` says which tensor of the loop it is, None for a fixed value."""

    path: str
    value: Any
    at: int | None


class Carried:
    """The variables of a loop: tensors and numbers become tensors that it carries, anything else must stay what it is.

    A Python number becomes a tensor of the dtype that it would get in the loop: 0 plus a float32 tensor starts as a
    float32.

    Args:
        names: the variables that the body assigns.
        get_state: gives their values.
        set_state: sets them.
        body: the function that is the loop's body.
        what: what messages call the loop.
        shared: the names that matter to functions made within an iteration, and to no other iteration.
        runs_always: whether there is at least one iteration.
        test: the function that evaluates the condition.
    """

    def __init__(
        self,
        names: Sequence[str],
        get_state: Callable[[], tuple[Any, ...]],
        set_state: Callable[[Any], None],
        body: Any,
        what: str,
        shared: Sequence[str],
        runs_always: bool = False,
        test: Any = None,
    ) -> None:
        self._own = (list(names), get_state, set_state)
        self._body, self._what = body, what
        self._shared, self._runs_always = shared, runs_always
        self._entry = get_state()
        self._alone = lonely(self._entry)
        self._left: Sequence[Any] = ()  # the variables after an iteration
        self._parts: dict[int, Any] = {}  # the same, by the tensor of the loop that carries it
        self._outer = reachable(body, test, state=get_state, names=names)
        self._containers: list[Changed] = []
        self._numbers: dict[int, tuple[Any, Tensor]] = {}  # Python numbers, by the tensors that stand for them
        self._made: list[Any] = []  # the variables that traces of the body have made, of which the last one counts
        self._sometimes: set[str] = set()  # what not every iteration assigns
        self._mixed: set[str] = set()  # the paths of what is a Python number after some iterations, and not after all
        self._run: Callable[[], object] = lambda: None
        self.none_at_first: ControlFlowError | None = None  # the refusal of a variable that is a value after a round
        self._begin()

    def _begin(self) -> None:
        """Takes the state apart: variables, the contents of containers, and flags of what may be unassigned."""
        names, _, _ = self._own
        before = [Undefined(x) if x in self._shared else value for x, value in zip(names, self._entry, strict=True)]
        self._assigned: set[str] = set()
        self._dtypes_resolved = False
        self._shapes: dict[str, shapes.Shape] = {}  # of what changes shape, by path
        self._element_shapes: dict[int, shapes.Shape] = {}  # of arrays into which the body writes first
        local: Collection[str] = self._body.__code__.co_freevars
        if here.cell is not None and here.cell[0] is self._body.__globals__:  # others that are global may be anybody's
            local = here.cell[1].union(local)
        self._blanks = [
            i
            for i, (name, x) in enumerate(zip(names, before, strict=True))
            if isinstance(x, Undefined)
            and not isinstance(x, AssignedIfRun)
            and (is_hidden(name) or self._runs_always or name in local)
            and name not in self._shared
        ]
        blanks = {names[i] for i in self._blanks if not is_hidden(names[i])}
        self._flagged = [
            i
            for i, (name, x) in enumerate(zip(names, before, strict=True))
            if (name in blanks and (name in self._sometimes or not self._runs_always)) or isinstance(x, AssignedIfRun)
        ]
        flags = [x.assigned if isinstance(x := before[i], AssignedIfRun) else False for i in self._flagged]
        before = [x.value if isinstance(x, AssignedIfRun) else x for x in before]
        held = [contents(x.container, now()) for x in self._containers]
        self._names = [*names, *[x.name for x in self._containers], *[added(f"{names[i]} flag") for i in self._flagged]]
        self._before = [*before, *held, *flags]
        self._spread()

    def _get(self) -> tuple[Any, ...]:
        """The state after an iteration."""
        values = list(self._own[1]())
        flags: list[Any] = []
        for i in self._flagged:
            x = values[i]
            flags.append(x.assigned if isinstance(x, AssignedIfRun) else not isinstance(x, Undefined))
            values[i] = x.value if isinstance(x, AssignedIfRun) else x
        changes = here.blocks[-1].changes
        changes.look()
        held = [contents(x.container, changes.since) for x in self._containers]
        return (*map(changes.as_left, values), *held, *flags)

    def _set(self, state: tuple[Any, ...], why: Callable[[str], str] | None = None) -> None:
        """Gives variables and containers the values of a `state`."""
        names, _, set_state = self._own
        n, held = len(names), len(self._containers)
        values = list(state[:n])
        for i, flag in zip(self._flagged, state[n + held :], strict=True):
            if not isinstance(values[i], Undefined):
                values[i] = assigned_if(names[i], (why or self._unassigned)(names[i]), values[i], flag)
        for x, value in zip(self._containers, state[n : n + held], strict=True):
            changes_next(x.container, x.name, x.where)
            fill(x.container, value)
        set_state(tuple(values))

    def _unassigned(self, name: str) -> str:
        return f"{self._what} reads it before an iteration has assigned it. Assign it before the loop"

    def stage(self, run: Callable[[], object], build: Callable[[list[Tensor]], Sequence[Any]]) -> None:
        """Makes the loop, by `build` from the initial tensors, and gives the variables their last values.

        `run` does what the body does, for finding out what becomes of the variables.
        """
        self._run = run
        with restore_on_error(self._own[2], self._entry):
            while True:
                try:
                    results = self._results(build)
                    break
                except _MoreStateError:
                    self._begin()
        values = self._rebuilt(after_loop(results, self._number_slots(), self._parts, self._codes, id(self)))
        link(self._own[0], (self._entry, self._left), values, self._alone)
        n = len(self._own[0])
        self._set((*map(self._last, self._own[0], values), *values[n:]), self._why)

    def _results(self, build: Callable[[list[Tensor]], Sequence[Any]]) -> Sequence[Any]:
        if self._blanks:
            self._resolve_dtypes()
        results = self._built(build) if self._dtypes_resolved else self._attempt(build)
        if results is None:
            self._resolve_dtypes()
            results = self._built(build)
        return results

    def _adopt(self, changed: Mapping[int, Changed], sometimes: set[str]) -> None:
        """Has the loop made again if an iteration changes containers, or leaves variables, that it did not know of."""
        known = {id(x.container) for x in self._containers}
        new = [x for key, x in changed.items() if key not in known]
        if new or sometimes - self._sometimes:
            self._refuse_second_names(new)
            self._containers += new
            self._sometimes |= sometimes
            raise _MoreStateError

    def _refuse_second_names(self, changed: Sequence[Changed]) -> None:
        """A variable that the loop assigns is carried by its value, and is no longer the container that it was."""
        containers = {id(x.container): x for x in changed}
        for name, value in zip(self._own[0], self._entry, strict=True):
            changed_one = containers.get(id(value))
            if changed_one is not None:
                raise ControlFlowError(
                    f"{shown(name)} is another name of the {type(value).__name__} that is changed in {self._what}"
                    f"{changed_one.where}, or changed there and assigned as well, so that it may be another one "
                    f"after each iteration. Give it a copy before the loop, {type(value).__name__}({name})"
                )

    def _attempt(self, build: Callable[[list[Tensor]], Sequence[Any]]) -> Sequence[Any] | None:
        """What `build` makes; None where Python numbers may have been given a wrong dtype."""
        try:
            return self._widened(build)
        except (DTypeError, _DoubtfulDtypeError):
            if not self._weak():
                raise
            return None

    def _built(self, build: Callable[[list[Tensor]], Sequence[Any]]) -> Sequence[Any]:
        """What `build` makes once the dtypes of numbers are resolved; an int that mixes no longer is named."""
        try:
            return self._widened(build)
        except DTypeError as error:
            given = [slots for i, (_, slots) in enumerate(self._slots) if i not in self._blanks]
            whole = [slot for slots in given for slot in slots if type(slot.value) is int]
            if whole:
                begin = " or ".join(f"`{slot.path} = {float(slot.value)}`" for slot in whole)
                error.args = (
                    f"{error}. {' and '.join(shown(slot.path) for slot in whole)} was a Python int, which mixes with "
                    f"any dtype, and is an i32 tensor within {self._what}: autograph made it one because it changes "
                    f"there. Begin with {begin} for a floating one",
                )
            raise

    def _widened(self, build: Callable[[list[Tensor]], Sequence[Any]]) -> Sequence[Any]:
        """What `build` makes, where need be for unknown sizes: each time it is asked again, some more are unknown."""
        while True:
            try:
                return build(self.leaves)
            except _WiderError:
                self._shape_arrays()

    # Values as leaves, and back

    @property
    def paths(self) -> list[str]:
        """What the leaves are called."""
        named = {slot.at: slot.path for _, slots in self._slots for slot in slots if slot.at is not None}
        return [*named.values(), *[f"the type of {named[at]}" for at in self._codes]]

    @property
    def kept_shapes(self) -> list[shapes.Shape]:
        """The shapes of the leaves in any iteration."""
        return [self._shapes.get(path, x.shape) for path, x in zip(self.paths, self.leaves, strict=True)]

    def _spread(self) -> None:
        """Takes the values apart into slots, and makes the initial tensors."""
        self._parts = {}
        self.leaves: list[Tensor] = []
        self._slots: list[tuple[Any, list[_Slot]]] = []
        for name, value in zip(self._names, self._before, strict=True):
            if isinstance(value, Undefined):
                self._slots.append((None, []))
                continue
            leaves, structure = nest.flatten(value)
            paths = nest.paths(structure, name)
            self._slots.append((structure, [self._slot(*part) for part in zip(paths, leaves, strict=True)]))
        begin = self._number_slots()
        path_of = {x.at: x.path for _, slots in self._slots for x in slots if x.at is not None}
        mixed = [at for at in begin if path_of[at] in self._mixed]
        self._codes = {at: len(self.leaves) + i for i, at in enumerate(mixed)}
        self.leaves += [constant(code_of(begin[at]), dtypes.int32) for at in self._codes]

    def _slot(self, path: str, leaf: Any) -> _Slot:
        if not is_value(leaf):
            return _Slot(path, leaf, None)
        self.leaves.append(as_tensor(leaf))
        return _Slot(path, leaf, len(self.leaves) - 1)

    def _rebuilt(self, leaves: Sequence[Any]) -> list[Any]:
        values: list[Any] = []
        for before, (structure, slots) in zip(self._before, self._slots, strict=True):
            if structure is None:
                values.append(before)
            else:
                parts = [slot.value if slot.at is None else leaves[slot.at] for slot in slots]
                values.append(made_within(nest.unflatten(structure, parts)))
        return values

    def _last(self, name: str, value: Any) -> Any:
        """The value after the loop."""
        if not isinstance(value, Undefined) or name not in self._assigned:
            return value
        where = user_lines.line_of_assignment(name, self._body)
        why = (
            f"{self._what}, which a tensor decides, may run zero times, and only the loop assigns it{where}. {_REMEDY}"
        )
        return Doubtful(name, why)

    def _why(self, name: str) -> str:
        """Why a variable may have no value after the loop."""
        where = user_lines.line_of_assignment(name, self._body)
        seldom = ", or came by no assignment of it" if name in self._sometimes else ""
        return f"{self._what} ran zero times{seldom}, and only the loop assigns it{where}. {_REMEDY}"

    # One iteration

    @contextmanager
    def during(self, leaves: Sequence[Any], is_condition: bool = True) -> Iterator[Changes]:
        """Within its block, the variables are what `leaves` say."""
        with staged_block(self._what, self._outer, is_condition) as changes:
            values = self._rebuilt(in_loop(leaves, self._number_slots(), self._codes, id(self)))
            link(self._own[0], (self._entry,), values, self._alone)
            self._set(tuple(map(self._first, self._names, values)))
            yield changes

    def _number_slots(self) -> dict[int, Any]:
        """The Python numbers, or what stands for such, with which tensors of the loop begin."""
        slots = {slot.at: slot.value for _, slots in self._slots for slot in slots if slot.at is not None}
        if not tells.codes:
            return slots
        return {at: self._numbers.get(id(x), (x,))[0] for at, x in slots.items()}

    def _first(self, name: str, value: Any) -> Any:
        if type(value) is not Undefined:
            return value
        why = f"{self._what} reads it before the loop assigns it. Assign it before the loop"
        return NotYet(name, why)

    def after(self, leaves: Sequence[Any], run: Callable[[], object]) -> list[Tensor]:
        """The leaves after an iteration, `run`, that begins with `leaves`."""
        tracer = tracing()
        known = len(tracer.nodes) if tracer is not None else 0
        if tracer is not None:
            tracer.made += self._made
            self._made = tracer.made
        with self.during(leaves, is_condition=False) as changes:
            run()
            after = self._left = self._get()
            changed = changes.left()
        hand_out(leaves, self.leaves)
        self._adopt(changed, set())
        new_leaves: list[Tensor] = []
        wide = dict(self._shapes)
        for name, value, (structure, slots) in zip(self._names, after, self._slots, strict=True):
            if structure is None:
                self._assigned |= {name} if may_have_value(value) else set()
            else:
                new_leaves += self._checked(name, value, structure, slots)
        if tracer is not None and not self._dtypes_resolved and self._is_doubtful(tracer.nodes[known:], leaves):
            raise _DoubtfulDtypeError
        if self._shapes != wide:
            raise _WiderError
        if tells.codes:
            self._adopt_mixed()
        return [*new_leaves, *[constant(code_of(self._parts[at]), dtypes.int32) for at in self._codes]]

    def _adopt_mixed(self) -> None:
        """Has the loop made again if variables are Python numbers after some iterations, and not after all."""
        begin = self._number_slots()
        for at, path in enumerate(self.paths):
            after = self._parts.get(at)
            if isinstance(begin.get(at), Blank):
                continue
            if is_array(begin.get(at)) != is_array(after) and (is_array(after) or not self._runs_always):
                raise ControlFlowError(
                    f"{shown(path)} is an array of NumPy's after some runs of {self._what} and a tensor after others: "
                    f"what a graph returns is of one kind. Write ll.constant(array) before{source_line.here()}"
                )
        mixed = mixed_in_loop(begin, self._parts, id(self), self._runs_always)
        paths = {path for at, path in enumerate(self.paths) if at in mixed and not is_flag(path)}
        if paths - self._mixed:
            self._mixed |= paths
            raise _MoreStateError

    def _checked(self, name: str, value: Any, structure: Any, slots: Sequence[_Slot]) -> list[Tensor]:
        if isinstance(value, Undefined):
            value.read()
        parts, other = nest.flatten(value)
        if other != structure:
            if len(slots) == 1 and slots[0].value is None:
                self._refuse_none(slots[0].path, value, "begin with a value of that form")
            self._take_shape(name, value)
            before = nest.unflatten(structure, [slot.value for slot in slots])
            changed = next((x for x in self._containers if x.name == name), None)
            if changed is not None:
                raise self._restructures(changed, before, value)
            raise self._changes(
                name,
                described(before),
                described(value),
                "keep one structure: collect results in a tensor of known size, or with ll.scan or ll.map_fn",
            )
        return [x for slot, part in zip(slots, parts, strict=True) for x in self._kept(slot, part)]

    def _restructures(self, changed: Changed, before: Any, after: Any) -> ControlFlowError:
        """The error for a container that has other parts after an iteration."""
        kind = type(after).__name__
        if type(after) is list and len(after) > len(before):
            remedy = _array_for(changed, after[-1])
        else:
            remedy = "make all its parts before the loop, and assign them in it; lists and dictionaries in it stay the "
            remedy += "same ones, whose elements can be assigned, or are tuples"
        return ControlFlowError(
            f"{shown(changed.name)} is {described(before)} on entry of {self._what} and {described(after)} after one "
            f"iteration{changed.where}. A loop that a tensor decides keeps the structure of a {kind}: {remedy}"
        )

    def _take_shape(self, name: str, value: Any) -> None:
        """A `TensorArray` whose elements had no shape yet takes on that of those which the body writes."""
        i = list(self._names).index(name)
        before = self._before[i]
        if isinstance(before, TensorArray) and isinstance(value, TensorArray) and not before.is_shaped:
            self._element_shapes[i] = value.rows.shape[1:]
            raise _WiderError

    def _shape_arrays(self) -> None:
        for i, shape in self._element_shapes.items():
            before: Any = self._before[i]
            self._before[i] = before.shaped_like(shape)
        if self._element_shapes:
            self._element_shapes.clear()
            self._spread()

    def _kept(self, slot: _Slot, part: Any) -> list[Tensor]:
        if slot.at is None:
            if part is not slot.value and part != slot.value:
                after = described(part)
                after = after if after != described(slot.value) else f"another {type(part).__name__}"
                if slot.value is None and is_value(part):
                    self._refuse_none(slot.path, part, _remedy_for(part, None, slot.path))
                raise self._changes(slot.path, described(slot.value), after, _remedy_for(part, slot.value, slot.path))
            return []
        before = self.leaves[slot.at]
        if not is_value(part):
            raise self._changes(slot.path, str(before.spec), described(part), "keep it a tensor")
        self._parts[slot.at] = part
        x = constant(part, before.dtype) if fits(part, before.dtype) else as_tensor(part)
        if x.dtype != before.dtype and not self._dtypes_resolved and type(slot.value) in _WEAK:
            raise _DoubtfulDtypeError
        if x.dtype != before.dtype:
            remedy = f"begin with ll.astype({slot.path}, ll.{x.dtype.name}), or cast in the loop"
            raise self._changes(slot.path, str(before.spec), str(x.spec), remedy)
        shape = self._shapes.get(slot.path, before.shape)
        if not shapes.compatible(x.shape, shape):
            wider = shapes.generalise(shape, x.shape)
            if wider is None:
                remedy = "give it one rank, before the loop and in it"
                raise self._changes(slot.path, str(before.spec), str(x.spec), remedy)
            widen(self._told(slot.path, str(before.spec), str(x.spec)))
            self._shapes[slot.path] = wider
        return [x]

    def _refuse_none(self, path: str, after: Any, remedy: str) -> NoReturn:
        """Raises for what was None; a loop that is known to have a first round can have that apart."""
        self.none_at_first = self._changes(path, "None", described(after), remedy)
        raise self.none_at_first

    def _changes(self, path: str, before: str, after: str, remedy: str) -> ControlFlowError:
        told = self._told(path, before, after)
        return ControlFlowError(f"{told}. A loop that a tensor decides keeps every variable's dtype and rank: {remedy}")

    def _told(self, path: str, before: str, after: str) -> str:
        name = _NAME.findall(path)[0]
        where = next((x.where for x in self._containers if _NAME.findall(x.name)[:1] == [name]), "")
        where = where or user_lines.line_of_assignment(name, self._body) or source_line.at(source_line.user_line())
        return f"{shown(path)} is {before} on entry of {self._what} and {after} after one iteration{where}"

    # Python numbers and missing values

    def _weak(self) -> bool:
        return any(type(slot.value) in _WEAK for _, slots in self._slots for slot in slots)

    def _is_doubtful(self, nodes: Sequence[Any], leaves: Sequence[Any]) -> bool:
        """Whether a number that became a tensor met other dtypes, which it would have adapted to."""
        weak = [slot.at for _, slots in self._slots for slot in slots if type(slot.value) in _WEAK]
        values = {leaves[i]._value for i in weak if i is not None and hasattr(leaves[i], "_value")}
        cast = {x for node in nodes if node.op.name == "astype" for x in node.outputs}
        users = [node for node in nodes if values.intersection(node.inputs)]
        return any(node.op.name == "astype" or cast.intersection(node.inputs) for node in users)

    def _resolve_dtypes(self) -> None:
        """Traces an iteration in vain, with Python numbers as they are, to see what becomes of the variables."""
        self._dtypes_resolved = True
        ran = self._tried()
        while self._adapted(ran.values):
            ran = self._tried()
        for i in self._blanks:
            if not isinstance(ran.values[i], Undefined) and can_be_carried(ran.values[i]):
                self._before[i] = nest.map_structure(functools.partial(blank_of, ran), ran.values[i])
        self._spread()

    def _tried(self) -> Ran:
        ran = trace_block("trial", self._what, self._outer, self._trial, optional=False)
        self._made += ran.tracer.made
        names = self._own[0]
        unflagged = {names[i] for i in self._blanks if isinstance(ran.values[i], AssignedIfRun)} - set(
            map(is_hidden, names)
        )
        flags = ran.values[len(ran.values) - len(self._flagged) :] if self._flagged else ()
        seldom = {names[i] for i, flag in zip(self._flagged, flags, strict=True) if isinstance(flag, Tensor)}
        self._adopt(ran.changed, unflagged | seldom)
        return ran

    def _trial(self) -> tuple[Any, ...]:
        self._set(tuple(map(self._first, self._names, self._before)))
        self._run()
        return self._get()

    def _adapted(self, after: Sequence[Any]) -> bool:
        """Gives Python numbers the dtype that they have after an iteration; whether any has changed."""
        changed = [self._adapted_one(i, x) for i, x in enumerate(after)]  # each of them, not the first
        return any(changed)

    def _adapted_one(self, i: int, after: Any) -> bool:
        before = self._before[i]
        if isinstance(before, Undefined) or isinstance(after, Undefined):
            return False
        leaves, structure = nest.flatten(before)
        others, other = nest.flatten(after)
        if structure != other:
            return False
        new = [_promoted(a, b) for a, b in zip(leaves, others, strict=True)]
        self._before[i] = nest.unflatten(structure, new)
        self._numbers |= {id(b): (a, b) for a, b in zip(leaves, new, strict=True) if a is not b}
        return any(a is not b for a, b in zip(leaves, new, strict=True))


def _array_for(changed: Changed, element: Any) -> str:
    """What to write for a list that a loop fills."""
    name = "array" if " " in changed.name else changed.name
    appended = _APPENDED.search(changed.where)
    dtype = as_tensor(element).dtype.name if is_value(element) else "float32"
    return (
        f"write `{name} = ll.TensorArray(ll.{dtype}, size)` before the loop, where `size` is how many elements there "
        f"can be, `{name} = {name}.write(i, {appended[1] if appended else 'x'})` in it, where `i` counts them, and "
        f"`{name}.stack()` after it; or collect the results with ll.scan or ll.map_fn"
    )


def _remedy_for(part: Any, before: Any, path: str) -> str:
    """What to write where a variable that is no tensor at first has become `part`."""
    if is_value(part):
        spec = as_tensor(part).spec
        instead = flag_beside(path) if before is None else ""
        return f"begin with a tensor, as ll.zeros({spec.shape}, dtype=ll.{spec.dtype.name}){instead}"
    if hasattr(part, "__dict__") and not callable(part):
        return (
            "only tensors and numbers can change in it, and what is made of them: tuples, dicts, dataclasses. "
            "Carry the parts that change as variables of their own, or make the class a dataclass"
        )
    return "only tensors and numbers can change in it; begin with a tensor"


def _promoted(before: Any, after: Any) -> Any:
    """A Python number as a tensor of the dtype that it has later, where its kind allows that."""
    if type(before) not in _WEAK:
        return before
    if isinstance(after, Tensor):
        dtype = after.dtype
    elif type(after) in _WEAK and type(after) is not type(before):
        dtype = dtypes.default_for(after)
    else:
        return before
    if not fits(before, dtype) or dtype == dtypes.default_for(before):
        return before
    return constant(before, dtype)
