"""What newcomers type, and what they are told: a corpus of calls, and all keywords of NumPy's and SciPy's functions."""

from __future__ import annotations

import inspect
import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError
from limelight.user_code import call_notes, equivalents

CALLS = [
    line.split(" => ", 1)
    for corpus in ("newcomers_calls.txt", "pytorch_calls.txt")
    for line in (Path(__file__).parent / corpus).read_text(encoding="utf-8").splitlines()
    if line[0] != "#"
]


def names() -> dict[str, Any]:
    """What the calls of the corpus name."""
    x, net = ll.constant([[1.0, 2.0], [3.0, 4.0]]), ll.nn.Dense(3)
    return {
        "ll": ll, "np": np, "x": x, "y": net(x), "v": ll.Variable(x), "net": net, "opt": ll.optim.Adam(0.1),
        "gen": ll.random.Generator(1), "lab": ll.constant([0, 1]), "ds": ll.data.from_sequence([1, 2, 3]),
        "unbuilt": ll.nn.Dense(3), "free": [ll.TensorSpec((None, 2))],
        "bar": ll.progress([]), "Net": type("Net", (ll.Module,), {"forward": lambda self, x: x}),
    }  # fmt: skip


def told(error: BaseException) -> str:
    """All that is shown of an error where limelight sees it pass."""
    call_notes.note_call(error)
    return " ".join([str(error), *getattr(error, "__notes__", ())])


def test_what_newcomers_type_runs_or_leads_to_what_does_its_job() -> None:
    given = names()
    wrong = []
    for i, (call, words) in enumerate(CALLS):
        file = f"<newcomer {i}>"
        linecache.cache[file] = (len(call), None, [call + "\n"], file)  # as a notebook does
        try:
            eval(compile(call, file, "eval"), given)
            said = "runs"
        except Exception as error:  # noqa: BLE001  # whatever it is, it must say what to write
            said = told(error)
        finally:
            del linecache.cache[file]
        if words.lower() not in said.lower():
            wrong.append(f"{call}: {words!r} is not in {said!r}")
    assert not wrong, "\n".join(wrong)
    assert len(CALLS) >= 450


# Keywords of NumPy and SciPy

SAME = (
    ("", np), ("", scipy.special), ("linalg", np.linalg), ("fft", np.fft),
)  # fmt: skip
UFUNC = ("out", "where", "dtype", "casting", "order", "subok", "signature")
BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _keywords(function: Any) -> list[str]:
    """What `function` of NumPy's or SciPy's may be given by name."""
    if isinstance(function, np.ufunc):
        return list(UFUNC)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C do not say what they take
        return []
    return [p.name for p in parameters if p.kind not in BY_PLACE]


def _places(function: Any) -> list[str]:
    """What it may be given by place."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


OF_ARRAYS = ("save", "load")
"""Of arrays in NumPy, of functions and modules here."""


def shared() -> dict[str, tuple[Any, Any]]:
    """Our functions that NumPy or SciPy has by the same name, and theirs."""
    pairs: dict[str, tuple[Any, Any]] = {}
    for home, library in SAME:
        namespace: Any = getattr(ll, home) if home else ll
        for name in dir(namespace):
            ours, theirs = getattr(namespace, name), getattr(library, name, None)
            if inspect.isfunction(ours) and callable(theirs) and not inspect.isclass(theirs) and name not in OF_ARRAYS:
                pairs.setdefault(f"{home}.{name}".strip("."), (ours, theirs))
    return pairs


def test_each_keyword_of_numpy_and_scipy_is_taken_or_says_what_to_write() -> None:
    missing, taken, hinted = [], 0, 0
    for path, (ours, theirs) in shared().items():
        parameters = inspect.signature(ours).parameters
        by_name = [name for name, p in parameters.items() if p.kind not in BY_PLACE]
        for keyword in _keywords(theirs):
            if keyword in by_name:
                taken += 1
            elif keyword in parameters or equivalents.keyword_hint(
                ours.__name__, keyword, parameters
            ):  # by place here: Python names it, and the note the form
                hinted += 1
            else:
                missing.append(f"{path}({keyword}=)")
    assert not missing
    assert taken > 100
    assert hinted > 500


REFUSED: dict[str, Any] = {"keepdims": 1.5, "nan": False, "posinf": False, "neginf": False, "minlength": ll.ones(2)}


def test_no_argument_by_place_means_another_one_silently() -> None:
    """What stands at one place in NumPy and at another here has another name alone, or is refused by its type."""
    for path, (ours, theirs) in shared().items():
        parameters = inspect.signature(ours).parameters
        here = [parameters[name] for name in _places(ours)][1:]
        for mine, other in zip(here, _places(theirs)[1:], strict=False):
            renamed = mine.name in equivalents.keyword_hint(ours.__name__, other, parameters)
            if isinstance(theirs, np.ufunc) or path in ("jvp", "argmax", "argmin") or mine.name == other or renamed:
                continue  # `jvp` is another function there
            if mine.kind is mine.POSITIONAL_OR_KEYWORD:
                x: Any = ll.arange(2) if path == "bincount" else ll.ones((2, 3))
                with pytest.raises((ArgumentError, DTypeError, ShapeError)):
                    ours(*((x, 0.5) if path in ("quantile", "percentile") else (x,)), **{mine.name: REFUSED[mine.name]})


def test_hints_for_keywords_name_what_exists() -> None:
    functions = {ours.__name__: ours for ours, _ in shared().values()}
    for key, entry in equivalents.keywords().items():
        function, _, keyword = key.rpartition(".")
        if function in functions and keyword:
            assert keyword not in inspect.signature(functions[function]).parameters, f"{key} exists: its line is dead"
            if entry.ours:
                assert set(entry.ours.split()) & set(inspect.signature(functions[function]).parameters), key


# Where they are shown


def test_the_note_is_there_when_a_trace_ends() -> None:
    loose: Any = ll
    with pytest.raises(TypeError) as caught:
        ll.function(lambda x: loose.sum(x, dim=0))(ll.ones(3))
    assert "write axis=" in " ".join(caught.value.__notes__)


@pytest.mark.parametrize(
    "call", ["ll.sum(x, dim=1)", "x.sum(dim=1)", "ll.linalg.norm(x, dim=1)", "linalg.norm(x, dim=1)"]
)
def test_the_note_needs_no_source_as_at_a_prompt(call: str) -> None:
    code = compile(call, "<stdin>", "single")
    with pytest.raises(TypeError) as caught:
        exec(code, {"ll": ll, "x": ll.ones((2, 3)), "linalg": ll.linalg})
    assert "write axis=...; its form: " in told(caught.value)


def test_calls_of_others_are_left_alone() -> None:
    class Own:
        size = 3

    def own(axis: int = 0) -> int:
        return axis

    mine: Any = own
    shape: Any = Own()
    array: Any = np.ones(2)
    calls: list[Any] = [lambda: mine(dim=0), lambda: np.sum([1], dim=0), lambda: shape.size(0), lambda: array.size(0)]  # type: ignore[call-overload]  # the mistake
    for call in calls:
        with pytest.raises(TypeError) as caught:
            call()
        call_notes.note_call(caught.value)
        assert not hasattr(caught.value, "__notes__")
