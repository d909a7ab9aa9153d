"""Ops: what each one is, declared in one block, and the registry of all of them.

One op, one block: shape rule, kernel, gradient rules, what a tape saves, how it is batched, then (beside it) the public
function. A kernel is written over an array namespace `xp`, so one serves NumPy, CuPy and `jax.numpy`; `special` names
the backend that does better. Gradient rules are written with tensor operators and methods, so files of ops need not
import one another, and gradient code is itself recorded, traced and differentiated. They say by the names of their
parameters what they need, which is then all that a tape saves, and only for the inputs that are watched.

Kernels see arrays of one dtype, and a kernel's result has exactly the shape and dtype that `infer` says: tests check it
for the engine's ops, and `op_checks` at each run for the user's.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from weakref import ref

from limelight.core import backends, dtypes, op_checks
from limelight.core.devices import CPU0, Device
from limelight.core.dtypes import KINDS, DType, accepted
from limelight.core.spec import Spec
from limelight.errors import ArgumentError, DeviceError, GradientError
from limelight.user_code.source_line import GENERATED_PREFIX

Effect: TypeAlias = Literal["read", "write", "writes", "random", "io"] | None
Infer: TypeAlias = Callable[..., Spec | tuple[Spec, ...]]
Kernel: TypeAlias = str | Callable[..., Any]
Rule: TypeAlias = Callable[..., Any]


class Operand(NamedTuple):
    """A tensor input. `accepts` is None for uniform operands: they share a dtype, which the op's `accepts` governs."""

    name: str
    accepts: str | None


class Domain(NamedTuple):
    """Where a real op is smooth, for explanations of results that are NaN or infinite.

    Code is written with "{x}" for the operand and "{ll}" for the library's name.

    Args:
        operand: the place of the operand that matters.
        condition: the code of a condition that holds for operands where the op and its slope are finite.
        inside: the code of a number for which it holds.
        why: what goes wrong outside.
        nearest: the code of an operand that is moved inside, where a result of 0 instead would be wrong.
    """

    operand: int
    condition: str
    inside: str
    why: str
    nearest: str = ""


TapeEntry: TypeAlias = tuple[Any, ...]
"""What a tape keeps of a recorded op: (recipe, uid, shape and dtype of the output, code, instruction, *what rules need,
*uids of the inputs). It is flat, since each nested tuple costs as much as a kernel. `autodiff.tape_entries` names its
fields."""
SAVED: Final = 6
"""Where in an entry begins what rules need."""


@dataclass(frozen=True, slots=True, eq=False)
class VjpRecipe:
    """How an op is recorded, and its gradient pulled back, for one pattern of watched inputs.

    Recording: `save(inputs, out, attrs)` returns what the rules need, in the order of `names`. Where operands are plain
    tensors or Python scalars, `make_entry(x, y, out, uid, dtype, code, instruction, uid of x, uid of y)` makes the
    whole entry of an op with two inputs and no parameters, or with one: then `y` are its parameters. Other ops have
    None.

    Backward: `pulls` has a triple for each input with a rule, its place in the entry, its bit in a mask, and a
    function of the output's gradient and the entry. A variadic op has a single `pull_all(g, entry, needed)` instead,
    which returns a tuple, and one recipe for all masks.
    """

    op: Op
    mask: int
    names: tuple[str, ...]
    save: Callable[[tuple[Any, ...], Any, tuple[Any, ...]], tuple[Any, ...]]
    make_entry: Any
    pulls: tuple[tuple[int, int, Callable[[Any, TapeEntry], Any]], ...]
    pull_all: Callable[[Any, TapeEntry, tuple[bool, ...]], tuple[Any, ...]] | None

    @property
    def first_input(self) -> int:
        """Where in an entry the uids of the inputs begin."""
        return SAVED + len(self.names)


class _VjpRecipes(dict[int, "VjpRecipe | None"]):
    """The recipes of an op by mask, each made when it is first asked for; None where the op has no gradient.

    They do not keep the op, whose attribute they are: executors make ops that go with their graphs.
    """

    def __init__(self, op: Op) -> None:
        super().__init__()
        self._op = ref(op)

    @property
    def op(self) -> Op:
        """Whose they are."""
        op = self._op()
        assert op is not None, "whoever asks has just come from it"
        return op

    def __missing__(self, mask: int) -> VjpRecipe | None:
        recipe = self[mask] = None if self.op.vjp is None else _compile_recipe(self.op, mask)
        return recipe


