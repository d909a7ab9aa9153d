"""`function`: staging by tracing, behind a cache (paper section 4.6)."""

from __future__ import annotations

import functools
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from limelight import events
from limelight.core.autograph_hook import converted, unconverted
from limelight.core.dispatch import active
from limelight.core.name_scopes import outer_scope
from limelight.core.variable import Variable, lift, on_create
from limelight.errors import SignatureError
from limelight.staging import explainer, structured_outputs
from limelight.staging import input_signature as declared
from limelight.staging import max_traces as budget
from limelight.staging import run_eagerly as eagerly
from limelight.staging.bound_methods import endless, name_of, too_deep, weakly_bound
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.explainer import Prediction
from limelight.staging.graph_function import GraphFunction
from limelight.staging.key import Call, Key, LookupKey, plain_types, settle
from limelight.staging.lifted_initializers import lifted
from limelight.staging.options import check_bounds, check_function, refuse_unavailable
from limelight.staging.signature import Signature
from limelight.staging.state_creation import Creation
from limelight.staging.trace_arguments import add_input
from limelight.staging.trace_cache import TraceCache, remember
from limelight.staging.trace_lock import Turns
from limelight.staging.tracer import Tracer
from limelight.user_code import source_line, tracebacks

_ids: Final = itertools.count(1)
_turns: Final = Turns()
_DEEPEST: Final = 8
"""How often a function may begin to trace one call within itself: Python state may end such a recursion."""
_alive: Final[weakref.WeakSet[Function]] = weakref.WeakSet()


