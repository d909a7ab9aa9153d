"""`Optimizer`, the base class: the step counter, the learning rate, and a few slots for each variable.

Optimisers are modules: slots, the counter and the rate are variables, which checkpoints find. The rate is float64, so
that `Adam(0.1).learning_rate` is 0.1; schedules are functions of the counter, in float64 too. Slots belong to one
variable: a staged function whose argument it is has a trace for it alone, since it asks which one it is (`ref`).

One update rule serves dense and sparse gradients: `change` reads and writes whole variables, or `Rows` of them, and
treats all elements alike. So sparse updates are lazy: rows without a gradient do not decay.

Variables of 16 bits have float32 slots; their update is computed in float32 and rounded once (in float16 Adam's epsilon
of 1e-8 is zero).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

from limelight.core import device_scopes, dispatch, dtypes, module_calls
from limelight.core.autograph_hook import maybe_converted
from limelight.core.devices import CPU0
from limelight.core.dtypes import DType
from limelight.core.shapes import compatible
from limelight.core.sparse_gradient import SparseGradient
from limelight.core.spec import Constraint
from limelight.core.tensor import Tensor, TensorRef, as_tensor
from limelight.core.variable import Variable, created_by, found_again
from limelight.errors import ArgumentError, CallError, DTypeError, ShapeError, undefined_method
from limelight.module import Module
from limelight.ops.create.creation import zeros_like
from limelight.optim.argument_checks import check_names, not_negative, refuse_unknown, refuse_variables
from limelight.optim.gradient_checks import Gradient, check_lists, checked_gradient, variables_of
from limelight.optim.rows import Rows
from limelight.user_code import equivalents, hints
from limelight.user_code.warn_at import warn_here
from limelight.variable_paths import path_of, paths_of

Schedule: TypeAlias = Callable[[Tensor], Any]
Target: TypeAlias = Variable | Rows
"""What an update reads (`read_value`) and writes (`assign`): a variable, or those rows of it that have a gradient."""
Slots: TypeAlias = Mapping[str, Target]
_SHORT: Final = (dtypes.float16, dtypes.bfloat16)


class _Counter(Variable):
    """The number of steps done, where users of other libraries look for a method."""

    __slots__ = ()

    def __call__(self, *given: Any) -> Any:
        raise CallError(f"optimizer.step is how many steps were done; {equivalents.of_optimizers()['update']}")


_INTERNAL: Final = ("renew_slots", "untracked", "variables_with_slots", "edges")


class Optimizer(Module):
    """Base class of optimisers: changes variables by their gradients.

    A subclass says in `slot_names` what it keeps for each variable, and defines `change`. Slots are variables of the
    same shape that begin at zero; they are created when a variable is first updated (or by `build`), are not trainable,
    and are found, like the counter `step`, by `named_variables`. Variables of 16 bits have float32 slots, and their
    updates are computed in float32 and rounded once.

    A sparse gradient (see `ll.nn.embedding`) changes the rows that it names, and the same rows of the slots: the others
    stay as they are, moving averages and weight decay included ("lazy" updates).

    Args:
        learning_rate: a number from 0 on, a Variable, or a schedule: a function from the number of updates done so far
            (a float64 scalar) to the rate. Numbers are kept in a variable, so that `optimizer.learning_rate = 0.01`
            takes effect in staged steps too, without a new trace; all other settings are constants of a trace, and a
            change of one that was traced warns (LostChangeWarning).

    Raises:
        ArgumentError: a setting is out of its range, or an attribute is set that looks like one misspelt.
        CallError: there is no such setting.

    >>> import limelight as ll
    >>> class SignDescent(ll.optim.Optimizer):
    ...     def change(self, gradient, variable, slots, rate, t):
    ...         return rate * ll.sign(gradient)
    >>> v = ll.Variable([3.0, -2.0])
    >>> SignDescent(0.5).apply([ll.constant([7.0, -7.0])], [v])
    >>> v.numpy().tolist()
    [2.5, -1.5]
    """

    slot_names: ClassVar[tuple[str, ...]] = ()
    untracked: ClassVar[tuple[str, ...]] = ("slots", "_positions", "_skipped")  # checkpoints have slots by variable

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        check_names(cls, kwargs)
        refuse_variables(cls, args[0] if args else None)
        return super().__new__(cls)

    def __init__(self, learning_rate: float | Variable | Schedule) -> None:
        with created_by.override("optimiser"):
            self.step: Variable = _Counter(0, dtypes.int64, name="step", trainable=False)
            rate = _rate_variable(learning_rate)
        self.slots: list[dict[str, Variable]] = []
        self._positions: dict[TensorRef, int] = {}  # of a variable's slots in `slots`
        self._skipped: set[int] = set()  # uids of variables whose gradient was None
        # Under the property's own name, so that the variable's path is "learning_rate".
        vars(self)["learning_rate"] = rate

    if not TYPE_CHECKING:  # type checkers are to know of names that are missing

        def __getattr__(self, name: str) -> Any:
            return hints.missing_of_module(self, name, equivalents.of_optimizers())

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and name not in vars(self) and not hasattr(type(self), name):
            known = [k for k in vars(self) if k[0] != "_" and k not in ("step", "slots")]
            refuse_unknown(type(self), name, known)
        super().__setattr__(name, value)

    def change(self, gradient: Tensor, variable: Target, slots: Slots, rate: Tensor, t: Tensor) -> Tensor:
        """What to subtract from the variable; brings its slots up to date. To be defined by subclasses.

        Args:
            gradient: the gradient, or the rows of a sparse one; float32 for variables of 16 bits, else of the
                variable's dtype.
            variable: the variable, or its rows: read them with `read_value()`.
            slots: the slots by name, or the same rows of them: write with `assign`, and treat all elements alike.
            rate: the learning rate, a scalar of the dtype of `gradient`.
            t: the number of this update, from 1, a float64 scalar.

        Returns:
            A tensor of the shape and dtype of `gradient`.

        Raises:
            TypeError: the subclass does not define it.
        """
        error = undefined_method(self, "change(self, gradient, variable, slots, rate, t)")
        raise error

    @property
    def learning_rate(self) -> Variable | Schedule:
        """The variable that holds the rate, or the schedule. A number, or scalar tensor, that it is set to is assigned.

        Raises:
            ArgumentError: it is set, and follows a schedule; or it is set to a schedule.
            ShapeError: it is set to a tensor that is no scalar.
        """
        rate: Variable | Schedule = vars(self)["learning_rate"]
        return rate

    @learning_rate.setter
    def learning_rate(self, value: float | Tensor) -> None:
        if not isinstance(self.learning_rate, Variable):
            raise ArgumentError(
                f"the learning rate of this {type(self).__name__} follows a schedule, {self.learning_rate!r}, which "
                "staged steps have traced; make an optimiser with a number to change the rate by hand"
            )
        if callable(value):
            raise ArgumentError(
                f"the learning rate of this {type(self).__name__} is a number, kept in a variable; "
                f"a schedule is given when the optimiser is made, ll.optim.{type(self).__name__}(schedule)"
            )
        self.learning_rate.assign(as_tensor(value).astype(self.learning_rate.dtype))

    def apply(self, gradients: Sequence[Gradient | None], variables: Sequence[Variable] | Module = ()) -> None:
        """Updates each variable by the gradient at the same place, and counts one step.

        A variable whose gradient is None stays as it is, with one warning. Errors of the lists are told before anything
        changes. A variable's constraint is applied to its new value. Slots are read and then assigned: one thread at a
        time may apply an optimiser.

        Args:
            gradients: a list of tensors or sparse gradients, floating, each in the shape of its variable; or None.
            variables: a list of as many variables, or a module: those that it trains.

        Raises:
            ArgumentError: these are no such lists, all gradients are None, or a variable occurs twice.
            ShapeError: a gradient, or what a constraint returns, does not have the shape of its variable, or the
                learning rate is not a scalar.
            DTypeError: a gradient or a variable is not floating, or a constraint returns another dtype.

        >>> import limelight as ll
        >>> v, descent = ll.Variable(3.0), ll.optim.SGD(0.1)
        >>> with ll.GradientTape() as tape:
        ...     loss = v * v
        >>> descent.apply(tape.gradient(loss, [v]), [v])
        >>> round(v.read_value().item(), 6)
        2.4
        """
        name, listed = type(self).__name__, variables_of(variables)
        check_lists(name, gradients, listed)
        self._note_missing([i for i, g in enumerate(gradients) if g is None], listed)
        pairs = [(checked_gradient(name, g, v), v) for g, v in zip(gradients, listed, strict=True) if g is not None]
        if dispatch.active:
            module_calls.within(self, self._apply, (pairs,), kind="optimiser")
        else:
            self._apply(pairs)

    def _apply(self, pairs: Sequence[tuple[Gradient, Variable]]) -> None:
        done = self.step.read_value().astype(dtypes.float64)
        rate = self._rate(done)
        self.step.assign_add(1)
        if (calls := module_calls.calls_around()) is None:
            for gradient, variable in pairs:
                self._update_there(gradient, variable, rate, done)
            return
        calls.name_paths(self._own_paths(calls.now.name if calls.now else type(self).__name__))
        for gradient, variable in pairs:
            path = calls.path_of(variable) or variable.name
            calls.name_paths({slot._uid: f"{path}/{name}" for name, slot in self.slots_of(variable).items()})
            update = (gradient, variable, rate, done)
            module_calls.within(variable, self._update_there, update, kind="variable", name=path)

    def _update_there(self, gradient: Gradient, variable: Variable, rate: Any, done: Tensor) -> None:
        """`_update` on the variable's device: the rate and the count, which are numbers, would draw it to theirs."""
        if variable._device is CPU0:
            self._update(gradient, variable, rate, done)
            return
        with device_scopes.device(variable._device):
            self._update(gradient, variable, rate, done)

    def _own_paths(self, name: str) -> dict[int, str]:
        """What the counter and the rate are called in the graph of a trace, by uid."""
        rate = self.learning_rate
        own = {"step": self.step} | ({"learning_rate": rate} if isinstance(rate, Variable) else {})
        return {variable._uid: f"{name}.{attribute}" for attribute, variable in own.items()}

    def build(self, variables: Sequence[Variable] | Module) -> None:
        """Creates the slots of `variables`, a list or a module, now: before a staged step, or a checkpoint is read."""
        for variable in variables_of(variables):
            self.slots_of(variable)

    def slots_of(self, variable: Variable) -> dict[str, Variable]:
        """The slots of one variable, by name; they are created if need be.

        Args:
            variable: a variable that the optimiser updates.

        Returns:
            A dictionary of variables, zeros at first, in the shape of `variable`.
        """
        if not self.slot_names:
            return {}
        position = self._positions.get(variable.ref())
        if position is None:
            slots = {name: self._slot(name, variable) for name in self.slot_names}
            position = self._positions[variable.ref()] = len(self.slots)
            self.slots.append(slots)
        return self.slots[position]

    def renew_slots(self, variable: Variable) -> None:
        """Gives the slots of a variable what new ones have, if there are any: before its first update they are so.

        Args:
            variable: a variable that the optimiser updates.
        """
        position = self._positions.get(variable.ref())
        for name, slot in {} if position is None else self.slots[position].items():
            slot.assign(self._slot(name, variable).read_value())

    def variables_with_slots(self) -> list[tuple[Variable, dict[str, Variable]]]:
        """The variables that have slots, each with them."""
        return [(ref.deref(), self.slots[position]) for ref, position in self._positions.items()]

    def __dir__(self) -> list[str]:
        return hints.without_internals(type(self), super().__dir__(), _INTERNAL)

    def __repr__(self) -> str:
        settings = {name: x for name, x in vars(self).items() if isinstance(x, (int, float)) and name[0] != "_"}
        rate = self.learning_rate
        first = f"{rate._value_now().item():g}" if isinstance(rate, Variable) else repr(rate)
        return f"{type(self).__name__}({', '.join([first, *(f'{name}={x}' for name, x in settings.items())])})"

    def _rate(self, done: Tensor) -> Tensor:
        given = self.learning_rate
        rate = as_tensor(given if isinstance(given, Variable) else given(done))
        if rate.ndim:
            raise ShapeError(f"{type(self).__name__}: the learning rate must be a scalar, got {rate.spec}: {given!r}")
        return rate

    def _update(self, gradient: Gradient, variable: Variable, rate: Tensor, done: Tensor) -> None:
        t = done + 1.0
        wide = _wide(variable.dtype)
        target: Target = variable
        slots: Slots = self.slots_of(variable)
        if isinstance(gradient, SparseGradient):
            rows = gradient.coalesced()
            gradient, target = rows.values, Rows(variable, rows.indices)
            slots = {name: Rows(slot, rows.indices) for name, slot in self.slots_of(variable).items()}
        change = self.change(gradient.astype(wide), target, slots, rate.astype(wide), t)
        if wide == variable.dtype:
            target.assign_sub(change)
        else:
            target.assign((target.read_value().astype(wide) - change).astype(variable.dtype))
        if variable.constraint is not None:
            _constrain(variable, maybe_converted(variable.constraint))

    def _slot(self, name: str, variable: Variable) -> Variable:
        with device_scopes.device(variable.device), created_by.override("optimiser"), found_again.override(True):
            return Variable(
                lambda: zeros_like(variable.read_value(), dtype=_wide(variable.dtype)),
                name=f"{variable.name}/{name}",
                trainable=False,
                shape=variable.shape,
            )

    def _note_missing(self, missing: Sequence[int], listed: Sequence[Variable]) -> None:
        """Warns once of the variables at these places, which have no gradient; raises where none has one."""
        uids = [listed[i]._uid for i in missing]
        if len(missing) < len(listed) and self._skipped.issuperset(uids):
            return
        names = ", ".join(_names_of(missing, listed))
        why = "ll.explain.why_none(tape, loss, variable) says why"
        if len(missing) == len(listed):
            raise ArgumentError(f"{type(self).__name__}.apply: the gradient of every variable is None ({names}); {why}")
        self._skipped.update(uids)
        warn_here(f"{type(self).__name__}.apply: no gradient for {names}: not updated; {why}")


