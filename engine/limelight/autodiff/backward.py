"""The backward pass: reverse accumulation over recorded entries (Baydin et al. 2018, section 3.2).

It walks only over entries that lead from the target back to a source that is wanted. A tape that answers once drops
each entry as the walk is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from limelight.autodiff.op_devices import OpDevices, scope_of
from limelight.autodiff.tape_entries import source_of
from limelight.core import device_scopes, devices, dispatch, name_scopes, nest, shapes
from limelight.core.collector import collector_paused
from limelight.core.devices import CPU0, Device
from limelight.core.op import SAVED, Op, TapeEntry
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.tensor import Tensor, as_tensor, constant, wrap
from limelight.core.variable import Resource, read
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.user_code import source_line

Gradients = dict[int, Any]
"""Gradients found so far, by uid: tensors, or sparse."""
Repeat = Callable[[Any, Any, tuple[Any, ...], Any, Any], tuple[Any, ...]]
"""`Interpreter.repeat`."""
Places = Sequence[Device | None] | None
"""Of each entry, the device of its op (`op_devices`)."""


UNCONNECTED: Final = ("none", "zero")
"""What a source without influence may get."""


def check_unconnected(option: Any) -> None:
    if option not in UNCONNECTED:
        raise ArgumentError(f'unconnected_gradients must be "none" or "zero", got {option!r}')


def flatten_sources(sources: Any) -> tuple[list[Any], nest.Structure]:
    """The sources one by one, and their structure; a module stands for the list of its trainable variables.

    Raises ArgumentError for a source that no tape can know.
    """
    leaves, structure = nest.flatten(sources)
    for x in leaves:
        if not isinstance(x, _KNOWN):
            leaves, structure = nest.flatten(nest.map_structure(_with_variables, sources))
            check("source", leaves)
            break
    return leaves, structure


def once(sources: Sequence[Any]) -> list[Any]:
    """The sources, with None for one that has come before: its gradient is whole at its first place.

    For who hands the gradients of arguments on to a tape, which adds up those of an argument that is given twice.
    """
    first = {id(x): i for i, x in reversed(list(enumerate(sources)))}
    return [x if first[id(x)] == i else None for i, x in enumerate(sources)]


def _with_variables(source: Any) -> Any:
    return source if isinstance(source, _KNOWN) else getattr(source, "trainable_variables", source)


_KNOWN: Final = (Tensor, Resource, str, type(None))
"""What a tape can be asked for; strings and None just have no gradient."""


def check(what: str, leaves: Sequence[Any]) -> None:
    """Raises ArgumentError for a target or source that no tape can know."""
    for x in leaves:
        if not isinstance(x, _KNOWN) and (what == "source" or type(x) is not SparseGradient):
            raise ArgumentError(
                f"tape.gradient: a {what} must be a tensor or a variable, got {_described(x)}; {_instead_of(what, x)}"
            )


def _instead_of(what: str, given: Any) -> str:
    """What to write for a target or source that no tape can know."""
    if what == "target" and hasattr(given, "trainable_variables"):
        return "the target comes first: write tape.gradient(loss, module)"
    if what == "target" and isinstance(given, (float, np.generic)):
        return "it left the tape as a number: leave out .item(), float(...) and .numpy()"
    return "make it a tensor with x = ll.constant(...), tape.watch(x), and compute the target from x"


def _described(x: Any) -> str:
    return f"the {type(x).__name__} {x!r}" if isinstance(x, (bool, int, float, complex)) else f"a {type(x).__name__}"


def weights(output_gradients: Any, structure: nest.Structure, count: int) -> list[Any]:
    """The output gradients one by one, None where they are ones. Raises ArgumentError for another structure."""
    if output_gradients is None:
        return [None] * count
    return nest.flatten_like(structure, output_gradients, "output_gradients")


def seed_gradients(targets: Sequence[Any], output_grads: Sequence[Any], watched: set[int]) -> Gradients:
    """The gradients to start from: those of the targets."""
    if not dispatch.active:
        return _seed_gradients(targets, output_grads, watched)
    with name_scopes.gradient_scope():
        return _seed_gradients(targets, output_grads, watched)


def _seed_gradients(targets: Sequence[Any], output_grads: Sequence[Any], watched: set[int]) -> Gradients:
    grads: Gradients = {}
    for target, weight in zip(targets, output_grads, strict=True):
        if type(target) is SparseGradient:  # its sum is the sum of its rows
            whole = None if weight is None else _output_gradient(target, weight)
            for indices, values in target.parts:
                if values._uid in watched:
                    _add(grads, values._uid, filled(1, values) if whole is None else whole[indices])
            continue
        uid = uid_of(target)
        if uid in watched and uid:
            _add(grads, uid, _output_gradient(target, weight))
    return grads


def pull(
    entries: list[TapeEntry], grads: Gradients, wanted: set[int], roots: set[int], keep: bool, ran: OpDevices
) -> None:
    """Walks the entries backwards, turning gradients of outputs into gradients of inputs.

    Args:
        entries: in the order in which they were recorded.
        grads: those of the targets; becomes those of the sources.
        wanted: the uids of the sources.
        roots: what was watched to begin with: where all of them are wanted, every path leads to one of these.
        keep: else entries go as they are done with, and so does what they saved.
        ran: the devices on which the ops ran, and the ops of their gradients are to run.
    """
    places = ran.of(entries, keep) if ran else None
    if roots <= wanted:
        masks = [mask if (mask := entry[0].mask) >= 0 else _watched_inputs(entry) for entry in entries]
    else:
        masks = _masks_towards(entries, wanted)
    if dispatch.active:  # nobody asks whose line it is, or what part of a graph, when only kernels run
        with name_scopes.gradient_scope(), collector_paused():
            _walk_at_lines(entries, masks, grads, wanted, keep, places)
    else:
        _walk(entries, masks, grads, wanted, keep, places)


def _walk(
    entries: list[TapeEntry], masks: list[int], grads: Gradients, wanted: set[int], keep: bool, places: Places
) -> None:
    for index in range(len(masks) - 1, -1, -1):
        entry = entries[index] if keep else entries.pop()
        if not masks[index]:
            continue
        if places is None:
            _pull_one(entry, grads, masks[index], wanted)
        else:
            with scope_of(places[index]):
                _pull_one(entry, grads, masks[index], wanted)


def _walk_at_lines(
    entries: list[TapeEntry], masks: list[int], grads: Gradients, wanted: set[int], keep: bool, places: Places
) -> None:
    """The same; gradient ops belong to the line of their forward op, and to the one that asks."""
    caller = source_line.user_stack()
    interpreter = dispatch.current()
    repeat = None if interpreter.scope is None else interpreter.repeat  # others than tracers have nothing to repeat
    stacks: dict[tuple[int, int, str], tuple[Any, str, tuple[Any, ...]]] = {}  # each with the code, which has the id
    with source_line.pretend(caller) as line:
        for index in range(len(masks) - 1, -1, -1):
            entry = entries[index] if keep else entries.pop()
            if not masks[index]:
                continue
            code, name = entry[4], entry[0].op.name
            key = (id(code), entry[5], name)
            known = stacks.get(key)
            if known is None:
                known = stacks[key] = _gradient_place(entry, caller)
            _, scope, line.stack = known
            if scope or places is not None:
                at = nullcontext() if places is None else scope_of(places[index])
                with at, name_scopes.gradient_scope(scope):
                    _pull_traced(entry, grads, masks[index], wanted, repeat, line.stack)
            else:
                _pull_traced(entry, grads, masks[index], wanted, repeat, line.stack)


def _gradient_place(entry: TapeEntry, caller: tuple[Any, ...]) -> tuple[Any, str, tuple[Any, ...]]:
    """What tells where an op ran, the name scope in which it did, and the lines of its gradient."""
    line = source_of(entry)
    if line is None:
        return entry[4], "", caller
    scope = line.scope if isinstance(line, source_line.ScopedSource) else ""
    return entry[4], scope, (source_line.of_gradient(line, entry[0].op.name), *caller)


def _watched_inputs(entry: TapeEntry) -> int:
    """The mask of the inputs that were watched, of an entry whose recipe is for any of them."""
    return sum([1 << i for i, uid in enumerate(entry[entry[0].first_input :]) if uid])


def _masks_towards(entries: list[TapeEntry], wanted: set[int]) -> list[int]:
    """For each entry the mask of the inputs that lead back to a wanted source."""
    connected = wanted - {0}
    masks = []
    for entry in entries:
        recipe = entry[0]
        mask, bit = 0, 1
        for uid in entry[recipe.first_input :]:
            if uid in connected:
                mask |= bit
            bit <<= 1
        mask &= recipe.mask
        if mask:
            outputs = entry[1]
            if type(outputs) is int:
                connected.add(outputs)
            else:
                connected.update(outputs)
                connected.discard(0)
        masks.append(mask)
    return masks


def _pull_one(entry: TapeEntry, grads: Gradients, needed: int, wanted: set[int]) -> None:
    recipe, uid = entry[0], entry[1]
    if type(uid) is not int or recipe.pull_all is not None:
        _pull_many(entry, grads, needed, wanted)
        return
    g = grads.get(uid) if uid in wanted else grads.pop(uid, None)
    if not isinstance(g, Tensor):
        if g is None:
            return
        g = _densified(g, recipe.op)
    for place, bit, rule in recipe.pulls:
        if needed & bit:
            part = rule(g, entry)
            if part is not None:
                target = entry[place]
                present = grads.get(target)
                grads[target] = part if present is None else present + part


def _pull_traced(
    entry: TapeEntry, grads: Gradients, needed: int, wanted: set[int], repeat: Repeat | None, stack: tuple[Any, ...]
) -> None:
    """`_pull_one` by way of an interpreter that may know what the rules write."""
    recipe, uid = entry[0], entry[1]
    g = grads.get(uid) if type(uid) is int else None
    if repeat is None or not isinstance(g, Tensor) or recipe.pull_all is not None or recipe.op.foreign:
        _pull_one(entry, grads, needed, wanted)
        return
    if uid not in wanted:
        del grads[uid]
    pulls, end = recipe.pulls, SAVED + len(recipe.names)
    if len(pulls) == 1:
        uid = entry[pulls[0][0]]
        (total,) = repeat(_sums, recipe, (g, *entry[SAVED:end], grads.get(uid)), entry, stack)
        if total is not None:
            grads[uid] = total
        return
    if len(pulls) == 2 and needed == recipe.mask and entry[pulls[0][0]] != entry[pulls[1][0]]:
        first, second = entry[pulls[0][0]], entry[pulls[1][0]]
        operands = (g, *entry[SAVED:end], grads.get(first), grads.get(second))
        left, right = repeat(_sums, recipe, operands, entry, stack)
        if left is not None:
            grads[first] = left
        if right is not None:
            grads[second] = right
        return
    targets = [entry[place] for place, bit, _ in pulls if needed & bit]
    how = (recipe, needed, tuple(map(targets.index, targets)))
    sums = repeat(_sums, how, (g, *entry[SAVED:end], *_once(grads, targets)), entry, stack)
    for uid, total in zip(targets, sums, strict=True):
        if total is not None:
            grads[uid] = total


def _once(grads: Gradients, targets: Sequence[int]) -> list[Any]:
    """The gradients that are present, those of a double with its first one only."""
    return [grads.get(uid) if targets.index(uid) == i else None for i, uid in enumerate(targets)]


def _sums(how: Any, operands: tuple[Any, ...], entry: TapeEntry) -> tuple[Any, ...]:
    """The gradients of an entry's inputs, with those that are present added; None where there are none.

    Args:
        how: the recipe, whose inputs are all pulled and distinct; or the recipe, the mask of the inputs, and for each
            its place among them, a double's first one.
        operands: the gradient of the output, what is saved, and the gradients that are present.
        entry: the entry.
    """
    recipe, needed, places = how if type(how) is tuple else (how, -1, range(len(how.pulls)))
    sums = list(operands[1 + len(recipe.names) :])
    rules = [rule for _, bit, rule in recipe.pulls if needed & bit]
    for place, rule in zip(places, rules, strict=True):
        part = rule(operands[0], entry)
        if part is not None:
            sums[place] = part if sums[place] is None else sums[place] + part
    return tuple(sums)


def _pull_many(entry: TapeEntry, grads: Gradients, needed: int, wanted: set[int]) -> None:
    """An op with several outputs, or with one rule for all its inputs."""
    recipe = entry[0]
    inputs = entry[recipe.first_input :]
    outputs = entry[1] if recipe.op.multiple else (entry[1],)
    output_grads = [grads.get(uid) if uid in wanted else grads.pop(uid, None) for uid in outputs]
    gs = tuple([g if g is None else _densified(g, recipe.op) for g in output_grads])
    if all([g is None for g in gs]):  # noqa: C419  # half the time, where there are many
        return
    g = gs if recipe.op.multiple else gs[0]
    if recipe.pull_all is not None:
        wanted_ones = tuple([bool(needed >> i & 1) for i in range(len(inputs))])
        parts = list(zip(inputs, recipe.pull_all(g, entry, wanted_ones), strict=True))
    else:
        parts = [(entry[place], rule(g, entry)) for place, bit, rule in recipe.pulls if needed & bit]
    for uid, part in parts:
        if part is not None and uid:
            _add(grads, uid, part)


def _densified(g: Any, op: Op) -> Any:
    """A gradient as a rule takes it: reading a variable hands a sparse one on, all others want a tensor."""
    return g.dense() if type(g) is SparseGradient and op is not read else g


def _add(grads: Gradients, uid: int, g: Tensor) -> None:
    present = grads.get(uid)
    grads[uid] = g if present is None else present + g


def deliver(g: Any, of: Any, unconnected: str) -> Any:
    """A source's gradient as it is handed out: on the source's device, None or zeros where there is none."""
    if g is None:
        if unconnected == "none" or not isinstance(of, (Tensor, Resource)):
            return None
        g = filled(0, of)
    if type(g) is Tensor:
        return g if g._device is of._device else g.to(of._device)
    if type(g) is SparseGradient and type(g.values) is Tensor:
        return g if g.device is of._device else g.to(of._device)
    if not devices.in_use():
        return g
    place = getattr(of, "device", None)  # what stands for a variable in a graph that is rebuilt does not know
    return g if place is None or g.device is place else g.to(place)


def uid_of(x: Any) -> int:
    """The number by which tapes know `x`; 0 where there is none."""
    uid: int = getattr(x, "_uid", 0)
    return uid


def _output_gradient(target: Any, weight: Any) -> Tensor:
    if weight is None:
        return filled(1, target)
    seed = as_tensor(weight) if hasattr(weight, "dtype") else constant(weight, target.dtype)
    if seed.dtype != target.dtype:
        raise DTypeError(f"an output gradient of dtype {seed.dtype.name} for a target of {target.dtype.name}")
    if not shapes.compatible(seed.shape, target.shape) and shapes.is_static(seed.shape):
        raise ShapeError(
            f"an output gradient of shape {shapes.show(seed.shape)} for a target of shape {shapes.show(target.shape)}"
            "; it must have the target's own shape"
        )
    return seed


def filled(value: int, like: Any) -> Tensor:
    """A tensor of `like`'s shape and dtype, where `like` is; sizes unknown while tracing included."""
    shape = like.shape
    sizes = shape if None not in shape else like.sizes()
    if like._device is CPU0:
        return _broadcast(value, sizes, like.dtype)
    with device_scopes.device(like._device):
        return _broadcast(value, sizes, like.dtype)


def zeros(sizes: Any, dtype: Any) -> Tensor:
    """Zeros of a shape as `Tensor.sizes` gives it."""
    return _broadcast(0, sizes, dtype)


def _broadcast(value: int, sizes: Any, dtype: Any) -> Tensor:
    array = np.array(value, dtype)
    scalar = constant(array) if dispatch.active else wrap(array)
    return scalar if type(sizes) is tuple and not sizes else scalar.broadcast_to(sizes)
