"""`Function`, what `ll.function` makes: staging by tracing, behind a trace cache (paper section 4.6).

The way of a call of a staged `Function`:

    look-up   `Signature.call` binds the arguments canonically, flattens them and makes a `LookupKey` (`key`,
              `key_parts`); `TraceCache.find` asks for its concrete function. Calls with nothing but tensors on CPU:0
              and plain values take a shortcut, `plain_types`, which spares most of that.
    hit       the concrete function runs its graph on the payloads of the tensors (`ConcreteFunction.run_payloads`).
    miss      `_trace_once` takes the trace lock, asks the explainer for the reason, and has `_trace_body` run the
              Python code once under a `Tracer`, which writes the graph. This is where any code of the user's that a
              staged function runs is traced: a layer's call (`nn/layers/layer.py`), too.
    optimise  at its first run the `GraphFunction` puts its graph through the passes (`limelight.optimise`),
    executor  and has the executor build what runs it (`limelight.executors`). The entry is in the cache by then.

Where the paper and today's TensorFlow differ, the paper is followed (docs/design.md, section 8).
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from limelight import events, forking
from limelight.core.autograph_hook import converted
from limelight.core.dispatch import active, heal, kept, tapes_told
from limelight.errors import SignatureError, TraceBudgetError
from limelight.executors import base as executors
from limelight.staging import argument_changes, array_changes, explainer, partial_trace, sharing, trace_body
from limelight.staging import input_signature as specs
from limelight.staging import run_eagerly as eager_mode
from limelight.staging.bound_methods import holder_of_code, name_of, weakly_bound
from limelight.staging.concrete_function import ConcreteFunction
from limelight.staging.direct_call import MISSED
from limelight.staging.explainer import Prediction
from limelight.staging.guards import HITS
from limelight.staging.key import Call, Key, LookupKey, key_by_identity, plain_types
from limelight.staging.options import check_bounds, check_flags, check_function, executor_for
from limelight.staging.recursion import CallsInProgress
from limelight.staging.signature import Signature
from limelight.staging.state_creation import Creation
from limelight.staging.trace_cache import TraceCache, add_shortcut, objects_of
from limelight.staging.trace_lock import TraceLock
from limelight.staging.tracer import Tracer
from limelight.staging.weak_identity import Identity
from limelight.user_code import hints, identity_questions, source_line, tracebacks

ids: Final = itertools.count(1)
_INTERNAL: Final = ("follows_sharing", "is_for_question", "summed_outputs")
_trace_lock: Final = TraceLock()
forking.in_child(_trace_lock.renew)
_alive: Final[weakref.WeakValueDictionary[int, Function]] = weakref.WeakValueDictionary()


class Function:
    """A staged function: a Python function that runs as dataflow graphs, one for each signature of its calls.

    Made by `ll.function`, which describes the options. A call looks its arguments up in the trace cache, traces on a
    miss, and runs the graph. As an attribute of a class it is a method: each instance has a trace cache of its own.

    Args:
        python_function: the function to stage.
        input_signature: specs of the arguments; None for one trace for each signature.
        reduce_retracing: whether a second shape is traced for unknown sizes.
        jit_compile: whether it runs on the executor `xla`; None for the one that is chosen when it is traced.
        autograph: whether control flow on tensors is staged.
        name: its name in messages and views; None for that of `python_function`.
        run_eagerly: whether each call runs the Python code.
        max_traces: the largest number of traces; None for no bound.
        cache_size: how many traces are kept; None for all.
    """

    is_for_question = False
    """Whether a question about a call has had it staged, and not the user: then views of all functions leave it out."""
    _counts_hits_only = True
    """Whether `_note_hit` does nothing else: calls may then be direct."""
    follows_sharing = True
    """Whether what is the same among the arguments is so to the code, and what it would do to arrays is told."""

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
        check_flags(autograph, jit_compile)
        check_bounds(max_traces=max_traces, cache_size=cache_size)
        self.python_function = python_function
        self._traced = converted(python_function) if autograph else python_function
        self.name = name or name_of(python_function)
        self._holder = holder_of_code(python_function)
        self._code = self._holder.__code__
        self.id = next(ids)
        self._jit_compile = jit_compile
        self._runs = 0  # how often the Python code ran to be traced
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
        self._defaults_are_plain = self._signature.defaults_are_plain
        self._declared = specs.check(input_signature, self._signature)
        self._cache = TraceCache(cache_size, max_traces)
        self._instances: dict[int, tuple[weakref.ref[Any], Function]] = {}  # of a method, by id of the instance
        self._created_state = False  # whether the first call has been used up
        self._met: frozenset[Identity] = frozenset()  # objects that calls have been traced for
        self._tells_apart = sharing.NOTHING  # of what the code may ask whether it is one and the same
        self._closed_over: frozenset[int] = frozenset()  # uids of the variables that traces have captured
        self._in_progress = CallsInProgress()
        functools.update_wrapper(self, python_function, updated=())
        self.__name__ = getattr(python_function, "__name__", self.name)  # partial functions have none
        _alive[self.id] = self

    # Calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._holder.__code__ is not self._code:  # 25 ns of a call
                self._take_new_code()
            direct = self._cache.by_types.direct
            if direct is not None and not active and not kwargs and (result := direct(args)) is not MISSED:
                return result
            busy = active and len(active) != len(kept) + len(tapes_told)  # views that count are no reason to be
            plain = None if busy or kwargs else plain_types(args)
            if plain is not None:
                types, payloads = plain
                entry = self._cache.by_types.get(types)
                if entry is not None:  # the hot path ends here
                    self._note_hit(entry)
                    return entry.run_counted(payloads) if active else entry.run_payloads(payloads)
            elif busy:
                heal()
            else:
                guarded = self._cache.guards.find(args, kwargs)
                if guarded is not None:
                    self._note_hit(guarded[0])
                    return guarded[0].run_counted(guarded[1]) if active else guarded[0].run_payloads(guarded[1])
            return self._call_by_key(args, kwargs, plain, bool(busy))
        except (Exception, KeyboardInterrupt) as error:
            tracebacks.trim(error)
            raise

    def _call_by_key(self, args: Any, kwargs: Any, plain: tuple[Any, Any] | None, busy: bool) -> Any:
        """A call whose trace is looked up by its key, or made; afterwards a shorter way may know it again.

        Args:
            args: as they were given.
            kwargs: likewise.
            plain: types and payloads, where all arguments are plain tensors.
            busy: whether somebody watches.
        """
        guards, shortcuts = self._cache.guards, self._cache.by_types
        call = self._call(args, kwargs)
        if self.run_eagerly or (active and eager_mode.everywhere()):
            return self._run_eagerly(call)
        entry = self._find(call.lookup)
        if entry is None:
            entry = self._trace_once(call)
        else:
            self._note_hit(entry)
            array_changes.warn(self.name, entry, call)
        apart = sharing.may_share(call, self._tells_apart)  # then it counts which arguments are one and the same
        if plain is not None and not apart and entry.runs_payloads(len(plain[1])) and self._defaults_are_plain:
            add_shortcut(shortcuts, plain[0], entry)
            if self._counts_hits_only and self._cache.by_types is shortcuts:  # else nobody would read it
                shortcuts.direct = entry.direct_call(args)
        elif (
            plain is None
            and not (busy or (apart and self._tells_apart == sharing.TENSORS))  # guards know the same containers
            and entry.hits >= HITS
            and entry.runs_payloads(entry.n_inputs)
        ):
            guards.add(entry, self._signature, call, args, kwargs, self._closed_over, apart)
        return entry.call_leaves(call.leaves)

    @property
    def trace_count(self) -> int:
        """How often the Python code ran to be traced, for a method of a class in all its instances together.

        Traces that failed count, and one that created variables twice: it is made once more without creating any. How
        many traces there are is `len(trace_cache)`; `max_traces` bounds those.
        """
        return self._runs + sum(bound._runs for bound in self.instances)

    @property
    def run_eagerly(self) -> bool:
        """Whether each call runs the Python code; see `ll.config.run_functions_eagerly`."""
        return self._options["run_eagerly"] is True

    @run_eagerly.setter
    def run_eagerly(self, on: bool) -> None:
        self._options["run_eagerly"] = bool(on)
        self._cache.clear_shortcuts()  # calls that take one do not ask whether this is on
        for bound in self.instances:
            bound.run_eagerly = on

    def _run_eagerly(self, call: Call) -> Any:
        creation = Creation(self.name, allowed=self._may_create(call.key))
        try:
            result = eager_mode.run(self.python_function, self._signature, call, creation)
        finally:
            self._created_state = self._created_state or creation.any
        self._note_met(call.key)
        return result

    def _may_create(self, key: Key) -> bool:
        """Whether a call that is traced for `key` may create variables: the first one, or the first with an object."""
        return not (len(self._cache) or self._created_state) or not self._met.issuperset(objects_of(key))

    def _reads_objects(self, key: Key) -> bool:
        """Whether variables may be attributes of what a call for `key` is given: they may be made again there."""
        return bool(objects_of(key)) or hasattr(self.python_function, "__limelight_instance__")

    def _note_met(self, key: Key) -> None:
        """Notes the objects of `key`, as far as that keeps none of them alive."""
        new = {x for x in objects_of(key) if not x.keeps_alive} - self._met
        if new:
            self._met = frozenset([x for x in self._met if x.ref() is not None]) | new

    def _note_hit(self, entry: ConcreteFunction) -> None:
        """Counts a hit. A subclass may note more, here and in `_note_trace`: a notebook's staged cell does."""
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
            call = self._call(args, kwargs, abstract=True).apart()
            return self._find(call.lookup) or self._trace_once(call, run=False)
        except (Exception, KeyboardInterrupt) as error:
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
        return cast(Prediction, explainer.current().predict(self, args, kwargs))

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
        partial_trace.forget(self.id)
        self._created_state, self._met = False, frozenset()
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

    def summed_outputs(self, entry: ConcreteFunction) -> Sequence[int]:
        """The outputs of a trace's graph whose sum is meant where a view asks for "the gradient": all of them."""
        return range(len(entry.graph.outputs))

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
        on_death = functools.partial(_forget, weakref.ref(self), id(instance))
        record = (weakref.ref(instance, on_death), bound)
        if known is not None:  # of an object that has gone, whose id this one has now
            self._instances.pop(id(instance), None)
        return self._instances.setdefault(id(instance), record)[1]  # another thread's, if that was quicker

    def __reduce__(self) -> Any:
        """By reference: to this function where its name leads to it, else to the Python function, with the options."""
        name = getattr(self.python_function, "__qualname__", "")
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        return (_rebuild, (self.python_function, self._options))

    def __dir__(self) -> list[str]:
        return hints.without_internals(type(self), object.__dir__(self), _INTERNAL)

    def __repr__(self) -> str:
        n, runs = len(self._cache), self.trace_count
        return f"<limelight function {self.name}: {n} trace{'s' * (n != 1)}{f', traced {runs} times' * (runs != n)}>"

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], abstract: bool = False) -> Call:
        """The canonical call with its look-up key."""
        if self._holder.__code__ is not self._code:  # asked for a trace or a prediction, without a call
            self._take_new_code()
        if self._declared is None:
            call = self._signature.call(args, kwargs, abstract)
            if self._tells_apart:
                call = sharing.keyed(call, self._signature, self._tells_apart)
            return key_by_identity(call, self._closed_over) if self._closed_over else call
        return specs.call(self._declared, self._signature, args, kwargs, abstract)

    def _take_new_code(self) -> None:
        """Begins anew, as the code of the Python function was exchanged: by IPython's autoreload, or by hand."""
        with _trace_lock.turn(self.name):
            self._code = self._holder.__code__
            if self._options["autograph"]:
                self._traced = converted(self.python_function)
            self._signature = Signature(self.python_function, self.name)
            self._defaults_are_plain = self._signature.defaults_are_plain
            declared = cast(Sequence[Any] | None, self._options["input_signature"])
            self._declared = specs.check(declared, self._signature)
            self.clear_cache()

    def _find(self, key: LookupKey) -> Any:
        """The entry of the cache that serves calls with `key`; None on a miss."""
        try:
            entry = self._cache.find(key)
        except TypeError as error:
            raise SignatureError(f"{self.name}: an argument cannot be part of a cache key: {error}") from None
        return None if entry is not None and entry.stale else entry

    # Tracing

    def _trace_once(self, call: Call, run: bool = True) -> ConcreteFunction:
        """Traces for `call`, unless another thread has done so in the meantime."""
        with _trace_lock.turn(self.name), _trace_lock.tracing_of(self.name):
            entry: ConcreteFunction | None = self._find(call.lookup)
            if entry is not None:
                if run:
                    self._note_hit(entry)
                return entry
            if len(_trace_lock.tracing) == 1:
                self._in_progress.clear()  # an interrupt may have kept a call from ending
            key, depth = call.key, len(self._in_progress)
            try:
                self._in_progress.begin(key, self.name)
                return self._trace(call.with_key(self._relax(key)), key, run)
            except RecursionError as error:
                if self._in_progress.is_outermost_of_many():
                    raise self._in_progress.too_deep(self.name) from error
                raise
            finally:
                del self._in_progress[depth:]  # also where an interrupt came between the two lines above

    def _relax(self, key: Key) -> Key:
        """With `reduce_retracing`, a key that differs from an earlier one in sizes only, with those sizes open."""
        if self._options["reduce_retracing"]:
            for entry in reversed(list(self._cache)):
                wider = key.generalised(entry.key)
                if wider is not None:
                    return wider
        return key

    def _trace(self, call: Call, asked: Key, run: bool) -> ConcreteFunction:
        """Traces and stores a call whose key was `asked` before it was relaxed. The reason is told from keys alone."""
        record = explainer.current().diagnose(self, asked, source_line.user_stack())
        if self._cache.budget_is_spent:
            raise TraceBudgetError(self._cache.over_budget(self.name, record), record.settled())
        start = time.perf_counter()
        if self.follows_sharing and identity_questions.asks(self.python_function):
            self._tells_apart = sharing.TENSORS
        creation = Creation(self.name, allowed=self._may_create(asked), runs=run)
        entry = self._trace_body(call, creation)
        if creation.variables:
            entry, call = self._trace_without_creating(call, entry, creation)
        argument_changes.warn(self.name, entry.lost_changes)  # first, since it may be raised
        array_changes.warn(self.name, entry, call)
        explainer.current().warn_of_leaks(self, self._tracer)
        explainer.current().warn_of_draws(entry.host_draws)
        self._created_state = self._created_state or creation.any
        self._closed_over |= entry.closed_over
        self._tells_apart = max(self._tells_apart, entry.tells_apart)
        self._note_met(asked)
        entry.trace_seconds = time.perf_counter() - start
        created = 0 if entry.serves_once else len(creation.variables)
        entry.miss = record.with_trace(entry, entry.trace_seconds, created)
        if self._reads_objects(asked):
            entry.renew_without(self._cache.clear_shortcuts)
        self._cache.add(entry.key, entry)
        self._note_trace(entry)
        if run:
            explainer.current().warn_if_retracing(self)
        return entry

    def _trace_without_creating(
        self, call: Call, first: ConcreteFunction, creation: Creation
    ) -> tuple[ConcreteFunction, Call]:
        """The second trace for a call of which the `first` one has created variables, or that one for this call alone.

        With the call, whose key tells variables apart that the function closes over as well.
        """
        if creation.runs and (why := self._serves_once(creation.variables)):
            first.serves_once = why
            return first, call
        call = key_by_identity(call, self._closed_over | first.closed_over)
        again = self._trace_body(call, Creation(self.name, allowed=False, again=True))
        return again.begin_with(first) if creation.drew else again, call

    def _serves_once(self, created: Sequence[Any]) -> str:
        """Why a trace that has `created` variables is run for its call alone; empty where a second one is made at once.

        Then Python runs the code once for each of the first two calls. A subclass may say so: a notebook's staged cell.
        """
        return ""

    def _trace_body(self, call: Call, creation: Creation) -> ConcreteFunction:
        """Runs the Python function once under a tracer, which writes a graph."""
        self._runs += 1
        tracer = Tracer(self.name, self.id, calls_before=self._cache.history.calls)
        self._tracer = weakref.ref(tracer)
        tells_apart = self._tells_apart if self.follows_sharing else None
        callee = trace_body.Callee(self.python_function, self._traced, self._signature, tells_apart)
        with executors.chosen.override(executor_for(self._jit_compile)):
            return trace_body.trace(callee, call, creation, tracer, self._closed_over)

    def _note_trace(self, entry: ConcreteFunction) -> None:
        """Tells the listeners of a new trace."""
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


def alive(*, untraced: bool = False) -> list[Function]:
    """The staged functions that exist and have been traced, oldest first; with those that have no trace, if asked."""
    there = [f for reference in _alive.valuerefs() if (f := reference()) is not None]  # at once: others may be made
    return sorted((f for f in there if untraced or len(f.trace_cache)), key=lambda f: f.id)


def with_id(function_id: int) -> Function | None:
    """The staged function that has this id, traced or not; None where it has gone."""
    return _alive.get(function_id)