class TapedVariant(NamedTuple):
    """The variant of an op that a tape records instead: it also returns what its gradient needs.

    So do calls of staged functions and control flow, and a tape knows nothing about these. An outer tape sees the
    variant, which has a variant of its own: every order of derivative comes from the same rule.
    """

    op: Op
    attrs: tuple[Any, ...]
    result: Callable[[Any], Any]  # from the variant's outputs to what the op itself would have returned


class Op:
    """One primitive operation. It compares equal to its name, so `node.op == "matmul"` reads well.

    Args:
        name: its name.
        inputs: names of the tensor inputs, "x y", or "*xs" for any number (see `defop`).
        attrs: names of the static parameters.
        infer: `infer(*specs, *attrs)`, the only rule for shapes and dtypes.
        kernel: `kernel(xp, *arrays, *attrs)`, or the name of a function of `xp`.
        accepts: the kind of dtypes that uniform inputs may have.
        vjp: gradient rules by input.
        why_no_gradient: why there are none.
        maths: the rules as formulas.
        effect: "read" or "write" (of the variable that is input 0), "writes" (of all variables among the inputs),
            "random" (a draw from the generator that is input 0) or "io": such ops are never folded or shared, and but
            for reads never pruned.
        multiple: whether it has several outputs.
        special: kernels for single backends, by name, where they do better; None where there is none.
        higher_order: whether parameters are staged functions; each takes the last inputs of the op, as many as its
            graph has.
        passes: `passes(specs, attrs)` are the specs of what a staged function gets, where these are not those of the
            inputs (scan).
        placement: `placement(*attrs)` is the device, for an op that says itself where it runs (to_device).
        on_host: names of inputs that its kernels read on the host, whatever the device (sizes of `reshape_dynamic`).
        of_shapes: whether it computes from the shapes of its operands alone, which then may be anywhere (shape_of).
        save: `save(inputs, out, attrs)` replaces saving by parameter names: the one rule is then called rule(g, saved,
            needed).
        taped: `taped(inputs, attrs, mask)` may name the variant that a tape records instead, or None for "record
            nothing"; `mask` has a bit for each input that the tape watches, -1 where nobody knows.
        fresh: whether its NumPy kernel returns new memory, which it neither keeps nor shares with an operand; executors
            may write over such a result. Of ufuncs, and of some functions of NumPy, that is known without.
        view: whether its result, as a rule, shares the memory of its first operand.
        linear: names of inputs in each of which the op is linear while the others stay (of "*xs": in all together).
        elementwise: whether each element of the result is computed from those at its place; None where the shape rule
            says it.
        jvp: `jvp(inputs, tangents, attrs)` returns the result and its tangents, where going through `vjp` would not do.
        batching: how `vectorize` takes the op: the name of a kind ("matmul"; `batching.rule_table.KINDS` has them),
            "loop" for example by example, or a rule of its own, `rule(site)`. None: by `elementwise`, or as a reduction
            if its parameters begin with "axis keepdims"; else in a loop.
        domain: where the op is smooth, if that is not everywhere.
        integers: the dtype that integers and booleans are converted to by an op that takes neither.
    """

    def __init__(
        self,
        name: str,
        *,
        inputs: str,
        attrs: str = "",
        infer: Infer,
        kernel: Kernel,
        accepts: str = "any",
        vjp: Mapping[str, Rule] | None = None,
        why_no_gradient: str = "",
        maths: Mapping[str, str] | None = None,
        effect: Effect = None,
        multiple: bool = False,
        special: Mapping[str, Kernel | None] | None = None,
        fresh: bool = False,
        view: bool = False,
        higher_order: bool = False,
        passes: Callable[[Sequence[Spec], tuple[Any, ...]], Sequence[Spec]] | None = None,
        placement: Callable[..., Device] | None = None,
        on_host: str = "",
        of_shapes: bool = False,
        save: Callable[[tuple[Any, ...], Any, tuple[Any, ...]], tuple[Any, ...]] | None = None,
        taped: Callable[..., TapedVariant | None] | None = None,
        linear: str = "",
        elementwise: bool | None = None,
        jvp: Callable[[tuple[Any, ...], Sequence[Any], tuple[Any, ...]], tuple[Any, Any]] | None = None,
        batching: str | Callable[..., Any] | None = None,
        domain: Domain | None = None,
        integers: DType | None = None,
    ) -> None:
        self.name = name
        self.variadic = inputs.startswith("*")
        self.operands = tuple(_operand(word) for word in inputs.lstrip("*").split())
        self.uniform = not self.variadic and all(operand.accepts is None for operand in self.operands)
        self.attrs = tuple(attrs.split())
        self.axis_at = next((i for i, attr in enumerate(self.attrs) if attr in ("axis", "axes")), None)
        self.infer = infer
        self.kernel = kernel
        self.accepts_word = accepts
        self.accepts = accepted(accepts)
        self.vjp = vjp
        self.why_no_gradient = why_no_gradient
        self.maths = dict(maths or {})
        self.effect: Effect = effect
        self.multiple, self.special = multiple, dict(special or {})
        self.fresh, self.view = fresh, view
        self.higher_order, self.passes = higher_order, passes
        self.placement, self.of_shapes = placement, of_shapes
        self.on_host = frozenset([i for i, operand in enumerate(self.operands) if operand.name in on_host.split()])
        has_kernel = self.special.get("numpy", kernel) is not None
        self.direct = has_kernel and not (multiple or higher_order or placement)
        self.save, self.taped = save, taped
        self.linear = frozenset(linear.split())
        self.elementwise = getattr(infer, "elementwise", False) if elementwise is None else elementwise
        self.jvp, self.batching = jvp, batching
        self.domain, self.integers = domain, integers
        self.foreign = False
        self.recipes = _VjpRecipes(self)
        self._kernels: dict[str, Callable[..., Any]] = {}

    def kernel_on(self, backend: str) -> Callable[..., Any]:
        """The kernel for a backend, called as kernel(*arrays, *attrs)."""
        kernel = self._kernels.get(backend)
        if kernel is None:
            kernel = self._kernels[backend] = self._resolve(backend)
        return kernel

    @property
    def stays_on_host(self) -> tuple[str, ...]:
        """Operands that kernels read on the host, and static parameters, which are Python's: they are on no device."""
        return (*[self.operands[i].name for i in sorted(self.on_host)], *self.attrs)

    @functools.cached_property
    def numpy_kernel(self) -> Callable[..., Any]:
        """`kernel_on("numpy")`, without the look-up."""
        return self.kernel_on("numpy")

    def recipe(self, mask: int) -> VjpRecipe:
        """How to record and pull back when the inputs in bit mask `mask` are watched (any non-zero mask if variadic).

        Raises GradientError when the op has no rule for a watched input and did not declare why.
        """
        recipe = self.recipes[mask]
        assert recipe is not None, f"{self.name} is not differentiable"
        return recipe

    @property
    def rule(self) -> str:
        """The gradient rule in maths, for display."""
        return ",  ".join(self.maths.values())

    def _resolve(self, backend: str) -> Callable[..., Any]:
        library_name = backends.library_of(backend)
        kernel = self.special.get(library_name, self.kernel)
        if kernel is None:
            raise DeviceError(f"{self} is not written for {backends.TITLES.get(library_name, library_name)}")
        library = backends.load(backend)
        resolved: Callable[..., Any]
        if isinstance(kernel, str):
            resolved = functools.reduce(getattr, kernel.split("."), library.xp)
        else:
            resolved = functools.partial(kernel, library.xp)
        resolved = library.prepared(resolved)
        return op_checks.checked_kernel(self, resolved) if self.foreign and not self.higher_order else resolved

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Runs the op: `eager.direct_call.call` takes this place."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<op {self.name}>"


