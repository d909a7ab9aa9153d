"""Guards: straight-line code that asks whether a call is like one that has found a trace, and takes its payloads.

Keys are made leaf by leaf; a guard knows from an earlier call which leaf lies where and what it must be, so it reads
and compares, and makes nothing but the list of payloads. For a list of 100 tensors that is a fifth of the time that its
key takes. Whatever a guard does not recognise takes the way by the key, which decides.

A guard is written for calls that have found their trace a few times, while no interpreter, scope or listener is active,
and goes with the other shortcuts of the trace cache. It keeps nothing alive but plain values and defaults, which the
key and the function keep, too.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

import numpy as np

from limelight.core import nest
from limelight.core.devices import CPU0
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.staging.key import Call
from limelight.staging.key_parts import BY_VALUE, ObjectPart, Part, TensorPart, ValuePart, VariablePart
from limelight.staging.signature import Signature
from limelight.staging.value_keys import BY_REPR
from limelight.staging.weak_identity import PLAIN_DEFAULTS, Bound

HITS: Final = 3
"""From how many hits of a trace on its calls are worth a guard: compiling one takes as long as a dozen keys."""
_MOST: Final = 4
"""Guards for calls with the same number of arguments and the same keywords."""
_REPLACED: Final = 16
"""How often the oldest of them gives way until such calls get no guards any more: each call is another then."""
_RUN: Final = 4
"""From how many leaves of one type on a list is checked by a loop."""
_LINES: Final = 4000
_PLAIN_MAPPINGS: Final = (dict, OrderedDict)

Payloads = Callable[[tuple[Any, ...], dict[str, Any]], list[Any] | None]


class Guard(NamedTuple):
    """`payloads(args, kwargs)`: those of the call's inputs where it is one for `entry`, None where it may not be."""

    payloads: Payloads
    entry: Any


class Guards:
    """The guards of one staged function, by the number of positional arguments and the names of the others."""

    def __init__(self) -> None:
        self.by_form: dict[Any, tuple[Guard, ...]] = {}
        self._made: dict[Any, int] = {}

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]] | None:
        """The entry for a call and its payloads, while nothing is active; None where no guard knows it."""
        for guard in self.by_form.get((len(args), *kwargs) if kwargs else len(args), ()):
            payloads = guard.payloads(args, kwargs)
            if payloads is not None:
                return guard.entry, payloads
        return None

    def add(
        self,
        entry: Any,
        signature: Signature,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        closed_over: Collection[int],
        tells_apart: bool = False,
    ) -> None:
        """Writes a guard for calls like this one, if there can be one.

        Args:
            entry: what the call has found; it runs on payloads.
            signature: of the function.
            call: the call in its canonical form.
            args: its arguments as they were given.
            kwargs: those by name.
            closed_over: uids of the variables that are keyed by identity.
            tells_apart: whether it counts which of the containers are one and the same, see `sharing`.
        """
        form = (len(args), *kwargs) if kwargs else len(args)
        made = self._made[form] = self._made.get(form, 0) + 1
        if made > _MOST + _REPLACED:
            self.by_form[form] = ()
            return
        try:
            payloads = _Writer(call, closed_over, tells_apart).write(signature, args, kwargs)
        except _NoGuardError:
            return
        self.by_form[form] = (Guard(payloads, entry), *self.by_form.get(form, ())[: _MOST - 1])


class _NoGuardError(Exception):
    """There is something in the call that a guard does not know."""


