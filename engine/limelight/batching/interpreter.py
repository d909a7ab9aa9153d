"""The interpreter that carries the hidden axis of examples through ops.

Rules run under the interpreters below it, on ordinary ops, so what they compute is recorded, traced and differentiated
like anything else. A gradient rule that the user wrote for one example may run when the call is over, eagerly: then the
batcher is `resumed` for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from limelight.batching.batched_tensor import HANDLES, Batched, BatchedObject, Ragged, batched, ragged
from limelight.batching.rule_table import Shared, Site, loop, rule_for, stacked_examples
from limelight.core import dispatch
from limelight.core.op import Op
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, LimelightError


class Batcher(dispatch.BlockInterpreter):
    """Runs each op of its block for `size` examples at once, where an operand is different for each.

    `looped` counts the ops that had no rule and were run example by example, by name.
    """

    makes_handles = True

    def __init__(self, size: Any, name: str = "vectorize", origin: Batcher | None = None) -> None:
        self.size = size
        self.name = name
        self._origin = origin
        self.finished = False
        self.looped: dict[str, int] = {} if origin is None else origin.looped

    @property
    def origin(self) -> Batcher:
        """Whom its tensors belong to: itself, or the one whose call it goes on with."""
        return self._origin or self

    def __exit__(self, *exc: Any) -> None:
        try:
            self.finished = True
        finally:
            super().__exit__(*exc)

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        mask = tuple([type(x) in HANDLES and x._batcher is self.origin for x in inputs])
        if True not in mask and op.effect != "random":
            return self.below.process(op, inputs, attrs)
        if op.effect == "write" and not mask[0]:  # one variable; a generator may be each example's own
            raise ArgumentError(
                f"vectorize: {op} of a value that is different for each example: a variable holds one value for all of "
                "them; return the value and assign after the call"
            )
        values = tuple([self.inside(x) if m else x for x, m in zip(inputs, mask, strict=True)])
        with dispatch.stack_below(self):
            result = self._result(Site(op, values, mask, attrs, self.size, self))
        return tuple([self.handle(x, op.name) for x in result]) if op.multiple else self.handle(result, op.name)

    def _result(self, site: Site) -> Any:
        rule = rule_for(site.op)
        if site.op.axis_at is not None:  # an axis that an example lacks may be one of all examples
            site.op.infer(*site.specs(), *site.attrs)
        if rule is not None and list not in map(type, site.inputs):
            try:
                result = rule(site)
            except LimelightError:
                site.op.infer(*site.specs(), *site.attrs)  # its own words, for one example, are better
                raise
            if result is not NotImplemented:
                return result
        self.looped[site.op.name] = self.looped.get(site.op.name, 0) + 1
        return loop(site)

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Runs its block as part of the call, which may have ended: what was written in it goes back through it."""
        origin = self.origin
        ended, origin.finished = origin.finished, False
        try:
            with Batcher(self.size, self.name, origin):
                yield
        finally:
            origin.finished = ended

    def inside(self, x: Any) -> Any:
        """What a handle of this batcher stands for: a tensor, or a list of opaque values or of tensors unlike."""
        return x._value if type(x) is Batched else x.values

    def handle(self, result: Any, op: str) -> Any:
        """The handle for one example of a result of `op`."""
        if isinstance(result, Shared):
            return result.value
        if not isinstance(result, list):
            return batched(result, self.origin)
        unlike = result and isinstance(result[0], Tensor)
        return ragged(result, op, self.origin) if unlike else BatchedObject(result, self.origin)

    def owns(self, x: Any) -> bool:
        return type(x) in HANDLES and x._batcher is self.origin

    def value_of(self, x: Tensor) -> Tensor | None:
        """All examples of `x`; None where it is the same for all. Raises ShapeError where their shapes differ."""
        if not isinstance(x, Batched) or x._batcher is not self.origin:
            return None
        return stacked_examples(x.op, x.values) if isinstance(x, Ragged) else x._value

    def __repr__(self) -> str:
        return f"{self.name} over {self.size if isinstance(self.size, int) else 'some'} examples"
