"""Running a function again for a gradient, with variables, generators and Python's names as they were in the first run.

Variables that it only reads are answered with snapshots. Those that it changes, generators, and the names, attributes
and containers that it reaches (`user_code.python_state`) are set back for the while and put back after, so that
assignments happen once. Other threads can see that. What could not be set back (an iterator, Python's or NumPy's random
numbers) is told by the fingerprints of the two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from limelight.control_flow.effect_recorder import EffectRecorder
from limelight.control_flow.python_state_scope import python_state_scope
from limelight.control_flow.run_fingerprint import RunFingerprint
from limelight.control_flow.variables_as_values import call_with_values
from limelight.core import dispatch, nest
from limelight.core.op import Op
from limelight.core.tensor import Tensor
from limelight.core.variable import assign_op, read
from limelight.errors import GradientError
from limelight.user_code.python_state import PythonState, state_of


class FirstRun(NamedTuple):
    """What it takes to run a function again."""

    name: str
    snapshots: dict[int, Any]  # the values of the variables that it only read, by uid
    states: tuple[tuple[Any, Any], ...]  # of generators and variables that it changed
    python: PythonState
    begin: int  # as in `RunFingerprint`
    fingerprint: int

    def again(self, call: Callable[[], Any], arguments: Sequence[Any]) -> Any:
        """`call()`, the second run, in a block of `set_back`. Raises GradientError where it does something else.

        Args:
            call: calls the function.
            arguments: the tensors and variables among its arguments.
        """
        fingerprint = RunFingerprint(arguments, self.begin)
        with Snapshots(self.snapshots, fingerprint):
            result = call()
        if fingerprint.of_results(_tensors(result)) != self.fingerprint:
            raise GradientError(
                f"{self.name}, run again for a gradient, computes something else than in its first run: it depends on "
                "what cannot be set back, such as an iterator, a file, the time, or random numbers of Python or NumPy. "
                "Let it depend on its arguments alone, and draw with ll.random"
            )
        return result


class FirstRunRecorder:
    """Follows the first run of a function, so that there can be another one.

    Args:
        name: the name of the function.
        fn: the function.
        arguments: the tensors and variables among its arguments.
    """

    def __init__(self, name: str, fn: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self._name = name
        self._python = state_of(fn)
        self._fingerprint = RunFingerprint(arguments)
        self._result = 0
        self.recorder = EffectRecorder(states=True, fingerprint=self._fingerprint)

    def finish(self, result: Any) -> None:
        """Told that the function has returned `result`."""
        self._result = self._fingerprint.of_results(_tensors(result))
        self._python = self._python.for_another_run()

    def first_run(self) -> FirstRun:
        """What is known of the run; reads the variables, and so is called where tapes may see that."""
        snapshots, states = snapshots_of(self.recorder), tuple(self.recorder.states)
        return FirstRun(self._name, snapshots, states, self._python, self._fingerprint.begin, self._result)


def _tensors(result: Any) -> list[Any]:
    return [y for y in nest.leaves_of(result) if y is not None]


def snapshots_of(recorder: EffectRecorder) -> dict[int, Any]:
    """The values of the variables that the recorded block has just read and not changed, by uid."""
    changed = {variable._uid for variable, _ in recorder.states}
    return {uid: dispatch.apply(read, (variable,)) for uid, variable in recorder.read.items() if uid not in changed}


class Snapshots(dispatch.BlockInterpreter):
    """Answers reads of some variables with given values, also in functions that are called.

    Args:
        values: the values, by uid.
        fingerprint: follows what runs.
    """

    def __init__(self, values: dict[int, Any], fingerprint: RunFingerprint) -> None:
        self._values = values
        self._fingerprint = fingerprint

    def process(self, op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        assert self.below is not None, "an interpreter is asked only while it is on the stack"
        if op is read and inputs[0]._uid in self._values:
            value = self._values[inputs[0]._uid]
            self._fingerprint.note(op, inputs, self._fingerprint.of_op(op, inputs, attrs), value)
            return value
        replaced = call_with_values(op, inputs, attrs, self._values) if op.higher_order else (inputs, attrs)
        if replaced is None:
            raise GradientError(
                f"run again for a gradient, a function does something else than before: {op} now changes a variable "
                "that it only read, or has a custom gradient that reads it; let what it does depend on its arguments "
                "alone"
            )
        done = self._fingerprint.of_op(op, inputs, attrs)
        results = self.below.process(op, *replaced)
        self._fingerprint.note(op, inputs, done, results)
        return results


class set_back(dispatch.Guard):  # noqa: N801  # used as a function
    """Runs its block with what a first run changed as it was before that, and puts back the present state after it."""

    def __init__(self, run: FirstRun) -> None:
        super().__init__()
        self._states = run.states
        self._python = python_state_scope(run.python)
        self._before: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        self._python.begin()
        for variable, state in self._states:
            self._before.append((variable, dispatch.apply(read, (variable,))))
            dispatch.apply(assign_op, (variable, state))

    def end(self, abandoned: bool) -> None:
        try:
            self._python.end(abandoned)
        finally:  # also where an object of the user's does not take what it had
            self._restore_variables(abandoned)

    def _restore_variables(self, abandoned: bool) -> None:
        if not abandoned:
            self._restore(self._before)
            return
        with dispatch.fresh_stack():  # what an unfinished trace would have set back, nobody has changed
            self._restore([(variable, state) for variable, state in self._before if type(state) is Tensor])

    def _restore(self, states: Sequence[tuple[Any, Any]]) -> None:
        for variable, state in states:
            dispatch.apply(assign_op, (variable, state))
