"""Batching of graph functions: the graph for all examples of a batch at once.

The graph is traced once more under a batcher, for a pattern of inputs that differ between examples, and kept with the
function. The batching rules of `call`, of branches and of loops are made of such versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from limelight.batching import Batcher, Shared, Site
from limelight.batching.batched_tensor import batched
from limelight.batching.rule_table import repeated
from limelight.core import device_scopes, dispatch
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.graph.ir import Graph
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

Flags = tuple[bool, ...]
MOST: Final = 32
"""Versions of a graph for many examples that are kept: each number of examples has one, or more."""


class Many(NamedTuple):
    """A graph function for many examples, which of its outputs differ between them, and which ops it has in loops.

    One that is `guarded` has another input: which examples want its results.
    """

    function: GraphFunction
    mask: Flags
    looped: dict[str, int]
    guarded: bool = False


def many(count: int | None, function: Any, mask: Flags, forced: Flags = ()) -> Many | None:
    """`function` for inputs of which those in `mask` have the examples first, built once; None if it cannot be had.

    `count`: how many there are, None where only the run tells. Outputs that are `forced` have them in any case.
    """
    if not any(mask) and not any(forced):
        return Many(function, (False,) * len(function.graph.outputs), {})

    def make() -> Many | None:
        made = trace_batched(function.graph, mask, count, forced, lambda inputs: replay(function.graph, inputs))
        if made is not None:
            made.function.blanks = function.blanks
        return made

    found: Many | None = kept(function.pairs, ("many", mask, count, forced), make)
    return found


def kept(pairs: dict[Any, Any], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make` makes, kept under `key`; of the kind that `key` begins with only the last few are."""
    if key in pairs:
        with suppress(KeyError):  # another thread may just have let it go
            return pairs[key]
    made = pairs[key] = make()
    alike = [other for other in tuple(pairs) if type(other) is tuple and other[:1] == key[:1]]
    for other in alike[:-MOST]:
        pairs.pop(other, None)
    return made


def count_of(site: Site) -> int | None:
    return site.size if isinstance(site.size, int) else None


def note(site: Site, *functions: Many) -> None:
    """Tells of the ops that these functions run example by example."""
    for function in functions:
        for name, times in function.looped.items():
            site.batcher.looped[name] = site.batcher.looped.get(name, 0) + times


def trace_batched(
    like: Graph,
    mask: Flags,
    count: int | None,
    forced: Flags,
    body: Callable[[list[Any]], list[Any]],
) -> Many | None:
    """`body` for many examples, with inputs as `like` has them."""
    name, specs = like.name, [value.spec for value in like.inputs]
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"many_{name}") as tracer:
        inputs = [tracer.add_input(_wider(s, count) if m else s) for s, m in zip(specs, mask, strict=True)]
        if count is not None:
            size: Any = count
        else:
            size = next(x for x, m in zip(inputs, mask, strict=True) if m).sizes()[0]
        with Batcher(size, f"vectorize({name})") as batcher:
            outputs = body([batched(x, batcher) if m else x for x, m in zip(inputs, mask, strict=True)])
        if any(batcher.owns(y) and not isinstance(y, Tensor) for y in outputs):
            return None  # opaque values for each example are no value of a graph
        differing = tuple([batcher.owns(y) or (i < len(forced) and forced[i]) for i, y in enumerate(outputs)])
        values = [_value(y, d, batcher, size) for y, d in zip(outputs, differing, strict=True)]
        return Many(GraphFunction(tracer.finish(values)), differing, batcher.looped)


def _value(y: Any, differs: bool, batcher: Batcher, size: Any) -> Any:
    return batcher.inside(y) if batcher.owns(y) else repeated(y, size) if differs else y


def _wider(spec: Spec, count: int | None) -> Spec:
    assert isinstance(spec, TensorSpec)
    return known((count, *spec.shape), spec.dtype)


def shown(results: Sequence[Any], mask: Flags) -> tuple[Any, ...]:
    return tuple([y if m else Shared(y) for y, m in zip(results, mask, strict=True)])


def pure(*functions: Any) -> bool:
    """Whether they may run where only some examples ask for it."""
    return not any(f.effects.writes or f.effects.chains for f in functions)


def tensors_only(site: Site) -> bool:
    return all(isinstance(x, Tensor) for x, m in zip(site.inputs, site.mask, strict=True) if m)
