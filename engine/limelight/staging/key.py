"""The trace key: what the trace cache finds a trace by.

A key holds one part for each leaf of the arguments (`key_parts` says how each kind of leaf is keyed), the structure of
the arguments, and the requested device. `Signature.call` makes it from the canonical arguments, in two forms that are
equal and hash alike: each call makes a `LookupKey` of bare tuples; only a miss makes a `Key` of typed parts, which can
be compared, generalised and described. `plain_types` is the shortcut of the commonest calls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from limelight.core import nest, shapes
from limelight.core.devices import CPU0, Device
from limelight.core.nest import Structure
from limelight.core.tensor import Tensor
from limelight.staging.key_parts import BY_VALUE, BarePart, Part, TensorPart, typed, with_identities


class Key(NamedTuple):
    """What a trace was made for."""

    parts: tuple[Part, ...]
    structure: Structure | None  # None: flat positional arguments
    device: Device | None
    shared: str = ""  # which parts of the arguments are one and the same, where the function makes a difference of it

    def covers(self, other: Key) -> bool:
        """Whether a trace for this key, whose shapes may have unknown sizes, serves a call with `other`."""
        if not self._is_alike(other):
            return False
        return all(mine.covers(its) for mine, its in zip(self.parts, other.parts, strict=True))

    def generalised(self, seen: Key) -> Key | None:
        """The key that serves calls with this one and with `seen`; None when they differ in more than sizes."""
        if not self._is_alike(seen):
            return None
        merged: list[Part] = []
        for old, new in zip(seen.parts, self.parts, strict=True):
            if old == new:
                merged.append(new)
                continue
            part = _generalised(old, new)
            if part is None:
                return None
            merged.append(part)
        return self._replace(parts=tuple(merged))

    def describe(self, paths: Sequence[str]) -> str:
        """The abstract arguments, whose leaves have these paths, on one line: "x: f32[32,784], training: True"."""
        return ", ".join([f"{path}: {part.describe()}" for path, part in zip(paths, self.parts, strict=True)])

    def _is_alike(self, other: Key) -> bool:
        alike = self.structure == other.structure and self.device is other.device
        return alike and self.shared == other.shared and len(self.parts) == len(other.parts)


def _generalised(old: Part, new: Part) -> Part | None:
    """The tensor with all sizes that the two parts share; None where they differ in something else."""
    if not (isinstance(old, TensorPart) and isinstance(new, TensorPart)):
        return None
    if old.dtype != new.dtype or old.device is not new.device:
        return None
    shape = shapes.generalise(old.shape, new.shape)
    return None if shape is None else TensorPart.of(new.dtype, shape, new.device)


class LookupKey(NamedTuple):
    """A key as each call makes it, of bare parts; it is equal to the `Key` that it stands for, and hashes alike."""

    parts: tuple[BarePart, ...]
    structure: Structure | None
    device: Device | None
    shared: str = ""

    def typed(self) -> Key:
        return Key(typed(self.parts), self.structure, self.device, self.shared)


class Call(NamedTuple):
    """The arguments of a call, canonical: `leaves` in order, and what to look the call up by.

    `args` and `kwargs` are the arguments themselves, bound to the parameters; none where there is an `input_signature`,
    or where each leaf is to be an argument of its own.
    """

    leaves: list[Any]
    lookup: LookupKey
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None
    were_arrays: tuple[bool, ...] = ()  # of leaves that an `input_signature` has made tensors of: which were NumPy's

    @property
    def key(self) -> Key:
        """The key with typed parts. It takes 0.1 us for each leaf, so a call that finds its trace never asks."""
        return self.lookup.typed()

    def with_key(self, key: Key) -> Call:
        return self._replace(lookup=LookupKey(*key))

    def apart(self) -> Call:
        """The same call of arguments of which none is another one: `f(specs, specs)` takes two."""
        return self._replace(lookup=self.lookup._replace(shared=""), args=(), kwargs=None)

    def is_array(self, leaf: int) -> bool:
        """Whether a leaf was given as an array of NumPy's."""
        if self.were_arrays:
            return self.were_arrays[leaf]
        given = nest.leaves_of((self.args, self.kwargs) if self.kwargs else self.args)
        return leaf < len(given) and isinstance(given[leaf], np.ndarray)


def key_by_identity(call: Call, closed_over: Collection[int]) -> Call:
    """`call` with the variables that the function closes over as well, given by uid, keyed by identity.

    A graph that reads such a variable and writes to the argument means one thing when both are the same variable, and
    another when they are not.
    """
    parts = with_identities(call.lookup.parts, call.leaves, closed_over)
    return call._replace(lookup=call.lookup._replace(parts=parts))


def plain_types(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]] | None:
    """The types of arguments that are plain values or tensors on CPU:0 or of XLA, and the tensors' payloads; else None.

    While no interpreter, scope or listener is active they decide which trace a call without keywords finds, and they
    take a third of the time that a key takes to make.
    """
    types: list[Any] = []
    payloads = []
    for x in args:
        if type(x) is Tensor:
            data, device = x._data, x._device
            payloads.append(data)
            if device is CPU0:
                types.append(data.dtype)
                types.append(data.shape)
            elif device.backend == "jax":
                types.append(device.name)
                types.append(data.aval)  # one object for a dtype and shape: a quarter of the time of asking for these
            else:
                return None
        elif type(x) in BY_VALUE:
            types.append(type(x))
            types.append(x)
        else:
            return None
    return tuple(types), payloads
