"""What a call of a staged function would do, without doing it; what it would raise is told rather than raised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from limelight.core import nest
from limelight.core.dispatch import active
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.spec import TensorSpec
from limelight.errors import DeadVariableError, LimelightError
from limelight.explain.retracing.diagnosis import diagnose
from limelight.explain.retracing.sentence import Closest, Miss
from limelight.explain.story import Story
from limelight.explain.tracing import snapshot
from limelight.explain.tracing.side_effects import not_known
from limelight.staging import run_eagerly
from limelight.user_code import source_line

_SPELLED: Final = 3


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """What a call would do: `hit` with the `entry` it would run, or the `miss` that would trace.

    `error` is what the call would raise before it runs or traces anything, such as "TypeError: ..."; with neither a
    hit nor a miss nor an error the Python code would run. `notes` are sentences about the call as a whole.
    """

    function: str
    hit: bool
    entry: Any = None
    miss: Miss | None = None
    error: str = ""
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.hit

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        if self.miss is not None and not self.error:
            title = f"`{self.function}` would trace"
            story = self.miss.to_story()
            places = (story.places[0]._replace(label=""), *story.places[1:])  # nobody has made the call
            return replace(story, kind="what if", title=title, places=places, more=self.notes)
        cause, what, said = self._outcome()
        return Story("what if", f"`{self.function}` would {what}", (cause,), said, more=self.notes)

    def _outcome(self) -> tuple[str, str, tuple[str, ...]]:
        """A word for what would happen, the clause, and what goes on from it."""
        if self.error:
            kind, _, words = self.error.partition(": ")
            return "error", f"raise {kind}", (words,)
        if self.hit:
            return "cache hit", f"run {Closest.of(self.entry)}", (str(self.entry.signature),)
        return "eager", "run its Python code, and trace nothing.", ()


def predict(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Prediction:
    """What `function(*args, **kwargs)` would do. Specs may stand for tensors."""
    if any(type(leaf) is SparseGradient for leaf in nest.leaves_of((args, kwargs))):
        args, kwargs = nest.map_structure(_dense, (args, kwargs))
    try:
        call = function._call(args, kwargs, abstract=True)
        if function.run_eagerly or (active and run_eagerly.everywhere()):
            return Prediction(function.name, False, notes=(_why_eagerly(function),))
        trace = function._find(call.lookup)
        if trace is not None:
            trace._captured()
    except DeadVariableError as error:
        return Prediction(function.name, False, trace, error=_said(error))
    except (LimelightError, TypeError) as error:  # as the call itself would
        return Prediction(function.name, False, error=_said(error))
    if trace is not None:
        return Prediction(function.name, True, trace, notes=(*_unseen(function, trace), *_same_calls(call, kwargs)))
    record = diagnose(function, call.key, source_line.user_stack()).settled()
    if function.trace_cache.budget_is_spent:
        refusal = f"TraceBudgetError: {function.trace_cache.over_budget(function.name, record)}"
        return Prediction(function.name, False, miss=record, error=refusal)
    return Prediction(function.name, False, miss=record, notes=tuple(_consequences(function)))


def _unseen(function: Any, trace: Any) -> list[str]:
    """What has changed since a trace was made, and is no argument: a call that finds the trace does not see it."""
    now = snapshot.take(function.python_function, trace.paths, trace.key.parts)
    said = []
    for name, then in trace.baked.items():
        current = now.get(name)
        if current is not None and current.token != then.token:
            value = current.text if current.text != then.text else f"another {current.text.removeprefix('a ')}"
            said.append(f"It would not see that `{then.name}` ({then.where}) was {then.text} then and is {value} now.")
    more = [f"And {len(said) - _SPELLED} more: ll.explain.baked."][: len(said) > _SPELLED]
    unread = snapshot.unread(function.python_function, trace.paths, trace.key.parts)
    return [*said[:_SPELLED], *more, *not_known("reads", unread)]


def _same_calls(call: Any, kwargs: dict[str, Any]) -> list[str]:
    """Which ways of writing a call make no difference."""
    said = []
    if kwargs:
        said.append("Arguments by keyword and by position, and defaults left out or given, make one call.")
    if call.key.structure is not None and _has_dictionary(call.key.structure, bool(kwargs)):
        said.append("The order of a dictionary's keys makes no difference.")
    return said


def _has_dictionary(structure: Any, keywords: bool) -> bool:
    inner = structure.children[:1] if keywords and len(structure.children) == 2 else structure.children
    return (structure.kind is dict and len(structure.keys) > 1) or any(_has_dictionary(x, False) for x in inner)


def _dense(x: Any) -> Any:
    return TensorSpec(x.shape, x.dtype) if type(x) is SparseGradient else x


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _why_eagerly(function: Any) -> str:
    return "Its run_eagerly is on." if function.run_eagerly else "ll.config.run_functions_eagerly is on."


def _consequences(function: Any) -> list[str]:
    """What tracing would bring besides a trace."""
    said = []
    victim = function.trace_cache.next_evicted
    if victim is not None:
        size = function.trace_cache.size
        said.append(f"It would take the place of {Closest.of(victim)}, since cache_size={size}.")
    return said
