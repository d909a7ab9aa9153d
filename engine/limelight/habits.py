"""Names from other libraries, and what they are called here: for errors that say what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

FUNCTIONS: Final[Mapping[str, str]] = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "array": "constant",
    "as_tensor": "asarray", "cast": "astype", "cat": "concat", "clamp": "clip", "clip_by_value": "clip",
    "concatenate": "concat", "conjugate": "conj", "convert_to_tensor": "constant", "div": "divide", "eq": "equal",
    "fabs": "abs", "from_numpy": "constant", "fmod": "remainder", "ge": "greater_equal", "gt": "greater",
    "Function": "function", "compile": "function", "invert": "bitwise_invert", "jit": "function", "le": "less_equal",
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
    "topk": "top_k", "shape": "shape_of", "svd": "linalg.svd", "inv": "linalg.inv", "cross_entropy":
    "nn.softmax_cross_entropy", "mse_loss": "nn.mean_squared_error", "index_select": "take", "ndarray": "Tensor",
    "double": "float64", "long": "int64", "half": "float16",
}  # fmt: skip
"""Functions of PyTorch, NumPy, TensorFlow and JAX, by what comes after `ll.`."""

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
    "assign": "tensors are immutable; what changes is a variable: v = ll.Variable(x), v.assign(value)",
    "assign_add": "tensors are immutable; what changes is a variable: v = ll.Variable(x), v.assign_add(value)",
    "add_": "tensors are immutable: write x = x + y",
    "mul_": "tensors are immutable: write x = x * y",
    "fill": "tensors are immutable: write ll.full_like(x, value)",
    "norm": "write ll.linalg.norm(x)",
    "matmul": "write x @ y",
    "dot": "write x @ y, or ll.dot(x, y)",
}
"""Methods and attributes of other libraries' tensors."""

MODULES: Final[Mapping[str, str]] = {
    "parameters": "write module.trainable_variables, which is a list",
    "named_parameters": "write module.named_variables()",
    "state_dict": "write dict(module.named_variables())",
    "zero_grad": "gradients are results here, and nothing needs to be reset",
    "forward": "write module(x); subclasses define call(self, x)",
    "weights": "write module.variables",
    "trainable_weights": "write module.trainable_variables",
}
"""Methods and attributes of other libraries' modules."""


def suggested(name: str, public: Iterable[str]) -> str:
    """What to write instead of `ll.name`, as the end of a message; nothing where nothing is near. No modules."""
    known = sorted(public)
    found = FUNCTIONS.get(name)
    if found is None:
        below = [other for other in known if other.endswith(f".{name}")]
        near = below or _near(name, known, 0.75) or _within(name, known)
        found = near[0] if near else None
    return f"; write ll.{found}" if found else ""


def _near(name: str, known: Iterable[str], likeness: float) -> list[str]:
    import difflib  # noqa: PLC0415  # only a mistake needs it: importing limelight is to be quick

    return difflib.get_close_matches(name, list(known), 1, likeness)


def _within(name: str, known: Iterable[str]) -> list[str]:
    """Names of submodules that are nearly so: a misspelt `ll.nn.softmax` without its `nn`."""
    last = {other.rpartition(".")[2]: other for other in known}
    return [last[other] for other in _near(name, last, 0.8)]


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
        raise AttributeError(f"a tensor has no attribute {self.name!r}: {self.hint}", name=self.name, obj=tensor)


def missing_of_module(self: Any, name: str) -> Any:
    """The same for a module, whose properties may fail with an AttributeError of their own: it is raised again."""
    own = getattr(type(self), name, None)
    if own is not None and hasattr(own, "__get__"):
        return own.__get__(self, type(self))
    hint = MODULES.get(name)
    kind = type(self).__name__
    raise AttributeError(
        f"{kind!r} object has no attribute {name!r}" + (f": {hint}" if hint else ""), name=name, obj=self
    )
