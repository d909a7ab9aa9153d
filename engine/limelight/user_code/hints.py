"""What to write instead: for names of other libraries, misspelt names, and errors of Python's.

The tables say what other libraries' names are called here. The notes are added to errors that Python itself raises: for
sizes that are unknown while tracing, for keywords of other libraries, and for tensors that have no value yet.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import FrameType, ModuleType
from typing import Any, Final

from limelight.errors import mark_user_error
from limelight.user_code import source_line
from limelight.user_code.definitions import parsed_expression

FUNCTIONS: Final[Mapping[str, str]] = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "array": "constant",
    "as_tensor": "asarray", "cast": "astype", "cat": "concat", "clamp": "clip", "clip_by_value": "clip",
    "concatenate": "concat", "conjugate": "conj", "convert_to_tensor": "constant", "div": "divide", "eq": "equal",
    "fabs": "abs", "from_numpy": "constant", "fmod": "remainder", "ge": "greater_equal", "gt": "greater",
    "Function": "function", "compile": "function", "bitwise_not": "bitwise_invert",
    "invert": "bitwise_invert", "jit": "function", "le": "less_equal",
    "lt": "less", "mod": "remainder", "mul": "multiply", "ne": "not_equal", "neg": "negative", "norm": "linalg.norm",
    "numpy_function": "py_func", "permute": "permute_dims", "power": "pow", "range": "arange", "rand": "random.uniform",
    "randn": "random.normal", "randint": "random.integers", "reduce_all": "all", "reduce_any": "any",
    "reduce_logsumexp": "logsumexp", "reduce_max": "max", "reduce_mean": "mean", "reduce_min": "min",
    "reduce_prod": "prod", "reduce_std": "std", "reduce_sum": "sum", "rint": "round", "sub": "subtract",
    "true_divide": "divide", "unbind": "unstack", "unique": "unique_values", "unsqueeze": "expand_dims",
    "vmap": "vectorize",
    "no_grad": "stop_gradient", "detach": "stop_gradient", "lax_scan": "scan", "checkpoint": "recompute_grad",
    "einsum_path": "einsum", "manual_seed": "random.seed", "set_seed": "random.seed", "Sequential": "nn.Sequential",
    "Linear": "nn.Dense", "Parameter": "Variable", "array_split": "split", "hstack": "concat", "vstack": "concat",
    "topk": "top_k", "shape": "shape_of", "svd": "linalg.svd", "inv": "linalg.inv", "inverse": "linalg.inv",
    "cross_entropy": "nn.softmax_cross_entropy", "mse_loss": "nn.mean_squared_error", "index_select": "take",
    "Print": "debug.print", "Assert": "debug.check", "trapz": "trapezoid",
    "ndarray": "Tensor", "double": "float64", "long": "int64", "half": "float16",
}  # fmt: skip
"""Functions of PyTorch, NumPy, TensorFlow and JAX, by what comes after `ll.`."""

_ASSIGN: Final = (
    "Call a new module once, since its weights are made by the first call (an optimiser's by the first `apply`); then "
    "`now = dict(module.named_variables())`, `assert now.keys() == saved.keys()`, and "
    "`for name, v in now.items(): v.assign(saved[name])`"
)
ADVICE: Final[Mapping[str, str]] = {
    "save": "variables are NumPy arrays to others: "
    "np.savez(path, **{name: v.numpy() for name, v in module.named_variables()})",
    "load": f"variables are assigned: saved = np.load(path). {_ASSIGN}",
    "print": 'print(x) shows tensors; with the graph of a staged function runs ll.debug.print("{}", x)',
    "tensor": "write ll.constant(value), or ll.asarray(value)",
    "dtypes": "dtypes are ll.float32 and so on; the module is limelight.core.dtypes",
    "shapes": "x.shape is a tuple of sizes; the module is limelight.core.shapes",
}
"""What has no counterpart by one name, and how to do without."""

METHODS: Final[Mapping[str, str]] = {
    "backward": "gradients are asked of a tape: `with ll.GradientTape() as tape: ...`, then tape.gradient(loss, x); or "
    "ll.grad(f)(x)",
    "grad": "gradients are results, not attributes: g = tape.gradient(loss, x), or ll.grad(f)(x)",
    "requires_grad": "a tape watches variables by itself, and tensors when told to: tape.watch(x)",
    "requires_grad_": "a tape watches variables by itself, and tensors when told to: tape.watch(x)",
    "detach": "write ll.stop_gradient(x)",
    "clone": "tensors are immutable: use x itself",
    "copy": "tensors are immutable: use x itself",
    "view": "write x.reshape(shape)",
    "flatten": "write x.reshape(-1)",
    "permute": "write x.transpose((1, 0)), with the axes as a tuple",
    "unsqueeze": "write x.expand_dims(axis)",
    "cuda": "write x.gpu()",
    "float": "write x.astype(ll.float32)",
    "double": "write x.astype(ll.float64)",
    "long": "write x.astype(ll.int64)",
    "int": "write x.astype(ll.int32)",
    **{
        name: f"tensors are immutable; what changes is a variable: v = ll.Variable(x), v.{name}(value), or for a part "
        f"of it v.at[i].{name}(value)"
        for name in ("assign", "assign_add", "assign_sub")
    },
    "add_": "tensors are immutable: write x = x + y",
    "mul_": "tensors are immutable: write x = x * y",
    "fill": "tensors are immutable: write ll.full_like(x, value)",
    "norm": "write ll.linalg.norm(x)",
    "matmul": "write x @ y",
    "dot": "write x @ y, or ll.dot(x, y)",
    "numel": "write x.size",
    "dim": "write x.ndim",
    "expand": "write x.broadcast_to(shape)",
    "masked_fill": "write ll.where(mask, value, x)",
}
"""Methods and attributes of other libraries' tensors."""