_ops: Final[dict[str, Op]] = {}
_homes: Final[dict[str, str]] = {}  # the modules that define them


def defop(name: str, *, why_no_gradient: str = "", vjp: Mapping[str, Rule] | None = None, **fields: Any) -> Op:
    """Declares an op and registers it: then it runs, is differentiated, staged and shown like any other.

    Whenever an op of yours runs, its result is checked against `infer` (ShapeError, DTypeError), and what its rules
    give against the inputs (GradientError). Defining it again in the same module (reloaded, or a cell that is run
    again) replaces it. More in docs/defining_ops.md.

    Args:
        name: its name, which no other module has taken.
        why_no_gradient: why there are no rules, where `vjp` is None.
        vjp: for each input a rule for its gradient, in tensor operators, which says by the names of its parameters what
            it needs: `g` (the gradient of the result), inputs, `out`, `x_shape`, `x_dtype`, parameters of the op.
        **fields: by name those that follow, of which `attrs`, `accepts` and `maths` may be left out, and further ones.
        inputs: names of the tensor inputs, "x y", or "*xs" for any number. They share a dtype of a kind in `accepts`
            (see `KINDS`); "i:integer" is an input apart.
        attrs: names of the static parameters, which are hashable.
        infer: `infer(*specs, *attrs)` is the TensorSpec of the result, where sizes may be None; it raises ShapeError or
            DTypeError.
        kernel: `kernel(xp, *arrays, *attrs)` is the result, by an array library `xp`; or the name of a function of it.
        maths: the rules as formulas.

    Returns:
        The op, which can be called: `op(x, y, attr=...)`.

    Raises:
        ArgumentError: another module has taken the name, a rule names something that the op does not have, there is
            neither `vjp` nor a reason, or a field is missing or not of these forms.
        TypeError: there is no such field.

    >>> import limelight as ll
    >>> cubed = ll.defop(
    ...     "cubed", inputs="x", infer=lambda x: x, kernel=lambda xp, x: x**3, vjp={"x": lambda g, x: 3.0 * g * x * x}
    ... )
    >>> ll.gradcheck(cubed, ll.constant([1.0, 2.0])).ok
    True
    """
    _check_fields(name, vjp, fields)
    home = str(sys._getframe(1).f_globals.get("__name__", "?"))
    if _homes.get(name, home) != home:
        raise ArgumentError(f"op {name}: {_homes[name]} has defined an op of this name; give yours another")
    op = Op(name, vjp=vjp, why_no_gradient=why_no_gradient, **fields)
    for target, rule in (vjp or {}).items():
        _check_rule(op, target, rule)
    if vjp is None and not why_no_gradient:
        raise ArgumentError(f"op {name}: give `vjp` rules, or say in `why_no_gradient` why there are none")
    if home.partition(".")[0] != "limelight":
        _check_each_run(op)
    _ops[name] = op
    _homes[name] = home
    return op