class Function:
    """A staged function: a Python function that runs as dataflow graphs, one for each signature of its calls.

    Made by `ll.function`, which describes the options. A call looks its arguments up in the trace cache, traces on a
    miss, and runs the graph. As an attribute of a class it is a method: each instance has a trace cache of its own.

    Args:
        python_function: the function to stage.
        input_signature: specs of the arguments; None for one trace for each signature.
        reduce_retracing: whether a second shape is traced for unknown sizes.
        jit_compile: None or False.
        autograph: whether control flow on tensors is staged.
        name: its name in messages and views; None for that of `python_function`.
        run_eagerly: whether each call runs the Python code.
        max_traces: the largest number of traces; None for no bound.
        cache_size: how many traces are kept; None for all.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        *,
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
        jit_compile: bool | None = None,
        autograph: bool | None = False,
        name: str | None = None,
        run_eagerly: bool = False,
        max_traces: int | None = None,
        cache_size: int | None = None,
    ) -> None:
        self._is_static = isinstance(python_function, staticmethod)
        if isinstance(python_function, staticmethod):
            python_function = python_function.__func__
        check_function(python_function)
        refuse_unavailable(autograph, jit_compile)
        check_bounds(max_traces=max_traces, cache_size=cache_size)
        self.python_function = python_function
        self._traced = converted(python_function) if autograph else python_function
        self.name = name or name_of(python_function)
        self.id = next(_ids)
        self._runs = 0
        self._options = {
            "input_signature": input_signature,
            "reduce_retracing": reduce_retracing,
            "jit_compile": jit_compile,
            "autograph": autograph,
            "name": name,
            "run_eagerly": run_eagerly,
            "max_traces": max_traces,
            "cache_size": cache_size,
        }
        self._signature = Signature(python_function, self.name)
        self._declared = declared.check(input_signature, self._signature)
        self._cache = TraceCache(cache_size)
        self._instances: dict[int, tuple[weakref.ref[Any], Function]] = {}
        self._created_state = False
        self._closed_over: frozenset[int] = frozenset()  # uids of the variables that traces have captured
        self._in_progress: list[Key] = []  # keys that are being traced, outermost first; guarded by `_turns`
        self._levels = 0  # how many these were at most, while the outermost of them was traced
        functools.update_wrapper(self, python_function, updated=())
        self.__name__ = getattr(python_function, "__name__", self.name)  # partial functions have none
        _alive.add(self)

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            plain = None if active or kwargs else plain_types(args)
            known = self._cache.plain
            if plain is not None:
                types, payloads = plain
                entry = known.get(types)
                if entry is not None:
                    self._note_hit(entry)
                    return entry.run_payloads(payloads)
            call = self._call(args, kwargs)
            if self.run_eagerly or (active and eagerly.everywhere()):
                return self._run_eagerly(call)
            entry = self._find(call.lookup)
            if entry is None:
                entry = self._trace_once(call)
            else:
                self._note_hit(entry)
            if plain is not None and entry.runs_payloads(len(payloads)) and self._signature.defaults_are_plain:
                remember(known, types, entry)
            return entry.call_leaves(call.leaves)
        except Exception as error:
            tracebacks.trim(error)
            raise

    @property
    def trace_count(self) -> int:
        """How often the Python code ran to be traced, for a method of a class in all its living instances together.

        Traces that failed count, and one that created variables counts twice: it is made once more without creating
        any. How many traces there are is `len(trace_cache)`; `max_traces` bounds those.
        """
        return self._runs + sum(bound._runs for bound in self.instances)

    @property
    def run_eagerly(self) -> bool:
        """Whether each call runs the Python code, as for a debugger; see `ll.config.run_functions_eagerly`."""
        return self._options["run_eagerly"] is True

    @run_eagerly.setter
    def run_eagerly(self, on: bool) -> None:
        self._options["run_eagerly"] = bool(on)
        self._cache.forget_finds()  # calls on the shortest path ask nobody
        for bound in self.instances:
            bound.run_eagerly = on

    def _run_eagerly(self, call: Call) -> Any:
        first = len(self._cache) == 0 and not self._created_state
        creation = Creation(self.name, allowed=first)
        try:
            return eagerly.run(self.python_function, self._signature, call, creation)
        finally:
            self._created_state = self._created_state or bool(creation.variables)

    def _note_hit(self, entry: ConcreteFunction) -> None:
        entry.counter[0] += 1
        if events.wanted(events.CacheHit):
            events.emit(events.CacheHit(self.name, self.id, entry.index))

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace that a call with these arguments would use, traced now if need be, and not run.

        Args:
            *args: as in a call; tensors may be given as `ll.TensorSpec`, with None for unknown sizes. None at all where
                the function has an `input_signature`.
            **kwargs: the same by name.

        Returns:
            The entry of the trace cache: a concrete function, which may be called and has a `graph`.

        Raises:
            SignatureError: an argument cannot be part of a key, or does not fit the `input_signature`.
            TraceBudgetError: there are `max_traces` traces already.
            TypeError: the arguments do not fit the Python function.

        >>> import limelight as ll
        >>> @ll.function
        ... def double(x):
        ...     return x + x
        >>> concrete = double.get_concrete_function(ll.TensorSpec((None, 3), "float32"))
        >>> concrete(ll.ones((2, 3))).shape, double.trace_count
        ((2, 3), 1)
        """
        if self._declared is not None and not args and not kwargs:
            args = tuple(self._declared)
        try:
            call = self._call(args, kwargs, abstract=True)
            return self._find(call.lookup) or self._trace_once(call, run=False)
        except Exception as error:
            tracebacks.trim(error)
            raise

    def explain(self, *args: Any, **kwargs: Any) -> Prediction:
        """A prediction of a call: hit or miss and why, or what it would raise; nothing is traced or run.

        Args:
            *args: as in a call; tensors may be given as `ll.TensorSpec`.
            **kwargs: the same by name.

        Returns:
            A prediction, true for a hit, which prints as sentences; `miss` is the reason of a miss. What the call would
            raise is told in words, not raised.

        >>> import limelight as ll
        >>> @ll.function
        ... def double(x):
        ...     return x + x
        >>> y = double(ll.ones((3,)))
        >>> bool(double.explain(ll.zeros((3,)))), double.explain(ll.ones((4,))).miss.reason
        (True, 'argument `x` f32[3] -> f32[4] (axis 0: 3 -> 4)')
        """
        prediction: Prediction = explainer.current().predict(self, args, kwargs)
        return prediction

    @property
    def trace_cache(self) -> TraceCache:
        """The trace cache: a sequence of concrete functions, in the order in which they were traced.

        >>> import limelight as ll
        >>> double = ll.function(lambda x: x + x)
        >>> y = double(ll.ones(3)), double(ll.ones(3))
        >>> len(double.trace_cache), double.trace_cache[0].hits
        (1, 1)
        """
        return self._cache

    def clear_cache(self) -> None:
        """Discards all traces; the next call traces again, and may create variables as the first one did.

        The count against `max_traces` starts again. Of a method: the traces of all its instances.

        >>> import limelight as ll
        >>> double = ll.function(lambda x: x + x)
        >>> y = double(ll.ones(3))
        >>> double.clear_cache()
        >>> len(double.trace_cache)
        0
        """
        count = len(self._cache)
        self._cache.clear()
        self._created_state = False
        if count and events.wanted(events.CacheCleared):
            events.emit(events.CacheCleared(self.name, self.id, count))
        for _, bound in list(self._instances.values()):
            bound.clear_cache()

    def clone(self, python_function: Callable[..., Any] | None = None) -> Function:
        """A new staged function with the same options and no traces.

        Args:
            python_function: the function to stage; by default that of this one.

        Returns:
            The new staged function.

        Raises:
            ArgumentError: `python_function` cannot be staged, as for `ll.function`.
            SignatureError: the `input_signature` does not fit it.

        >>> import limelight as ll
        >>> @ll.function(reduce_retracing=True)
        ... def double(x):
        ...     return x + x
        >>> triple = double.clone(lambda x: x + x + x)
        >>> [triple(ll.ones((n,))).shape for n in (2, 3, 4)], triple.trace_count
        ([(2,), (3,), (4,)], 2)
        """
        body = self.python_function if python_function is None else python_function
        return Function(body, **self._options)  # type: ignore[arg-type]  # as `_of`

    @property
    def instances(self) -> tuple[Function, ...]:
        """For a method: the functions of its living instances, each with a cache of its own."""
        return tuple([bound for reference, bound in list(self._instances.values()) if reference() is not None])

    def __get__(self, instance: Any, owner: type | None = None) -> Function:
        """A staged method: each instance has its own cache, which goes with it."""
        return self if instance is None or self._is_static else Method.of(self._of(instance), instance)

    def _of(self, instance: Any) -> Function:
        known = self._instances.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        method = weakly_bound(self.python_function, instance)
        bound = Function(method, **self._options)  # type: ignore[arg-type]  # the options of this very class
        bound.name = self.name
        forget = functools.partial(_forget, weakref.ref(self), id(instance))
        mine = (weakref.ref(instance, forget), bound)
        if known is not None:  # of an object that has gone, whose id this one has now
            self._instances.pop(id(instance), None)
        return self._instances.setdefault(id(instance), mine)[1]  # another thread's, if that was quicker

    def __reduce__(self) -> Any:
        """By reference: to this function where its name leads to it, else to the Python function, with the options."""
        name = getattr(self.python_function, "__qualname__", "")
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        return (_rebuild, (self.python_function, self._options))

    def __repr__(self) -> str:
        return f"<limelight function {self.name}: {len(self._cache)} traces>"

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], abstract: bool = False) -> Call:
        if self._declared is None:
            call = self._signature.call(args, kwargs, abstract)
            return settle(call, self._closed_over) if self._closed_over else call
        return declared.call(self._declared, self._signature, args, kwargs, abstract)

    def _find(self, key: LookupKey) -> Any:
        try:
            found = self._cache.find(key)
        except TypeError as error:
            raise SignatureError(f"{self.name}: an argument cannot be part of a cache key: {error}") from None
        return None if found is not None and found.stale else found

    # Tracing

    def _trace_once(self, call: Call, run: bool = True) -> ConcreteFunction:
        """Traces for `call`, unless another thread has done so in the meantime."""
        with _turns.take(self.name):
            found: ConcreteFunction | None = self._find(call.lookup)
            if found is not None:
                if run:
                    self._note_hit(found)
                return found
            key = call.key
            if self._in_progress.count(key) >= _DEEPEST:
                raise endless(self.name)
            self._in_progress.append(key)
            self._levels = max(self._levels, len(self._in_progress)) if len(self._in_progress) > 1 else 1
            try:
                return self._trace(call.with_key(self._relax(key)), key, run)
            except RecursionError as error:
                if len(self._in_progress) == 1 and self._levels > _DEEPEST:  # Python's own, here where there is room
                    raise too_deep(self.name, self._levels) from error
                raise
            finally:
                self._in_progress.pop()

    def _relax(self, key: Key) -> Key:
        """With `reduce_retracing`, a key that differs from an earlier one in sizes only, with those sizes open."""
        if self._options["reduce_retracing"]:
            for entry in reversed(list(self._cache)):
                wider = key.generalised(entry.key)
                if wider is not None:
                    return wider
        return key

    def _trace(self, call: Call, asked: Key, run: bool) -> ConcreteFunction:
        """Traces and stores a call whose key was `asked` before it was relaxed."""
        record = explainer.current().diagnose(self, asked, source_line.user_stack())
        budget.check(self, record)
        start = time.perf_counter()
        first = len(self._cache) == 0 and not self._created_state
        creation = Creation(self.name, allowed=first)
        entry = self._trace_body(call, creation)
        if creation.variables:
            self._created_state = True
            entry = self._trace_body(call, Creation(self.name, allowed=False, again=True))
        entry = self._settled(call, entry)
        entry.trace_seconds = time.perf_counter() - start
        entry.miss = record.with_cost(entry.trace_seconds, len(creation.variables))
        entry.reason = str(entry.miss)
        self._cache.add(entry.key, entry)
        self._tell(entry)
        if run:
            explainer.current().warn_if_retracing(self)
        return entry

    def _settled(self, call: Call, entry: ConcreteFunction) -> ConcreteFunction:
        """Traces again, for these very variables, where an argument turned out to be closed over as well."""
        self._closed_over |= {x._uid for x in entry.captures if isinstance(x, Variable)}
        exact = settle(call, self._closed_over)
        if exact.lookup == call.lookup:
            return entry
        return self._trace_body(exact, Creation(self.name, allowed=False, again=True))

    def _trace_body(self, call: Call, creation: Creation) -> ConcreteFunction:
        """Runs the Python function once, writing a graph."""
        self._runs += 1
        stack = source_line.user_stack()
        tracer = Tracer(self.name, self.id)
        key = call.key
        paths = self._signature.paths(key.structure, len(call.leaves))
        seen: dict[int, Variable] = {}
        leaves = [
            add_input(tracer, leaf, part, path, seen)
            for leaf, part, path in zip(call.leaves, key.parts, paths, strict=True)
        ]
        args, kwargs = self._signature.unbind(leaves, key.structure)
        read = explainer.current().take(self.python_function, paths, key.parts)
        lifter = functools.partial(lifted, tracer, call.leaves, lift.get())
        with (
            on_create.override(creation.note),
            lift.override(lifter),
            outer_scope.override(""),
            unconverted(self.name),
            tracer,
        ):
            result = self._traced(*args, **kwargs)
            tensors, shape = structured_outputs.split(result, self.name)
            graph = tracer.finish(tensors)
        where = str(stack[0]) if stack else "a library thread"
        entry = ConcreteFunction(GraphFunction(graph), tracer.captures, shape, key, paths, where)
        entry.traced_from(self.python_function, self._signature, read)
        return entry

    def _tell(self, entry: ConcreteFunction) -> None:
        stack = source_line.user_stack(limit=1)
        if events.wanted(events.CacheMiss):
            events.emit(events.CacheMiss(self.name, self.id, entry.index, entry.reason, stack[0] if stack else None))
        if events.wanted(events.Traced):
            nodes = len(entry.graph.nodes)
            events.emit(events.Traced(self.name, self.id, entry.index, nodes, entry.trace_seconds))


class Method(Function):
    """A staged method as an attribute of its instance, which it keeps alive, as Python's bound methods do.

    The function behind it is kept for the instance, and does not keep that alive; all that a method has is its.
    """

    __slots__ = ("__limelight_function__", "__self__")
    __limelight_method__ = True
    __limelight_function__: Function  # what a trace cache keys it by
    __self__: Any

    @classmethod
    def of(cls, function: Function, instance: Any) -> Method:
        """The method of `instance` that `function` runs."""
        method = object.__new__(cls)
        method.__dict__ = function.__dict__  # the very same: what one learns, all know
        method.__limelight_function__ = function
        method.__self__ = instance
        return method

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


def _forget(owner: weakref.ref[Function], key: int, _: Any) -> None:
    function = owner()
    if function is not None:
        function._instances.pop(key, None)


def _rebuild(python_function: Callable[..., Any], options: dict[str, Any]) -> Function:
    return Function(python_function, **options)


def alive() -> list[Function]:
    """The functions that exist and have been traced, oldest first."""
    return sorted((f for f in _alive if len(f.trace_cache)), key=lambda f: f.id)
