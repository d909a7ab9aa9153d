"""`%%stage --grad`: the gradients of a cell's result, and the graph that computes them.

The result is differentiated by all floating inputs and by all trainable variables that the cell reads, or by those of
some names, in the run itself, under a tape: so nothing runs twice. The graph that is shown is traced on the side and
never run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from limelight import explain
from limelight.autodiff import GradientTape
from limelight.core import dtypes, nest
from limelight.core.tensor import Tensor, as_tensor, constant
from limelight.core.variable import Variable
from limelight.staging.function import Function
from limelight.staging.key_parts import VariablePart
from limelight_kernel.inputs.portraits import becomes_tensor
from limelight_kernel.inputs.variable_names import name_variables
from limelight_kernel.line.arguments import did_you_mean
from limelight_kernel.report.listing import wrapped
from limelight_kernel.staged.execution import Run
from limelight_kernel.staged.staged_cell import StagedCell
from limelight_widgets.figures.static_forms import Table, text_table


@dataclass(frozen=True)
class Gradient:
    """The gradient of a cell's result for one of its inputs; where it is None, `why` says so."""

    name: str
    value: Any = field(repr=False)
    why: str = ""

    @property
    def is_finite(self) -> bool:
        """Whether all its numbers are; None has no number that is not."""
        return self.value is None or bool(np.isfinite(as_tensor(self.value).numpy().astype("complex128")).all())

    @property
    def row(self) -> tuple[str, str, str]:
        """Name, type, and what it amounts to."""
        if self.value is None:
            return self.name, "None", self.why.partition("\n")[0]
        array = as_tensor(self.value).numpy()
        wide = array.astype("complex128" if array.dtype.kind == "c" else "float64", copy=False)
        size = f"{wide.item():.6g}" if wide.size == 1 else f"norm {np.linalg.norm(wide):.4g}"
        if wide.size > 1 and not self.is_finite:
            size = f"{int(wide.size - np.isfinite(wide).sum()):,} of {wide.size:,} not finite"
        return self.name, str(as_tensor(self.value).spec), size


@dataclass(frozen=True)
class Gradients:
    """The gradients of a cell's result, and the function whose graph computes them: forward, then backward.

    `sentence` says what was differentiated, or why nothing was; then there is no `function`. `name` is the cell's.
    """

    sentence: str
    found: tuple[Gradient, ...] = ()
    function: Any = field(default=None, repr=False)
    name: str = ""

    def table(self) -> Table:
        return Table(("input", "gradient", "value"), [one.row for one in self.found])

    def text(self) -> str:
        """The table as text, with the reasons of those that are None."""
        if not self.found:
            return wrapped(self.sentence)
        reasons = [wrapped(one.why) for one in self.found if one.value is None]
        more = [wrapped(self.hunt)] if self.hunt else []
        return "\n\n".join([self.sentence, text_table(self.table()), *reasons, *more])

    @property
    def hunt(self) -> str:
        """How to find out where numbers that are not finite come from, where there are such."""
        if all(one.is_finite for one in self.found):
            return ""
        name = (
            f"%explain --grad --nan {self.name}()"
            if self.name
            else "%%stage NAME, and then %explain --grad --nan NAME()"
        )
        return f"Not all are finite; to see which op makes such numbers, and what to write: {name}"

    def to_dict(self) -> dict[str, Any]:
        said = {"sentence": self.sentence, "gradients": [list(one.row) for one in self.found]}
        return {**said, "hunt": self.hunt}


class GradientFunction(Function):
    """A function of a staged cell's inputs that returns gradients; its graph calls the cell's, forward and backward.

    It closes over variables that the cell does, since it is for these very ones.

    Args:
        entry: the cell's trace.
        position: which of its outputs is differentiated.
        names: of the gradients, those that are not None.
        given: all the inputs, by name.
        wanted: of each floating input, then of each variable, whether it is differentiated by.
    """

    def __init__(
        self,
        entry: Any,
        position: int,
        names: tuple[str, ...],
        given: Mapping[str, Any],
        wanted: Sequence[bool],
    ) -> None:
        parts = [part for part in entry.key.parts if part.is_input]
        very = [isinstance(part, VariablePart) and part.identity is not None for part in parts]
        closed = {name: x for (name, x), one in zip(given.items(), very, strict=True) if one}

        def gradient(**inputs: Any) -> list[Any]:
            sources = [x for x in inputs.values() if isinstance(x, Tensor) and _differentiable(x)]
            with GradientTape() as tape:
                tape.watch(sources)
                result = entry(*({**given, **inputs, **closed}.values()))[position]
            chosen = compress([*sources, *tape.watched_variables()], wanted)
            return [g for g in tape.gradient(result, list(chosen)) if g is not None]

        self._names = names
        super().__init__(gradient, name=f"gradient_of_{entry.name}")
        self.get_concrete_function(**{name: x for name, x in given.items() if name not in closed})

    def output_names(self, _entry: Any) -> list[str]:
        """What a graph view writes on the outputs."""
        return list(self._names)


