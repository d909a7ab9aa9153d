"""Batching rules of functions with a gradient of their own, in a graph: body and gradient for many examples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from limelight.autodiff import INEXACT
from limelight.batching import Site, rule
from limelight.batching.rule_table import repeated
from limelight.control_flow.body_batching import Flags, Many, count_of, many, note, shown, tensors_only
from limelight.control_flow.custom_gradient_op import CustomPair, custom_call, custom_forward, seed_of
from limelight.core import device_scopes, dispatch
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.staging.call_gradient import call
from limelight.staging.graph_function import GraphFunction
from limelight.staging.tracer import Tracer


class ManyPair(CustomPair):
    """The halves of such a function for many examples. Gradients of what they share are summed over them."""

    def __init__(self, pair: CustomPair, function: Many, forward: Many, mask: Flags, count: int | None) -> None:
        self.one = pair
        self.function = function.function
        self.forward = forward.function
        self.sources = pair.sources
        self.error = pair.error
        self.n_outputs = pair.n_outputs
        self.specs = pair.specs
        self.connected = pair.connected
        self._mask = mask
        self._count = count
        self._saved = tuple([(mask if where == "input" else forward.mask)[i] for where, i in pair.sources])

    def pull(self, g: Sequence[Any], residuals: Sequence[Any], sizes: Sequence[Any], count: int) -> list[Any]:
        if self.error is not None:
            raise self.error
        found = [seed_of(s, size, spec) for s, size, spec in zip(g, sizes, self.specs, strict=True)]
        results: list[Any] = [None] * count
        targets = self.one.whole[1]
        for i, value in zip(targets, self._gradients(residuals, [s for s in found if s is not None]), strict=True):
            results[i] = value
        return results

    @cached_property
    def whole(self) -> tuple[GraphFunction, tuple[int, ...]]:
        """The gradient as one function, for many of these in turn."""
        values = {"input": self.function.graph.inputs, "output": self.forward.graph.outputs}
        with dispatch.fresh_stack(), device_scopes.device(None), Tracer(f"backward_{self.function.name}") as tracer:
            tracer.scope = "gradient/"
            saved = [tracer.add_input(values[where][i].spec, f"saved{k}") for k, (where, i) in enumerate(self.sources)]
            specs: list[Any] = [value.spec for value in self.function.graph.outputs]
            seeds = [tracer.add_input(s, f"gradient{k}") for k, s in enumerate(specs) if s.dtype in INEXACT]
            return GraphFunction(tracer.finish(self._gradients(saved, seeds))), self.one.whole[1]

    def _gradients(self, residuals: Sequence[Any], seeds: Sequence[Any]) -> list[Tensor]:
        function, targets = self.one.whole
        if not targets:
            return []
        backward = many(self._count, function, (*self._saved, *[True] * len(seeds)))
        assert backward is not None, "gradients are tensors"
        values = dispatch.apply(call, (*residuals, *seeds), (backward.function,))
        size = seeds[0].sizes()[0]
        found = zip(targets, values, backward.mask, strict=True)
        return [self._of_all(i, value if differs else repeated(value, size)) for i, value, differs in found]

    def _of_all(self, i: int, g: Tensor) -> Tensor:
        return g if self._mask[i] else g.sum(0)


def _pair(site: Site, pair: CustomPair) -> ManyPair | None:
    key = ("custom", site.mask, count_of(site))
    if key not in pair.function.pairs:
        function = many(count_of(site), pair.function, site.mask, _tensors(pair.function))
        forward = many(count_of(site), pair.forward, site.mask, _tensors(pair.forward, pair.n_outputs))
        whole = None if function is None or forward is None else (function, forward)
        made = None if whole is None else ManyPair(pair, *whole, site.mask, count_of(site))
        pair.function.pairs[key] = made
    found: ManyPair | None = pair.function.pairs[key]
    return found


@rule("custom_call", "custom_forward")
def _custom(site: Site) -> Any:
    """All examples' results: the first are the function's own, further ones are for its gradient."""
    function, one, *_ = site.attrs
    pair = _pair(site, one) if tensors_only(site) else None
    if pair is None:
        return NotImplemented
    found = many(count_of(site), function, site.mask, _tensors(function, pair.n_outputs))
    if found is None:
        return NotImplemented
    note(site, found)
    if site.op == "custom_call":
        results = dispatch.apply(custom_call, site.inputs, (pair.function, pair))
    else:
        results = dispatch.apply(custom_forward, site.inputs, (found.function, pair, None))
    return shown(results, found.mask)


def _tensors(function: Any, n: int | None = None) -> Flags:
    """The first `n` outputs, but for opaque ones: what is kept besides may be the same for all examples."""
    return tuple([isinstance(value.spec, TensorSpec) for value in function.graph.outputs[:n]])