MODULES: Final[Mapping[str, str]] = {
    "parameters": "write module.trainable_variables, which is a list",
    "named_parameters": "write module.named_variables()",
    "state_dict": "write {name: v.numpy() for name, v in module.named_variables()}, arrays that stay as they are",
    "load_state_dict": _ASSIGN,
    "zero_grad": "gradients are results here, and nothing needs to be reset",
    "forward": "write module(x); subclasses define call(self, x)",
    "weights": "write module.variables",
    "trainable_weights": "write module.trainable_variables",
    "train": "modules have no mode: write model(x, training=True), where a layer asks for it",
    "eval": "modules have no mode: a call means training=False unless it says otherwise",
}
"""Methods and attributes of other libraries' modules."""

OPTIMIZERS: Final[Mapping[str, str]] = {
    **MODULES,
    "apply_gradients": "write optimizer.apply(gradients, variables): two lists, not one of pairs",
    "minimize": "write `with ll.GradientTape() as tape: loss = ...`, then "
    "optimizer.apply(tape.gradient(loss, variables), variables)",
    "update": "write optimizer.apply(gradients, variables), which changes the variables",
    "param_groups": "write optimizer.learning_rate; other settings are attributes, too",
}
"""The same of optimisers."""


def suggested(name: str, public: Iterable[str]) -> str:
    """What to write instead of `ll.name`, as the end of a message; nothing where nothing is near. No modules."""
    if name in ADVICE:
        return f": {ADVICE[name]}"
    known = sorted(public)
    replacement = FUNCTIONS.get(name)
    if replacement is None:
        below = [other for other in known if other.endswith(f".{name}")]
        near = below or _near(name, known, 0.75) or _within(name, known)
        replacement = near[0] if near else None
    return f"; write ll.{replacement}" if replacement else ""


def missing_name_hint(part: str, public: Iterable[str]) -> Callable[[str], Any]:
    """The `__getattr__` of the public module `part`, as "nn", with names that are `public`."""

    def missing(name: str) -> Any:
        hint = "" if name.startswith("__") else suggested(name, [f"{part}.{known}" for known in public])
        raise _marked(AttributeError(f"module 'limelight.{part}' has no attribute {name!r}{hint}", name=name))

    return missing


def _marked(error: AttributeError) -> AttributeError:
    """As the user's mistake, who need not see where in the library it was found."""
    mark_user_error(error)
    return error


def _near(name: str, known: Iterable[str], likeness: float) -> list[str]:
    import difflib  # noqa: PLC0415  # only a mistake needs it: importing limelight is to be quick

    return difflib.get_close_matches(name, list(known), 1, likeness)


def _within(name: str, known: Iterable[str]) -> list[str]:
    """Names of submodules that are nearly so: a misspelt `ll.nn.softmax` without its `nn`."""
    last = {other.rpartition(".")[2]: other for other in known}
    return [last[other] for other in _near(name, last, 0.8)]


def _at_part(method: str) -> str | None:
    """What to write for `v[i].assign(x)`, where the user's line has that; None anywhere else."""
    if not method.startswith("assign"):
        return None
    text = source_line.user_segment()
    node = None if text is None else parsed_expression(text)
    part = node.func if isinstance(node, ast.Call) else node
    if not (isinstance(part, ast.Attribute) and part.attr == method and isinstance(part.value, ast.Subscript)):
        return None
    variable, index = ast.unparse(part.value.value), ast.unparse(part.value)
    place = f"{variable}.at{index[len(variable) :]}"
    return f"{index} is a part of its value, a tensor, and tensors are immutable; write {place}.{method}(value)"


