"""The state of a generator: a variable of words that draws advance, and that can be read, set and split.

To a trace a generator is a variable without a place (`GeneratorSpec`), whose value is its state, 14 words. So capture
by reference, program order, reading and setting in staged code, weak captures and the rule for state that a function
creates are those of variables.

Splitting hands out keys, not stretches of one stream: a child's key is a block of its parent's Philox that is never
drawn from, and the child's number stands in the highest word of its counter. Children of one generator cannot meet;
others do only where two keys of 128 bits are equal by chance. Which child one gets depends on splits alone, not on
draws.

In staged code splitting is an op, whose results are generators: values that live as long as a call of the graph, new
ones each time. So staged code gets the children that eager code would get, and no state is kept between calls. What an
object makes for itself (`created_by`), and what is split off a generator that the trace itself has made, is state.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Self

from limelight.core import dispatch, shapes
from limelight.core.devices import CPU0
from limelight.core.eager import prepare
from limelight.core.spec import GENERATOR
from limelight.core.tensor import Tensor, as_tensor, constant, new_uid
from limelight.core.variable import Resource, assign_op, created_by, itself, on_create, read
from limelight.errors import ArgumentError, CallError
from limelight.ops.random._draws import Source, state_of
from limelight.ops.random.generator_split import split_op

Seed = int | Sequence[int] | None


class Stream(Resource):
    """What a generator is before it draws anything.

    To a trace it is a variable: captured by reference, read and written in program order. So staged functions draw from
    it what eager code would, and anew at each call.
    """

    __slots__ = ("_maker", "_stands_for", "name")
    _maker: weakref.ref[Any] | None
    """The hook of the trace that made it, while that goes on."""

    def __init__(self, seed: Seed = None) -> None:
        self._begin(_state(seed))

    def _begin(self, state: Any) -> None:
        hook = on_create.get()
        if hook is not None:
            hook(self)
        self._draw_from(Source(state))
        self._maker = None if hook is None else weakref.ref(hook)

    def _draw_from(self, payload: Any) -> None:
        self.name = "generator"
        self._stands_for = None  # see `core.variable.stand_in`
        self._maker = None
        self.spec = GENERATOR
        self._uid = new_uid()
        self._device = CPU0
        self._data = payload

    @property
    def state(self) -> Tensor:
        """All that future draws depend on, as a vector of 14 uint64 words; may be set, in staged functions as well."""
        words: Tensor = dispatch.apply(read, (self,))
        return words

    @state.setter
    def state(self, value: Any) -> None:
        operands = prepare(assign_op, (self, as_tensor(value)))
        assign_op.infer(self.spec, operands[1].spec)
        dispatch.apply(assign_op, operands)

    def reset(self, seed: Seed = None) -> None:
        """Starts anew, as a new generator with this seed would: equal seeds give equal streams; None takes a fresh one.

        In a staged function it happens at each call (with a fresh seed that is chosen once, while tracing).

        >>> import limelight as ll
        >>> g = ll.random.Generator(1)
        >>> first = g.uniform((2,))
        >>> g.reset(1)
        >>> bool((g.uniform((2,)) == first).all())
        True
        """
        self.state = constant(_state(seed))

    def split(self, n: int = 2) -> list[Self]:
        """`n` new generators, independent of each other, of this one, and of those split off before.

        Which ones depends on this generator's key and on how many were split off before, not on what it has drawn. A
        staged function splits off new ones at each call, those of eager code; they last as long as the call, so they
        can be passed on, but neither returned (SignatureError) nor kept (LeakedTensorError): those are split outside.
        Raises ArgumentError for a negative number, CallError for a generator.

        >>> import limelight as ll
        >>> a, b = ll.random.Generator(1).split()
        >>> bool((a.uniform((3,)) == b.uniform((3,))).all())
        False
        """
        if isinstance(n, Stream):
            raise CallError("random.split: a generator is split by its method: write generator.split(n)")
        n = shapes.whole("split", "the number of generators", n)
        if n < 0:
            raise ArgumentError(f"split: the number of generators must be at least 0, got {n}")
        hook = on_create.get()
        maker = getattr(self, "_maker", None)  # what stands for an argument has none
        of_trace = maker is not None and hook is not None and maker() is hook
        if not dispatch.active or created_by.get() or of_trace:
            return [_restored(type(self), state) for state in self._data.split(n)]
        return [_drawing_from(type(self), part) for part in dispatch.apply(split_op, (self,), (n,))] if n else []

    def __eq__(self, other: object) -> bool:
        """Whether it is the same generator; a trace in which code asks that of an argument is for this very one."""
        return isinstance(other, Stream) and itself(self) is itself(other)

    def __hash__(self) -> int:
        return id(itself(self))

    def __copy__(self) -> Self:
        clone: Self = _restored(type(self), self._data.array)
        return clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = clone = self.__copy__()
        return clone

    def __reduce__(self) -> Any:
        return (_restored, (type(self), self._data.array))

    def __repr__(self) -> str:
        if not isinstance(self._data, Source):
            return "<generator split off in a staged function>"
        words = self._data.array
        return f"<generator of key {int(words[4]):016x}{int(words[5]):016x}, {int(words[0])} blocks used>"


def _state(seed: Seed) -> Any:
    try:
        return state_of(seed)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"a seed is an int of at least 0, several, or None, got {seed!r}") from error


def from_state(kind: type[Any], state: Any) -> Any:
    """A generator that has just this state."""
    return _restored(kind, state)


def _restored(kind: type[Any], state: Any) -> Any:
    stream = object.__new__(kind)
    stream._begin(state)
    return stream


def _drawing_from(kind: type[Any], part: Any) -> Any:
    """A generator for a result of `split_op`: a payload, or what stands for one in a trace."""
    child = object.__new__(kind)
    child._draw_from(part._data if hasattr(part, "_data") else part.payload())
    child._uid = part._uid or child._uid  # by which a run that is compared with another one knows it
    if not hasattr(part, "_data"):
        part.stand_for(child)
    return child
