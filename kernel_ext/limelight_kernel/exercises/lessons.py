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


def _largest_gradient(answer: Any) -> Verdict:
    """The variable of lesson 1 whose gradient has the most numbers, as itself or by its name."""
    name = str(getattr(answer, "name", answer))
    if name == "w1":
        return Verdict(True, "a gradient has the shape of its variable, and w1 has 64 by 48 numbers.")
    if name == "loss":
        return Verdict(False, "the loss is what is differentiated: it is one number, and no variable.")
    if name in ("w2", "b1", "b2"):
        return Verdict(False, "a gradient has the shape of its variable, and there is one with more numbers.")
    return Verdict(False, "give one of w1, b1, w2, b2")


def _offered(answer: Any) -> Verdict:
    """What the error of a Python `if` on a tensor offers."""
    words = str(getattr(answer, "__name__", answer)).lower()
    if "autograph" in words or any(name in words for name in ("cond", "where")):
        return Verdict(True, "ll.cond and ll.where put the choice into the graph; --autograph rewrites the `if` so.")
    if "item" in words or "numpy" in words:
        return Verdict(False, "while the cell is traced the tensor has no value that could be asked for.")
    return Verdict(False, "name one of the ways that the error offers, as a string")


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
    "1.3": Exercise(
        "Which of w1, b1, w2, b2 has the gradient with the most numbers in it?",
        _largest_gradient,
        ("What shape has a gradient?", "It has the shape of what is differentiated by.",
         "Which variable has the most numbers itself? w1 is 64 by 48."),
    ),
    "1.4": Exercise(
        "train_step is called with labels of another dtype, int32. Which input does --why name, and which dtypes, "
        'before and after? Three strings, as in "x", "float32", "float64"',
        _is(("labels", "int64", "int32"), "a dtype is part of a tensor's type: another one is another trace.",
            {("labels", "int32", "int64"): "before comes what the closest trace was made for, then what the call gave.",
             ("labels", "i64", "i32"): "these are the right ones; write them as NumPy does: int64, int32.",
             ("images", "int64", "int32"): "the pictures are what they were; what was cast?"},
            "run the first staged cell again, make the call, and read %trace_cache train_step --why"),
        ("Run the first staged cell again, and then the call.", "%trace_cache train_step --why names the input.",
         "The sentence has the form: argument `labels` i64[32] -> ...; i64 is int64."),
    ),
    "1.5": Exercise(
        "ll.function is taken off network, and the cell staged again: has its graph more or fewer ops of its own, and "
        'the tape of one eager step more or fewer entries? Two of "more", "fewer"',
        _is(("more", "more"), "a staged function is one call in the graph and on the tape; else each op is there.",
            {("fewer", "fewer"): "the call goes, but all that it stood for comes in its place.",
             ("fewer", "more"): "the graph, too, has all ops of network where it had one call.",
             ("more", "fewer"): "the tape, too, notes each op of network where it noted one call."},
            'give two words, as in "more", "fewer"'),
        ("What is the box of network in the graph?", "It is one call; what is in it when you open it?",
         "Count the boxes in the open call: without ll.function they are ops of the step itself."),
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
    "2.4": Exercise(
        "After two runs of the cell step: how often has it printed, and how many values has noise had? Two numbers.",
        _is((1, 1), "print and np.random.normal are Python: both ran once, while the cell was traced.",
            {(2, 2): "the second run finds its trace, and Python does not run: the graph does.",
             (1, 2): "np.random.normal is Python as print is: the graph has the number that it gave.",
             (2, 1): "print is no op of the graph either: the second run prints nothing."},
            "give two numbers, as in 2, 2"),
        ("Which lines does the annotated cell warn of?", "What is marked as run while tracing does not run on a hit.",
         "The second run is a cache hit: no Python of the cell runs."),
    ),
    "2.5": Exercise(
        'What do power(x + 1.0), power(ll.ones((5, 2))) and power(x, exponent=3) do? Three of "hit", "miss"',
        _is(("hit", "miss", "miss"), "values of tensors are no part of the key; shapes are, and plain numbers.",
            {("miss", "miss", "miss"): "x + 1.0 has other numbers, but the type of x: that trace serves it.",
             ("hit", "hit", "miss"): "ll.ones((5, 2)) has another shape than x.",
             ("hit", "miss", "hit"): "exponent is a plain number: its value is part of the key.",
             ("hit", "hit", "hit"): "one of them has another shape, another a plain number of another value."},
            'give three words, as in "hit", "hit", "miss"'),
        ("What of a tensor is part of the key, what of a number?", "Shape and dtype of tensors; the value of numbers.",
         "%trace_cache --would CALL says it for each."),
    ),
    "2.6": Exercise(
        "Five sizes come, one after the other: how many traces does a function make that is staged as power is, and "
        "how many one that is staged as relaxed is? Two numbers.",
        _is((5, 2), "each size is a trace; with reduce_retracing the second one leaves the size open.",
            {(5, 1): "the first trace has the size that came; only at the second is it known to vary.",
             (5, 5): "reduce_retracing leaves sizes open that have varied.",
             (1, 1): "shapes are part of the key.", (2, 2): "power keeps each size as it is."},
            "give two numbers, as in 3, 3"),
        ("What is open in the second trace of relaxed?", "Look at its signature in %trace_cache relaxed.",
         "The second trace has ? for the size: it serves all that follow."),
    ),
    "2.7": Exercise(
        "if x.sum() > 0: y = x is staged without --autograph. What does the error offer? Name one way, as a string.",
        _offered,
        ("Run it, and read the last lines of the error.", "How would the graph itself choose?",
         "It names functions of ll, and a flag of %%stage."),
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
