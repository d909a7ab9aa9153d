"""Batching of graph functions: the graph of one example becomes a graph of all examples of a batch.

The graph is traced once more under a `Batcher`, once for each pattern of batched inputs and batch size, and the version
is kept with the function. The batching rules of `call`, of branches and of loops are made of such versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from limelight.batching import Batcher, Shared, Site
from limelight.batching.batched_tensor import Batched, batched
from limelight.batching.rule_table import repeated
from limelight.core import device_scopes, dispatch
from limelight.core.spec import Spec, TensorSpec, known
from limelight.core.tensor import Tensor
from limelight.executors import base as executors
from limelight.graph.ir import Graph
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer, replay

Flags = tuple[bool, ...]
"""One flag for each input, or output, of a function."""
MAX_VERSIONS: Final = 32
"""How many batched versions of a function are kept: each batch size has one or more."""


class BatchedFunction(NamedTuple):
    """A graph function of all examples of a batch."""

    function: GraphFunction
    mask: Flags  # the outputs that have the batch axis, which is the first; the others are the same for all examples
    looped: dict[str, int]  # by name, how many ops it runs example by example
    masked: bool = False  # whether its last input says which examples want its results (see `masked_loops`)


def batched_function(count: int | None, function: Any, mask: Flags, forced: Flags = ()) -> BatchedFunction | None:
    """The batched version of `function`, built once; None where an output is opaque and differs between examples.

    Args:
        count: the batch size, None where only the run tells.
        function: a graph function of one example.
        mask: the inputs that have the batch axis.
        forced: outputs that get the batch axis in any case, as the next iteration of a loop may need.
    """
    if not any(mask) and not any(forced):
        return BatchedFunction(function, (False,) * len(function.graph.outputs), {})

    def make() -> BatchedFunction | None:
        with executors.chosen.override(function.executor):
            result = trace_batched(function.graph, mask, count, forced, lambda inputs: replay(function.graph, inputs))
        if result is not None:
            result.function.blanks = function.blanks
        return result

    version: BatchedFunction | None = cached_version(function.pairs, ("many", mask, count, forced), make)
    return version


def cached_version(pairs: dict[Any, Any], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make` returns, kept in `pairs` under `key`. Of keys that begin alike, the last `MAX_VERSIONS` are kept."""
    if key in pairs:
        with suppress(KeyError):  # another thread may just have dropped it
            return pairs[key]
    version = pairs[key] = make()
    alike = [other for other in tuple(pairs) if type(other) is tuple and other[:1] == key[:1]]
    for other in alike[:-MAX_VERSIONS]:
        pairs.pop(other, None)
    return version


def batch_size(site: Site) -> int | None:
    """The number of examples; None where only the run tells."""
    return site.size if isinstance(site.size, int) else None


def note_looped_ops(site: Site, *functions: BatchedFunction) -> None:
    """Adds the ops that these functions run example by example to those that the batcher reports."""
    for function in functions:
        for name, times in function.looped.items():
            site.batcher.looped[name] = site.batcher.looped.get(name, 0) + times


def trace_batched(
    like: Graph,
    mask: Flags,
    count: int | None,
    forced: Flags,
    body: Callable[[list[Any]], list[Any]],
) -> BatchedFunction | None:
    """The batched version of `body`, None where an output is opaque and differs between examples.

    Args:
        like: the graph that has the name and the inputs of one example.
        mask: the inputs that have the batch axis.
        count: the batch size, None where only the run tells.
        forced: outputs that get the batch axis in any case.
        body: computes the outputs of one example from its inputs.
    """
    name, specs = like.name, [value.spec for value in like.inputs]
    with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"many_{name}") as tracer:
        inputs = [tracer.add_input(_with_batch_axis(s, count) if m else s) for s, m in zip(specs, mask, strict=True)]
        if count is not None:
            size: Any = count
        else:
            size = next(x for x, m in zip(inputs, mask, strict=True) if m).sizes()[0]
        with Batcher(size, f"vectorize({name})") as batcher:
            outputs = body([batched(x, batcher) if m else x for x, m in zip(inputs, mask, strict=True)])
        if any(batcher.owns(y) and type(y) is not Batched for y in outputs):
            return None  # a list of opaque values, or of tensors of unlike shapes, is no value of a graph
        batched_outputs = tuple([batcher.owns(y) or (i < len(forced) and forced[i]) for i, y in enumerate(outputs)])
        values = [_batched_output(y, d, batcher, size) for y, d in zip(outputs, batched_outputs, strict=True)]
        return BatchedFunction(GraphFunction(tracer.finish(values)), batched_outputs, batcher.looped)


def _batched_output(y: Any, differs: bool, batcher: Batcher, size: Any) -> Any:
    return batcher.inside(y) if batcher.owns(y) else repeated(y, size) if differs else y


def _with_batch_axis(spec: Spec, count: int | None) -> Spec:
    assert isinstance(spec, TensorSpec)
    return known((count, *spec.shape), spec.dtype)


def with_shared(results: Sequence[Any], mask: Flags) -> tuple[Any, ...]:
    """What a batching rule returns: `results`, those outside of `mask` marked as the same for all examples."""
    return tuple([y if m else Shared(y) for y, m in zip(results, mask, strict=True)])


def pure(*functions: Any) -> bool:
    """Whether none has an effect, so that they may also run for examples that did not choose them."""
    return not any(f.effects.writes or f.effects.chains for f in functions)


def tensors_only(site: Site) -> bool:
    """Whether all batched inputs are tensors: opaque values, and unlike shapes, have no batch axis in a graph."""
    return all(isinstance(x, Tensor) for x, m in zip(site.inputs, site.mask, strict=True) if m)