class Elsewhere:
    """Stands where users of other libraries look for a method of a tensor, and says what to write.

    No `__getattr__`: with that, Python looks up every attribute of a tensor the slow way.
    """

    def __init__(self, name: str, hint: str) -> None:
        self.name = name
        self.hint = hint

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is None:
            return self
        words = f"a tensor has no attribute {self.name!r}: {_at_part(self.name) or self.hint}"
        raise _marked(AttributeError(words, name=self.name, obj=tensor))


def missing_of_module(self: Any, name: str, hints: Mapping[str, str] = MODULES) -> Any:
    """The same for a module, whose properties may fail with an AttributeError of their own: it is raised again."""
    own = getattr(type(self), name, None)
    if own is not None and hasattr(own, "__get__"):
        return own.__get__(self, type(self))
    hint = hints.get(name)
    words = f"{type(self).__name__!r} object has no attribute {name!r}" + (f": {hint}" if hint else "")
    raise _marked(AttributeError(words, name=name, obj=self))


# Notes on errors of Python's

_OF_NUMBERS: Final = re.compile(r"unsupported operand|not supported between|as an integer|real number|must be")
_KEYWORD: Final = re.compile(r"got an unexpected keyword argument '(\w+)'")
KEYWORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "dim": ("axis", "axes"), "dims": ("axes", "axis"), "axes": ("axis",), "axis": ("axes",), "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",), "unbiased": ("correction",), "ddof": ("correction",),
    "a_min": ("min",), "a_max": ("max",),
}  # fmt: skip
"""What keywords of other libraries are called here, the likeliest first."""


def note_sizes(error: BaseException) -> None:
    """For a trace in which sizes are unknown: says what to write if it was one of them that Python could not use."""
    said = str(error) if type(error) is TypeError else ""
    if "NoneType" in said and _OF_NUMBERS.search(said):
        _add(
            error,
            "If that None is a size of x.shape, unknown while tracing: write ll.shape_of(x)[0], or x.sizes()[0]; for "
            "x.size write ll.prod(ll.shape_of(x))",
        )


def note_keyword(error: BaseException) -> None:
    """Says what a keyword is called here, where a function of limelight's was called with that of another library."""
    match = _KEYWORD.search(str(error)) if type(error) is TypeError else None
    if match is None or match[1] not in KEYWORDS or error.__traceback__ is None:
        return
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    function = _called(tb.tb_frame, tb.tb_lasti)
    if function is None or not source_line.is_engine(function.__code__):
        return
    known = inspect.signature(function).parameters
    name = next((name for name in KEYWORDS[match[1]] if name in known), None)
    if name is not None:
        _add(error, f"In limelight it is called {name}: write {name}=...")


def _add(error: BaseException, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _called(frame: FrameType, instruction: int) -> Any:
    """The Python function that an instruction of `frame` calls by a name; None where there is none to be found."""
    text = source_line.segment(frame.f_code, instruction)
    call = None if text is None else parsed_expression(text)
    names: list[str] = []
    node: Any = call.func if isinstance(call, ast.Call) else None
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = {**vars(builtins), **frame.f_globals, **source_line.locals_of(frame)}.get(node.id)
    for name in names:  # of other objects the class is asked: an attribute of theirs may do anything
        value = inspect.getattr_static(value if isinstance(value, ModuleType) else type(value), name, None)
    return value if inspect.isfunction(value) else None


AUTOGRAPH_DOES_IT: Final = ", or let ll.function(autograph=True) rewrite the `if`, `while` and `for` of the source"
_BRANCHES: Final = (
    "For a choice by value write ll.cond(pred, true_fn, false_fn) or ll.where(pred, x, y), for a loop "
    f"ll.while_loop(cond, body, loop_vars){AUTOGRAPH_DOES_IT}"
)
_CONVERSIONS: Final = (".numpy()", ".item()", "float()", "complex()")
_PYTHON: Final = "; for arbitrary Python on real values ll.py_func(fn, inputs, output_specs)"
_ARGUMENT: Final = "; or take the value as a plain Python argument, which is known while tracing"


def without_value(asked: str) -> str:
    """What to write instead of asking a symbolic tensor for its value: control flow for what steers Python."""
    if asked.startswith(("bool()", "int()", "use as")):
        return _BRANCHES + _PYTHON + _ARGUMENT
    way = f"Leave out `{asked}`" if asked in _CONVERSIONS else "Compute with ll"
    return f"{way}: limelight's ops take the tensor as it is{_PYTHON}{_ARGUMENT}"
