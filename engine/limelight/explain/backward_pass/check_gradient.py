"""Is the gradient of a call right? Held against central differences, source by source.

The traced graph is run in 64 bits, whatever the dtypes of the call, so that differences are exact to about ten digits
of the results, and on copies of variables and generators, so that each run draws the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final

import numpy as np

from limelight import events
from limelight.core import dtypes
from limelight.explain.backward_pass.both_passes import BothPasses, Source, both_passes
from limelight.explain.backward_pass.differences import Differences
from limelight.explain.norms import widened
from limelight.explain.story import Contrast, Story

_STEP: Final = 1e-4
_COARSE_STEP: Final = 1e-2  # where the call computes in 32 bits whatever it is given


@dataclass(frozen=True)
class CheckedSource:
    """How far the gradient for one source is off.

    `error` is the largest relative error of `compared` numbers of the source's `elements` (of small ones relative to a
    thousandth of the largest of them, and to what differences can tell from zero at all), found at index `place`, where
    the gradient is `found` and differences give `expected`. `kinks` numbers were left out: the function is not smooth
    there; and `nonfinite` ones, near which a result is NaN or infinite, and has no differences. `connected`: whether it
    has a gradient; else all slopes should be zero.

    >>> import limelight as ll
    >>> report = ll.explain.check_gradient(lambda x: ll.sum(x * x), ll.constant([1.0, 2.0]))
    >>> report.records[0].name, report.records[0].compared
    ('x', 2)
    """

    name: str
    spec: str
    compared: int
    error: float
    place: tuple[int, ...] = ()
    found: float = 0.0
    expected: float = 0.0
    kinks: int = 0
    connected: bool = True
    nonfinite: int = 0
    elements: int = 0

    def __str__(self) -> str:
        left = f", {self.kinks} left out at kinks" if self.kinks else ""
        left += f", {self.nonfinite} left out: the results are not finite" if self.nonfinite else ""
        none = "" if self.connected else "; it has no gradient (None)"
        if not self.compared:
            return f"`{self.name}` {self.spec}: nothing compared{left}{none}"
        picked = self.compared + self.kinks + self.nonfinite < self.elements
        of = f" of {self.elements}" if picked else ""
        many = f"{self.compared}{of} {'number' if self.compared == 1 and not picked else 'numbers'}"
        return f"`{self.name}` {self.spec}: max relative error {self.error:.1e} in {many}{left}{none}"

    @property
    def at(self) -> str:
        """Where it is worst, in words."""
        index = f"[{', '.join(map(str, self.place))}]" if self.place else ""
        return f"{self.name}{index}: the gradient is {self.found:.6g}, differences give {self.expected:.6g}"


@dataclass(frozen=True)
class GradientErrors:
    """A record for each source; `ok` where none is off by more than `tolerance`, and all results are finite.

    `str()` has a line for each.

    >>> import limelight as ll
    >>> report = ll.explain.check_gradient(lambda x: ll.sum(x * x), ll.constant([1.0, 2.0]))
    >>> report.ok, report.tolerance
    (True, 0.0001)
    """

    name: str
    records: tuple[CheckedSource, ...]
    tolerance: float

    @property
    def ok(self) -> bool:
        return not self._wrong and not any(record.nonfinite for record in self.records)

    @property
    def _wrong(self) -> list[CheckedSource]:
        return [record for record in self.records if record.error > self.tolerance]

    def _verdict(self, wrong: str) -> str:
        if self._wrong:
            return wrong
        return "agrees with central differences" if self.ok else "is not known to be right, as results are not finite"

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        wrong, said = self._wrong, self._verdict("is wrong")
        return Story(
            "gradient check",
            f"the gradient of `{self.name}` {said}",
            tuple([record.name for record in wrong]),
            contrasts=tuple([Contrast(r.name, f"{r.expected:.6g}", f"{r.found:.6g}") for r in wrong]),
            hints=tuple([f"worst at {record.at}" for record in wrong]),
            more=tuple(map(str, self.records)),
        )

    def __str__(self) -> str:
        lines = [f"the gradient of `{self.name}` {self._verdict('differs from central differences')}:"]
        for record in self.records:
            wrong = record.error > self.tolerance
            lines += [f"  {record}", *([f"    wrong, worst at {record.at}"] if wrong else [])]
        return "\n".join(lines)

    __repr__ = __str__


def check_gradient(
    F: Callable[..., Any],
    *args: Any,
    gradient_of: Any = True,
    tolerance: float = 1e-4,
    limit: int = 20,
    **kwargs: Any,
) -> GradientErrors:
    """Compares the gradient of the sum of all results of `F(*args, **kwargs)` with central differences.

    Nothing that the call would change is changed. Complex sources are left out. `ll.gradcheck` is for rules: it checks
    forward mode and the second order, too.

    Args:
        F: a staged function, or one that can be staged.
        *args: its arguments.
        gradient_of: True (all arguments and trainable variables), or parameter names, tensors or variables.
        tolerance: the relative error up to which a gradient is right; 1e-4.
        limit: of a source with more elements so many are picked, the same ones every time; 20.
        **kwargs: its arguments by name.

    Returns:
        A report with the largest relative error for each source.

    Raises:
        ArgumentError: `F` is not callable, `gradient_of` is unknown, or there is nothing to differentiate.

    >>> import limelight as ll
    >>> report = ll.explain.check_gradient(lambda x: ll.sum(ll.tanh(x)), ll.constant([0.5, 2.0]))
    >>> report.ok, report.records[0].compared
    (True, 2)
    """
    passes = both_passes("check_gradient", F, gradient_of, args, kwargs)
    sources = [one for one in passes.sources if dtypes.kind(passes.inputs[one.place].dtype) != "complex"]
    base = {one.place: _array(passes, one.place) for one in sources}
    base |= dict.fromkeys(range(len(passes.inputs) - passes.seeds, len(passes.inputs)), np.ones(()))
    outputs = passes.outputs(base)
    floats = [i for i in passes.summed if np.asarray(outputs[i]).dtype.kind == "f"]
    eps = max([float(np.finfo(np.asarray(outputs[i]).dtype).eps) for i in floats], default=0.0)
    fine = eps <= np.finfo(np.float64).eps
    size = float(np.nan_to_num(sum(np.abs(widened(outputs[i])).sum() for i in floats), posinf=0.0))
    step, tolerance = (_STEP, tolerance) if fine else (_COARSE_STEP, max(tolerance, 2e-2))
    check = _Check(passes, passes.forward(), base, floats, step, tolerance, eps, size)
    picked = [_picked(base[one.place].shape, limit) for one in sources]
    before = [0, *accumulate(map(len, picked))]
    records = [
        check.source(one, outputs, places, range(start, before[-1]))
        for one, places, start in zip(sources, picked, before, strict=False)
    ]
    return GradientErrors(passes.name, tuple(records), check.tolerance)


def _array(passes: BothPasses, place: int) -> Any:
    data = passes.inputs[place]._data
    return widened(getattr(data, "array", data))


@dataclass(frozen=True)
class _Check:
    passes: BothPasses
    forward: BothPasses
    base: dict[int, Any]
    floats: list[int]
    step: float
    tolerance: float
    eps: float
    size: float

    def source(
        self, source: Source, outputs: tuple[Any, ...], places: list[tuple[int, ...]], left: range
    ) -> CheckedSource:
        """The record of a source, of which these places are looked at; `left` counts all that were to be compared."""
        array = self.base[source.place]
        gradient = np.zeros_like(array) if source.gradient is None else widened(outputs[source.gradient])
        x = self.passes.inputs[source.place]
        spec = str(getattr(x.spec, "value", None) or x.spec)
        name, connected = self.passes.input_name(source.place), source.gradient is not None
        record = CheckedSource(name, spec, 0, 0.0, connected=connected, elements=array.size)
        least = 1e-3 * float(np.abs(gradient[np.isfinite(gradient)]).max(initial=0.0)) or 1e-12
        for done, place in zip(left, places, strict=False):
            record = self.element(record, source.place, place, float(gradient[place]), least)
            if events.wanted(events.GradientCompared):
                events.emit(events.GradientCompared(self.passes.name, name, done + 1, left.stop))
        return record

    def element(
        self, record: CheckedSource, source: int, place: tuple[int, ...], found: float, least: float
    ) -> CheckedSource:
        scale = max(1.0, abs(float(self.base[source][place])))
        value = partial(self.value, source, place)
        finding = Differences(value, scale, self.step, self.eps, self.size).judge(found, least, self.tolerance)
        if finding.verdict == "nonfinite":
            return replace(record, nonfinite=record.nonfinite + 1)
        if finding.verdict == "kink":
            return replace(record, kinks=record.kinks + 1)
        error = finding.error
        record = replace(record, compared=record.compared + 1)
        if error < record.error or (error == record.error and record.compared > 1):
            return record
        return replace(record, error=error, place=place, found=found, expected=finding.expected)

    def value(self, source: int, place: tuple[int, ...], by: float) -> float:
        array = self.base[source].copy()
        array[place] += by
        outputs = self.forward.outputs({**self.base, source: array})
        return float(sum(np.asarray(outputs[i], np.float64).sum() for i in self.floats))


def _picked(shape: tuple[int, ...], limit: int) -> list[tuple[int, ...]]:
    places = int(np.prod(shape, dtype=np.int64))
    chosen = range(places) if places <= limit else np.random.default_rng(0).choice(places, limit, replace=False)
    return [tuple(map(int, np.unravel_index(int(i), shape))) if shape else () for i in chosen]
