"""NumPy's functions of symbolic tensors, and of one example's: each works, or says at the user's line what to write.

Some of them here, all with LIMELIGHT_NUMPY=all.
"""

from __future__ import annotations

import inspect
import os
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LimelightError

VALUES = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 1.5], [2.5, 0.25, 6.0]], np.float32)
APART = {
    *("array2string", "array_repr", "array_str", "save", "savetxt", "savez", "savez_compressed", "fromfile"),
    *("genfromtxt", "loadtxt", "load", "fromregex", "memmap", "test", "info", "show_config", "show_runtime"),
    *("get_include", "printoptions", "set_printoptions", "get_printoptions", "seterr", "geterr", "seterrcall"),
    *("geterrcall", "setbufsize", "getbufsize", "errstate", "isdtype", "typename", "binary_repr", "base_repr"),
    *("fromstring", "frombuffer", "from_dlpack", "einsum_path", "get_array_wrap", "nested_iters", "nditer"),
    "isfortran",
}
"""What makes text or files, reads them, or is about NumPy itself and its memory."""


def functions() -> dict[str, Any]:
    """NumPy's public functions."""
    found = {}
    for home in (np, np.linalg, np.fft):
        for name in getattr(home, "__all__", dir(home)):
            function = getattr(home, name)
            if callable(function) and not inspect.isclass(function) and name not in APART and name[0] != "_":
                found[f"{home.__name__}.{name}"] = function
    return found


FUNCTIONS = functions()
EVERY = 1 if os.environ.get("LIMELIGHT_NUMPY") == "all" else 7
ADVICE = ("write ", "use ", "give ", "Compute with ll", "with known = ", "sort by ll.")
OPERANDS = (
    lambda x: (x,), lambda x: (x, x), lambda x: (x, 1), lambda x: ([x, x],), lambda x: (x, x, x), lambda x: (x, 0, 1),
    lambda x: (1, x), lambda x: (VALUES, x), lambda x: (x > 1.0, x), lambda x: (x, [1], x), lambda x: (abs, 0, x),
    lambda x: ("ij,jk->ik", x, x), lambda x: (x, "constant"), lambda x: (x, (3, 3)), lambda x: (x, [0, 1]),
)  # fmt: skip
"""Ways to call one with a tensor."""


def outcome(function: Any, give: Any, stage: Any) -> str:
    """What becomes of a call while tracing: "" where it works or NumPy refuses arrays, too; else what is wrong."""
    try:
        function(*give(VALUES))
    except Exception:  # noqa: BLE001  # whatever NumPy says of arrays
        return ""
    try:
        stage(lambda x: (function(*give(x)), x)[1])(ll.constant(VALUES))
    except LimelightError as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
        if ".py line" in error.bare and "test_numpy_of_symbolic_tensors.py line" not in error.bare:
            return f"names another line: {error.bare}"
        if not any(
            word in error.bare
            for word in ("write ", "use ", "give ", "Compute with ll", "with known = ", "sort by ll.")
        ):
            return f"says not what to write: {error.bare}"
        at_the_line = stage is batched or frames[-1].filename == __file__  # what runs eagerly shows frames to programs
        return "" if at_the_line else f"its last line is {frames[-1]}"
    except Exception as error:  # noqa: BLE001  # that is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def batched(function: Any) -> Any:
    """A function of one example, called with a batch of one."""
    return lambda x: ll.vectorize(function)(x[None])


@pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")
@pytest.mark.parametrize("stage", [ll.function, batched])
def test_each_works_or_says_what_to_write(stage: Any) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in list(FUNCTIONS.items())[::EVERY]:
            wrong += [
                f"{name} {i}: {said}" for i, give in enumerate(OPERANDS) if (said := outcome(function, give, stage))
            ]
    assert not wrong, "\n".join(wrong)
    assert len(FUNCTIONS) > 300


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.partition(x, 1), "np.partition needs the values of a symbolic tensor"),
        (lambda x: np.dot(x, x), "write ll.dot(x, y)"),
        (lambda x: np.vstack([x, x]), "write ll.concat"),
        (np.linalg.norm, "write ll.linalg.norm(x)"),
        (np.histogram, "write ll.histogram(x)"),
    ],
)
@pytest.mark.parametrize("stage", [ll.function, batched])
def test_what_the_usual_ones_say(stage: Any, call: Any, words: str) -> None:
    with pytest.raises(LimelightError) as caught:
        stage(call)(ll.constant(VALUES))
    assert (
        words.replace("a symbolic tensor", "one example's tensor" if stage is batched else "a symbolic tensor")
        in caught.value.bare
    )  # without the line, which has the words as well


def test_shapes_and_dtypes_of_one_example_are_known() -> None:
    def seen(x: ll.Tensor) -> tuple[Any, ...]:
        known.append((np.ndim(x), np.shape(x), np.size(x), np.result_type(x), np.iscomplexobj(x)))
        return x * np.size(x, 1)

    known: list[Any] = []
    for f in (ll.vectorize(seen), ll.function(ll.vectorize(seen)), ll.vectorize(ll.grad(lambda x: ll.sum(seen(x))))):
        f(ll.constant(VALUES[None]))
    assert known == [(2, (3, 3), 9, np.float32, False)] * 3