def _check_each_run(op: Op) -> None:
    """Checks each run of an op that is not limelight's own (see `op_checks`)."""
    op.foreign = True
    if op.vjp is not None and op.save is None:
        op.vjp = {target: op_checks.checked_rule(op, target, rule) for target, rule in op.vjp.items()}


def _check_fields(name: str, vjp: Any, fields: Mapping[str, Any]) -> None:
    """Raises ArgumentError for fields that would only fail later, and less clearly."""
    for needed in ("inputs", "infer", "kernel"):
        if needed not in fields:
            raise ArgumentError(f"op {name}: `{needed}` is missing; see docs/defining_ops.md")
    words = [word.partition(":")[2] for word in fields["inputs"].split()]
    for word in (fields.get("accepts", "any"), *[word for word in words if word not in ("", "var")]):
        if word not in KINDS:
            raise ArgumentError(f"op {name}: {word!r} is no kind of dtype; write one of {', '.join(sorted(KINDS))}")
    if vjp is not None and not isinstance(vjp, Mapping):
        raise ArgumentError(f'op {name}: `vjp` must name its inputs, vjp={{"x": rule}}, got a {type(vjp).__name__}')
    for target, rule in (vjp or {}).items():
        if not callable(rule):
            raise ArgumentError(f"op {name}: the gradient rule for {target!r} must be a function, got {rule!r}")


def get(name: str) -> Op:
    """The op called `name`; raises ArgumentError when there is none."""
    try:
        return _ops[name]
    except KeyError:
        raise ArgumentError(f"there is no op called {name!r}") from None


def home_of(name: str) -> str:
    """The module that defines the op called `name`."""
    return _homes.get(name, "")


def all_ops() -> dict[str, Op]:
    """All registered ops by name."""
    return dict(_ops)


def _operand(word: str) -> Operand:
    name, _, accepts = word.partition(":")
    return Operand(name, accepts or None)


# Gradient rules say by their parameters' names what they need; the functions below turn that into a saver and a puller.


def _parameters(rule: Rule) -> tuple[str, ...]:
    return tuple(inspect.signature(rule).parameters)


_OUTPUTS: Final = ("out_0", "out_1", "out_2", "out_3")
"""How the rule of an op with several outputs asks for one of them."""


def _rule_names(op: Op) -> set[str]:
    operands = {operand.name for operand in op.operands}
    facts = {f"{name}_{fact}" for name in operands for fact in ("shape", "dtype", "device")}
    outputs = set(_OUTPUTS) if op.multiple else set()
    return {"g", "needed", "saved", "out"} | outputs | operands | facts | set(op.attrs)


def _check_rule(op: Op, target: str, rule: Rule) -> None:
    if target not in {operand.name for operand in op.operands}:
        raise ArgumentError(f"op {op.name}: a gradient rule for {target!r}, which is not an input")
    unknown = set(_parameters(rule)) - _rule_names(op)
    if unknown:
        raise ArgumentError(
            f"op {op.name}: the rule for {target} asks for {sorted(unknown)}; it may ask for {sorted(_rule_names(op))}"
        )