class _Writer:
    """Writes the code of one guard from a call."""

    def __init__(self, call: Call, closed_over: Collection[int], tells_apart: bool) -> None:
        self._leaves: Iterator[tuple[Any, Part]] = zip(call.leaves, call.key.parts, strict=True)
        self._n_inputs = sum(part.is_input for part in call.key.parts)
        self._lines: list[str] = []
        self._names: dict[str, Any] = {
            "CPU0": CPU0, "Tensor": Tensor, "ndarray": np.ndarray, "array": np.array, "closed": frozenset(closed_over),
        }  # fmt: skip
        self._payloads: list[str] = []
        self._uids: list[str] = []
        self._containers: dict[int, tuple[str, Any]] | None = {} if tells_apart else None
        self._counter = itertools.count()

    def write(self, signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Payloads:
        """The function; raises _NoGuardError."""
        given = [_Argument(f"a{i}", x) for i, x in enumerate(args)]
        named = {name: _Argument(f"k{i}", x) for i, (name, x) in enumerate(kwargs.items())}
        if given:
            self._lines.append(f"{', '.join([x.expression for x in given])}, = args")
        self._lines += [f"{x.expression} = kwargs[{name!r}]" for name, x in named.items()]
        bound = signature.inspected.bind(*given, **named)
        bound.apply_defaults()
        self._sequence(bound.args)
        for name in sorted(bound.kwargs):
            self._argument(bound.kwargs[name])
        if next(self._leaves, None) is not None:
            raise _NoGuardError
        return self._compiled(signature.name)

    def _compiled(self, name: str) -> Payloads:
        if len(self._lines) > _LINES:
            raise _NoGuardError
        if self._uids:  # each variable once, as in the call, and none that the function closes over
            self._lines += [f"uids = {{{', '.join(self._uids)}}}"]
            self._refuse_if(f"len(uids) != {self._n_variables} or not closed.isdisjoint(uids)")
        if self._containers:  # those that were others are so again
            ids = [f"id({expression})" for expression, _ in self._containers.values()]
            self._refuse_if(f"len({{{', '.join(ids)}}}) != {len(ids)}")
        body = "\n".join([f"        {line}" for line in self._lines or ["pass"]])  # a call without arguments has none
        code = f"def payloads(args, kwargs):\n    try:\n{body}\n"
        # what the user's containers may raise when they are read is raised again on the way by the key
        code += f"    except Exception:\n        return None\n    return [{', '.join(self._payloads)}]\n"
        exec(compile(code, f"<guard of {name}>", "exec"), self._names)  # written here, of our own words
        payloads: Payloads = self._names.pop("payloads")
        return payloads

    def _sequence(self, arguments: Sequence[Any]) -> None:
        for x in arguments:
            self._argument(x)

    def _argument(self, x: Any) -> None:
        """An argument, or a default, which lies at the same place at each call, but may be a list that changes."""
        if isinstance(x, _Argument):
            self._walk(x.expression, x.value)
        else:
            self._walk(self._constant(x), x)

    # The code

    _n_variables = 0

    def _constant(self, x: Any) -> str:
        name = f"c{next(self._counter)}"
        self._names[name] = x
        return name

    def _local(self) -> str:
        return f"x{next(self._counter)}"

    def _refuse_if(self, condition: str) -> None:
        self._lines.append(f"if {condition}: return None")

    def _walk(self, expression: str, tree: Any) -> None:
        container = nest.opened(tree)
        if container is None:
            self._leaf(expression, tree)
            return
        kind, keys, children = container
        own = type(tree)
        if self._containers is not None and not isinstance(tree, tuple):
            first, _ = self._containers.setdefault(id(tree), (expression, tree))
            if first != expression:
                self._refuse_if(f"{expression} is not {first}")
        checks = f"type({expression}) is not {self._constant(own)}"
        if kind is dict:
            if own not in _PLAIN_MAPPINGS or not all(type(key) is str for key in keys):
                raise _NoGuardError  # a 1 and a True would find one another, and others answer for keys that they lack
            self._refuse_if(f"{checks} or len({expression}) != {len(keys)}")
            for key, child in zip(keys, children, strict=True):
                self._child(f"{expression}[{key!r}]", child)
        elif isinstance(keys, nest.KeysOfType) or (isinstance(tree, tuple) and hasattr(tree, "__dict__")):
            raise _NoGuardError  # others of this class may have other attributes
        elif isinstance(tree, (list, tuple)):
            self._refuse_if(f"{checks} or len({expression}) != {len(keys)}")
            self._elements(expression, children)
        elif not nest.is_plain(own):
            raise _NoGuardError  # objects of this class may have other attributes
        else:
            self._refuse_if(checks)
            for key, child in zip(keys, children, strict=True):
                self._child(f"{expression}.{key}", child)

    def _child(self, expression: str, child: Any) -> None:
        local = self._local()
        self._lines.append(f"{local} = {expression}")
        self._walk(local, child)

    def _elements(self, expression: str, children: Sequence[Any]) -> None:
        """The elements of a list or tuple: a loop over tensors or variables that are all of one type."""
        first = children[0] if children else None
        if len(children) >= _RUN and {*map(type, children)} == {type(first)} and isinstance(first, (Tensor, Variable)):
            pairs = list(itertools.islice(self._leaves, len(children)))
            alike = {part[: 3 if isinstance(first, Tensor) else 2] for _, part in pairs}
            if len(alike) == 1 and all(
                len(part) == 3 for _, part in pairs
            ):  # a fourth item is a device, or an identity
                self._loop(expression, children, pairs)
                return
            self._leaves = itertools.chain(pairs, self._leaves)
        if children:
            locals_ = [self._local() for _ in children]
            self._lines.append(f"{', '.join(locals_)}, = {expression}")
            for local, child in zip(locals_, children, strict=True):
                self._walk(local, child)

    def _loop(self, expression: str, children: Sequence[Any], pairs: Sequence[tuple[Any, Part]]) -> None:
        """One comprehension, which counts those that fit: a loop that appends takes a tenth more."""
        name, first = self._local(), children[0]
        leaf, part = pairs[0]
        if isinstance(part, TensorPart):
            element, payload, fits = "x", *self._tensor_fits("x", "d", first, leaf, part)
            given = expression
        else:
            for one, its in pairs:
                self._number(one, one, its)
            # each beside its own spec: equal ones of different variables are not the same object
            specs = self._constant(tuple([one.spec for one in children]))
            element, given = "x, s", f"zip({expression}, {specs})"
            payload, fits = "x._data", self._variable_fits("x", "s", first)
            self._uids.append(f"*[x._uid for x in {expression}]")
        self._lines.append(f"{name} = [{payload} for {element} in {given} if {fits}]")
        self._refuse_if(f"len({name}) != {len(children)}")
        self._payloads.append(f"*{name}")

    def _leaf(self, expression: str, x: Any) -> None:
        pair = next(self._leaves, None)
        if pair is None:
            raise _NoGuardError
        leaf, part = pair
        if isinstance(part, TensorPart):
            self._tensor(expression, x, leaf, part)
        elif isinstance(part, VariablePart):
            self._number(x, leaf, part)
            self._variable(expression, x)
            self._uids.append(f"{expression}._uid")
        elif isinstance(part, ValuePart):
            self._value(expression, x, part)
        else:
            self._object(expression, x, part)

    def _tensor(self, expression: str, x: Any, leaf: Any, part: TensorPart) -> None:
        payload, fits = self._tensor_fits(expression, f"d{next(self._counter)}", x, leaf, part)
        self._refuse_if(f"not ({fits})")
        self._payloads.append(payload)

    def _tensor_fits(self, expression: str, data: str, x: Any, leaf: Any, part: TensorPart) -> tuple[str, str]:
        """The payload of a tensor, or an array, and whether it is of the type that it was; `data` is a free name."""
        if type(x) is Tensor and leaf is x and x._device is CPU0:
            here = f"type({expression}) is Tensor and {expression}._device is CPU0"
            return data, f"{here} and {self._is_array(f'({data} := {expression}._data)', data, x._data)}"
        if type(x) is np.ndarray and type(leaf) is Tensor and leaf.dtype is x.dtype:
            # a copy: the caller may change his own
            return (
                f"array({expression})",
                f"type({expression}) is ndarray and {self._is_array(expression, expression, x)}",
            )
        if isinstance(x, np.generic) and type(leaf) is Tensor and leaf.dtype is x.dtype:
            return f"array({expression})", f"type({expression}) is {self._constant(type(x))}"
        raise _NoGuardError

    def _is_array(self, first: str, again: str, array: Any) -> str:
        """Equal types that are not the same object take the way by the key."""
        return f"{first}.dtype is {self._constant_once(array.dtype)} and {again}.shape == {tuple(array.shape)!r}"

    def _constant_once(self, x: Any) -> str:
        """A constant that occurs at many places."""
        name = f"t{id(x)}"
        self._names[name] = x
        return name

    def _number(self, x: Any, leaf: Any, part: Part) -> None:
        """Counts a variable, which must be another one than all before it."""
        own = isinstance(part, VariablePart) and part.identity is None and part.alias == self._n_variables
        if not own or leaf is not x or x._device is not CPU0:
            raise _NoGuardError
        self._n_variables += 1

    def _variable(self, expression: str, x: Any) -> None:
        self._refuse_if(f"not ({self._variable_fits(expression, self._constant_once(x.spec), x)})")
        self._payloads.append(f"{expression}._data")

    def _variable_fits(self, expression: str, spec: str, x: Any) -> str:
        alike = f"({expression}.spec is {spec} or {expression}.spec == {spec})"
        return f"type({expression}) is {self._constant_once(type(x))} and {expression}._device is CPU0 and {alike}"

    def _value(self, expression: str, x: Any, part: ValuePart) -> None:
        kind = type(x)
        if part.kind is not kind:
            raise _NoGuardError
        if x is None or x is True or x is False or x is Ellipsis:
            self._refuse_if(f"{expression} is not {x!r}")
        elif isinstance(x, (enum.Enum, np.dtype)):
            self._refuse_if(f"{expression} is not {self._constant(x)}")
        elif kind in BY_VALUE or (kind is float and not math.isnan(x) and x != 0):
            equal = repr(x) if kind in (int, float) and abs(x) < 1e15 else self._constant(x)
            self._refuse_if(f"type({expression}) is not {kind.__name__} or {expression} != {equal}")
        elif kind in BY_REPR:  # which tells a -0.0 from 0.0, and finds NaN
            self._refuse_if(f"type({expression}) is not {kind.__name__} or repr({expression}) != {repr(x)!r}")
        else:
            raise _NoGuardError

    def _object(self, expression: str, x: Any, part: Part) -> None:
        if not isinstance(part, ObjectPart) or isinstance(part.identity, Bound) or part.identity.ref() is not x:
            raise _NoGuardError
        self._refuse_if(f"{expression} is None or {expression} is not {self._constant(part.identity.ref)}()")
        if type(x) is FunctionType:
            if (exchanged := is_exchanged(expression, x, self._constant)) is None:
                raise _NoGuardError
            self._refuse_if(exchanged)


def is_exchanged(expression: str, function: FunctionType, constant: Callable[[Any], str]) -> str | None:
    """The condition that a function has got other code or defaults; None where these take the way by the key.

    Args:
        expression: the function, as code.
        function: it.
        constant: names a value in the code.
    """
    if function.__kwdefaults__ or not PLAIN_DEFAULTS.issuperset(map(type, function.__defaults__ or ())):
        return None
    parts = {name: getattr(function, name) for name in ("__code__", "__defaults__")}
    others = [f"{expression}.{name} is not {x if x is None else constant(x)}" for name, x in parts.items()]
    return " or ".join([*others, f"{expression}.__kwdefaults__"])


class _Argument(NamedTuple):
    """Stands for an argument where the call is bound: how the guard reaches it, and what it was."""

    expression: str
    value: Any