def _names_of(places: Sequence[int], listed: Sequence[Variable]) -> list[str]:
    """The variables at these places of a list, by path or name; with the place where others are called so, too."""
    paths = paths_of(listed)
    names = [paths.get(v._uid, v.name) for v in listed]
    many = Counter(names)
    return [repr(names[i]) + (f" (number {i + 1} of {len(listed)})" if many[names[i]] > 1 else "") for i in places]


def _constrain(variable: Variable, constraint: Constraint) -> None:
    value = variable.read_value()
    allowed = as_tensor(constraint(value))
    if allowed.dtype != value.dtype or not compatible(allowed.shape, value.shape):
        kind = DTypeError if allowed.dtype != value.dtype else ShapeError
        raise kind(
            f"the constraint of variable {path_of(variable)!r} must return a {value.spec} as it was given, not a "
            f"{allowed.spec}; nothing but the value may change"
        )
    variable.assign(allowed)


def _wide(dtype: DType) -> DType:
    """What updates of variables of `dtype` are computed in."""
    return dtypes.float32 if dtype in _SHORT else dtype


def _rate_variable(rate: Any) -> Variable | Schedule:
    if isinstance(rate, Variable):
        return rate
    if callable(rate):
        schedule: Schedule = rate
        return schedule
    not_negative("learning_rate", "the rate", rate)
    return Variable(rate, dtypes.float64, name="learning_rate", trainable=False)