def _compile_recipe(op: Op, mask: int) -> VjpRecipe:
    rules = _wanted_rules(op, mask)
    mask = -1 if op.variadic else mask
    if op.save is not None:
        save = op.save
        pull_all = _evaluated(f"lambda g, entry, needed: rule(g, entry[{SAVED}], needed)", {"rule": rules[0]})
        return VjpRecipe(op, mask, ("saved",), lambda *given: (save(*given),), None, (), pull_all)
    names: list[str] = []
    for rule in rules:
        if rule is not None:
            names += [name for name in _parameters(rule) if name not in ("g", "needed", *names)]
    values = "".join([f"{_saved_expression(op, name)}, " for name in names])
    save = _evaluated(f"lambda inputs, out, attrs: ({values})", {"sizes": _sizes, "dtype": _dtype, "device": _device})
    if op.variadic:
        return VjpRecipe(op, mask, tuple(names), save, None, (), _compiled_pull(rules[0], names))
    first = SAVED + len(names)
    pulls = [(first + i, 1 << i, _compiled_pull(rule, names)) for i, rule in enumerate(rules) if rule is not None]
    scope: dict[str, Any] = {}
    recipe = VjpRecipe(op, mask, tuple(names), save, _entry_maker(op, values, scope), tuple(pulls), None)
    scope["recipe"] = recipe
    return recipe


def _entry_maker(op: Op, values: str, scope: dict[str, Any]) -> Any:
    """A function that makes an entry from plain tensors; `values` are the expressions for what the rules need."""
    n = len(op.operands)
    if n > 2 or (n == 2 and op.attrs):
        return None
    for long, short in ((".sizes()", "._data.shape"), ("inputs[0]", "x"), ("inputs[1]", "y"), ("attrs[", "y[")):
        values = values.replace(long, short)
    entry = f"(recipe, uid, out._data.shape, dtype, code, at, {values}{('first', 'first, second')[n - 1]})"
    return _evaluated(f"lambda x, y, out, uid, dtype, code, at, first, second: {entry}", scope)


def _compiled_pull(rule: Rule | None, saved: Sequence[str]) -> Any:
    """The rule as a function of the output's gradient and an entry."""
    given = {"g": "g", "needed": "needed"} | {name: f"entry[{SAVED + i}]" for i, name in enumerate(saved)}
    arguments = ", ".join([given[name] for name in _parameters(rule)]) if rule is not None else ""
    return _evaluated(f"lambda g, entry, needed=None: rule({arguments})", {"rule": rule})


def _evaluated(expression: str, scope: dict[str, Any]) -> Any:
    """The value of an expression made of names that `defop` has checked."""
    return eval(compile(expression, f"{GENERATED_PREFIX}gradient recipe>", "eval"), scope)


def _wanted_rules(op: Op, mask: int) -> list[Rule | None]:
    if op.vjp is None:
        return [None] * (1 if op.variadic else len(op.operands))
    if op.variadic:
        return [op.vjp[op.operands[0].name]]
    wanted = [op.vjp.get(operand.name) if mask >> i & 1 else None for i, operand in enumerate(op.operands)]
    missing = [o.name for i, o in enumerate(op.operands) if mask >> i & 1 and o.name not in op.vjp and not o.accepts]
    if missing:
        raise GradientError(f"op {op.name} has no gradient rule for its input {missing[0]!r}")
    return wanted


def _saved_expression(op: Op, name: str) -> str:
    if name == "out":
        return "out"
    if op.multiple and name in _OUTPUTS:
        return f"out[{_OUTPUTS.index(name)}]"
    if name in op.attrs:
        return f"attrs[{op.attrs.index(name)}]"
    for i, operand in enumerate(op.operands):
        values = "inputs" if op.variadic else f"inputs[{i}]"
        if name == operand.name:
            return values
        for fact, function in (("shape", "sizes"), ("dtype", "dtype"), ("device", "device")):
            if name == f"{operand.name}_{fact}":
                direct = {"shape": f"{values}.sizes()", "dtype": f"{values}.dtype"}.get(fact, f"{values}._device")
                return f"tuple([{function}(x) for x in inputs])" if op.variadic else direct
    raise AssertionError(name)


def _sizes(x: Any) -> Any:
    return x.sizes() if hasattr(x, "sizes") else ()


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else dtypes.default_for(x)


def _device(x: Any) -> Device:
    device: Device = getattr(x, "_device", CPU0)
    return device