class Recording:
    """One run of a staged cell under a tape; `wrt` are the names by which is differentiated, none for all."""

    def __init__(self, staged: StagedCell, wrt: Sequence[str] = ()) -> None:
        self._staged = staged
        self._wrt = wrt
        self._tape = GradientTape(persistent=True)
        self.values = values = staged.inputs()
        self.overrides = {name: _as_tensors(value) for name, value in values.items() if _has_array(value)}
        self._sources = dict(_sources({**values, **self.overrides}))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it, the cell is run, with `overrides` for inputs that are arrays."""
        with self._tape:
            self._tape.watch(list(self._sources.values()))
            yield

    def finish(self, done: Run, scope: Mapping[str, Any]) -> Gradients:
        """The gradients; `scope` has the names that reasons use."""
        assert done.made is not None, "it ran"
        result = done.made.result
        if not isinstance(result, Tensor) or not _differentiable(result):
            return Gradients(
                f"No gradient: {_said(result)}, and a gradient is that of a floating tensor. "
                "End the cell with the loss, as an expression by itself."
            )
        space = {**self.values, **done.made.assigned}
        variables = name_variables(self._tape.watched_variables(), space, self._sources)
        known: dict[str, Any] = {**self._sources, **variables}
        wanted = [not self._wrt or any(_leads_to(name, one) for name in self._wrt) for one in known]
        sources = dict(compress(known.items(), wanted))
        values = self._tape.gradient(result, list(sources.values()))
        gradients = tuple(
            Gradient(name, value, "" if value is not None else self._why(result, source, name, scope))
            for (name, source), value in zip(sources.items(), values, strict=True)
        )
        gradients += tuple([_nowhere(name) for name in self._wrt if not any(_leads_to(name, one) for one in known)])
        what = f"the result {result.spec}" if result.ndim == 0 else f"the sum of the result {result.spec}"
        name = self._staged.options.name or ""
        return Gradients(f"Gradients of {what}:", gradients, self._function(done.entry, gradients, wanted), name)

    def _why(self, result: Tensor, source: Any, name: str, scope: Mapping[str, Any]) -> str:
        return str(explain.why_none(self._tape, result, source, scope={**scope, "result": result, name: source}))

    def _function(self, entry: Any, gradients: tuple[Gradient, ...], wanted: Sequence[bool]) -> GradientFunction | None:
        outputs = self._staged.output_names(entry)
        if "result" not in outputs or not any(wanted):
            return None
        names = tuple(f"gradient of {one.name}" for one in gradients if one.value is not None)
        inputs = self._staged.tensors(self.overrides)
        by_name = dict(zip(entry.graph.input_names[: len(inputs)], inputs, strict=True))
        return GradientFunction(entry, outputs.index("result"), names, by_name, wanted)


def check_sources(staged: StagedCell, wrt: Sequence[str]) -> None:
    """Raises UsageError for a name to differentiate by of which the cell reads nothing."""
    reads = staged.reads
    for name in wrt:
        first = re.split(r"[.\[/]", name)[0]
        if first not in reads:
            known = did_you_mean(first, reads) or f"; it reads {', '.join(sorted(reads)) or 'nothing'}"
            raise UsageError(f"%%stage -g: the cell reads no {first!r}{known}; NAME goes first")


def _leads_to(name: str, path: str) -> bool:
    """Whether `path`, of a tensor or a variable, is `name` or within it.

    >>> _leads_to("net", "net.layers/0/kernel"), _leads_to("w", "w"), _leads_to("w", "weights[0]")
    (True, True, False)
    """
    name = name.replace("'", '"')  # as paths write keys
    return path == name or path.startswith((f"{name}.", f"{name}[", f"{name}/", f"{name} ("))


def _nowhere(name: str) -> Gradient:
    said = (
        f"`{name}` has no gradient: it is, or holds, no floating tensor and no trainable variable that the cell read."
    )
    return Gradient(name, None, said)


def _said(result: object) -> str:
    if result is None:
        return "the cell has no result"
    if isinstance(result, Tensor):
        return f"the cell's result is {result.spec}"
    kind = type(result).__name__
    return f"the cell's result is {'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _differentiable(x: Tensor | Variable) -> bool:
    return dtypes.is_floating(x.dtype) or dtypes.kind(x.dtype) == "complex"


def _has_array(value: object) -> bool:
    return any(map(_is_array, nest.leaves_of(value)))


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, np.ndarray) and becomes_tensor(leaf)


def _as_tensors(value: object) -> object:
    return nest.map_structure(lambda leaf: constant(leaf) if _is_array(leaf) else leaf, value)


def _sources(values: Mapping[str, object]) -> Iterator[tuple[str, Tensor]]:
    """The floating tensors among the inputs, each with its path."""
    for name, value in values.items():
        leaves, structure = nest.flatten(value)
        for path, leaf in zip(nest.paths(structure, name), leaves, strict=True):
            if isinstance(leaf, Tensor) and _differentiable(leaf):
                yield path, leaf
