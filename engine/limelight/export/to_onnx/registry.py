"""The table of lowerings: for each op of limelight, how it is written in ops of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from limelight.core.spec import Spec
from limelight.export.to_onnx.builder import Builder
from limelight.graph.ir import Node


@dataclass(frozen=True)
class Site:
    """Where an op is lowered: the builder, the node, and what lowers the graphs inside of it."""

    builder: Builder
    node: Node
    specs: tuple[Spec, ...]
    inline: Callable[..., Any]

    @property
    def out(self) -> Any:
        """The spec of the only result."""
        return self.specs[0]


class Refused(Exception):  # noqa: N818  # it never leaves the package: the user sees an ExportError
    """An op, or a use of one, that ONNX cannot hold; the message says why."""


Lowering = Callable[..., Any]
LOWERINGS: Final[dict[str, Lowering]] = {}
COMPLEX_LOWERINGS: Final[dict[str, Lowering]] = {}
"""How ops are written whose operands or results are complex."""
REFUSED: Final[dict[str, str]] = {}
"""Ops that are never exported, and why."""
COMPLEX: Final = "onnxruntime has no kernels for complex numbers, and it is not written in real ones"
SAME: Final[dict[str, str]] = {}
"""Ops that are one op of ONNX, as long as onnxruntime has a kernel for the dtype."""


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Enters `rule(site, *inputs, *params)`, which returns the result, or a sequence of results, for ops by name."""

    def enter(rule: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[name] = rule
        return rule

    return enter


def lowers_complex(*names: str) -> Callable[[Lowering], Lowering]:
    """The same for complex operands and results, which are `Complex`."""

    def enter(rule: Lowering) -> Lowering:
        for name in names:
            COMPLEX_LOWERINGS[name] = rule
        return rule

    return enter


def lowers_to(**ops: str) -> None:
    """Enters ops that are one op of ONNX with the same operands."""
    for name, op in ops.items():
        SAME[name] = op
        LOWERINGS[name] = _same(op)


def _same(op: str) -> Lowering:
    def rule(site: Site, x: Any, *rest: Any) -> Any:
        return site.builder.binary(op, x, rest[0]) if rest else site.builder.unary(op, x)

    return rule


def refuses(why: str, *names: str) -> None:
    """Enters ops that are refused."""
    REFUSED.update(dict.fromkeys(names, why))
