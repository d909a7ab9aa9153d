"""The exercises of the lessons, by lesson and number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

import limelight as ll
from limelight.errors import ArgumentError
from limelight_kernel.exercises.exercise import Exercise, Verdict

_HALVES: Final = 0.6931472
"""The entropy of two halves."""


def _is(right: Any, why: str, wrong: Mapping[Any, str], else_: str) -> Callable[[Any], Verdict]:
    """A judge that knows the answer, and what leads to some others."""

    def judge(answer: Any) -> Verdict:
        given = tuple(answer) if isinstance(answer, (list, tuple)) else answer
        if given == right:
            return Verdict(True, why)
        return Verdict(False, wrong.get(given, else_))

    return judge


def _one_trace(answer: Any) -> Verdict:
    """Two exponents that one trace of `power` serves."""
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        return Verdict(False, "two exponents are asked for, the ones of the two calls: %check 2.2 FIRST, SECOND")
    power = ll.function(lambda t, exponent: (t**exponent).mean())
    x = ll.constant([1.0, 2.0])
    numbers = [float(power(x, exponent).item()) for exponent in answer]
    if power.trace_count == 1 and not np.allclose(numbers, [2.5, 4.5]):
        return Verdict(False, "one trace serves both, but they are not the exponents 2.0 and 3.0")
    if power.trace_count == 1:
        return Verdict(True, "tensors are keyed by type: one graph takes the exponent as an input.")
    if any(isinstance(one, (int, float)) for one in answer):
        return Verdict(False, "a plain Python number is part of the key by its value, and baked into the graph: each "
                              "new one is a new trace.")  # fmt: skip
    return Verdict(False, "both are tensors, but of different types: a trace serves one dtype and one shape.")


def _mended(answer: Any) -> Verdict:
    """An entropy whose value and gradient are finite at zero."""
    if not callable(answer):
        return Verdict(False, "give the function: %check 2.3 entropy")
    halves, zero = ll.constant([0.5, 0.5]), ll.constant([0.5, 0.5, 0.0])
    if not np.isclose(float(answer(halves).item()), _HALVES, rtol=1e-3):
        return Verdict(False, "it is another function now: the entropy of [0.5, 0.5] is 0.693.")
    value = float(answer(zero).item())
    if not np.isclose(value, _HALVES, rtol=1e-3):
        said = f"at zero it is {value:.3g}, and should be 0.693"
        return Verdict(False, f"{said}: zero times the logarithm of zero is NaN, not 0.")
    with ll.GradientTape() as tape:
        tape.watch(zero)
        y = answer(zero)
    gradient = tape.gradient(y, zero)
    if gradient is None or not np.isfinite(gradient.numpy()).all():
        chosen = (
            "the value is finite and the gradient is not: a `where` around the result chooses forwards, but backwards"
        )
        return Verdict(False, f"{chosen} the branch not taken is still differentiated, and 0 times infinity is NaN.")
    return Verdict(True, "the logarithm never sees zero, so neither its value nor its gradient is infinite.")


_TRACED_ONCE: Final = (
    "a trace serves all arguments of the same types, but the last batch has 29 pictures: another shape."
)
_PER_CALL: Final = "that is a trace for each call: traces are kept by the types of tensors, not by their values."
EXERCISES: Final[Mapping[str, Exercise]] = {
    "1.1": Exercise(
        "45 batches an epoch, 44 of 32 pictures and one of 29, eight epochs: how many traces does train_step make?",
        _is(2, "one for batches of 32, one for the short one; later epochs find both.",
            {1: _TRACED_ONCE, 45: _PER_CALL, 360: _PER_CALL,
             8: "epochs do not count: what was traced in the first serves the others.",
             16: "two an epoch, but those of the first epoch serve the others."},
            "count the different shapes that the arguments have."),
        ("What distinguishes one call from the next, for a trace?", "Tensors are told apart by shape and dtype alone.",
         "Write down the shape of each batch of an epoch; how many different ones are there?"),
    ),
    "1.2": Exercise(
        'print("tracing") stands in the staged cell: how often does it print in eight epochs?',
        _is(2, "Python runs while tracing alone: as often as there are traces.",
            {360: "the graph runs on each call, and print is no part of it: Python runs while tracing alone.",
             45: "the graph runs on each call, and print is no part of it: Python runs while tracing alone.",
             1: _TRACED_ONCE, 0: "Python has to run for a trace to be made."},
            "it prints as often as Python runs the cell; when does it?"),
        ("Is print an op of the graph?", "Python's own statements run when the cell is traced, and then never again.",
         "So it prints once a trace: see exercise 1.1."),
    ),
    "2.1": Exercise(
        "After the first run and two more of `training`: how many entries has history, and how many traces are there?",
        _is((3, 1), "what a cell changes in place is changed anew by each run, hit or miss.",
            {(1, 1): "that is what a plain traced function does; a staged cell writes back what it changes in place.",
             (3, 3): "the list has grown, but what a cell only changes is no part of its key.",
             (3, 2): "the list has grown, but what a cell only changes is no part of its key."},
            "give two numbers, as in 2, 2"),
        ("What does the mark ↩ in the annotated cell say?", "Each run writes back; does writing make a new key?",
         "One trace; and the append happens on each of the three runs."),
    ),
    "2.2": Exercise(
        "Which two values of exponent, meaning 2.0 and 3.0, does one trace of power serve?",
        _one_trace,
        ("What is part of the key by its value, what by its type?", "A tensor is keyed by its type.",
         "Make each exponent a tensor of the same dtype: ll.constant(...)"),
    ),
    "2.3": Exercise(
        "Mend entropy so that its value and its gradient are finite where a probability is 0.",
        _mended,
        ("Ask %explain --nan entropy(ll.constant([0.5, 0.5, 0.0])).",
         "Choose before the logarithm, not after it: what would it be given instead of 0?",
         "Two uses of ll.where: one inside the logarithm that puts 1 for 0, one around the product."),
    ),
}  # fmt: skip


def check(name: str, answer: Any) -> Verdict:
    """Judges an answer to the exercise `name`; raises ArgumentError where there is no such exercise.

    >>> check("1.1", 45).why
    'that is a trace for each call: traces are kept by the types of tensors, not by their values.'
    """
    return _named(name).judge(answer)


def hint(name: str, level: int = 1) -> str:
    """The hint of that level, 1 to 3; raises ArgumentError where there is no such exercise or level.

    >>> hint("1.1")
    'What distinguishes one call from the next, for a trace?'
    """
    hints = _named(name).hints
    if not 1 <= level <= len(hints):
        raise ArgumentError(f"hints have levels 1 to {len(hints)}, got {level}")
    return hints[level - 1]


def _named(name: str) -> Exercise:
    if name not in EXERCISES:
        raise ArgumentError(f"there is no exercise {name!r}; there are {', '.join(EXERCISES)}")
    return EXERCISES[name]
