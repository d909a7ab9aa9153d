"""Every name of the standard exists, with a signature that takes what the standard's takes (array_api_strict's)."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import limelight as ll
from limelight import errors
from limelight.core import dtypes

THEIR_OWN = {
    "Device",
    "ArrayAPIStrictFlags",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
"""What array_api_strict has beyond the standard."""
NAMES = sorted(set(strict.__all__) - THEIR_OWN)
EXTENSIONS = {"linalg": (strict.linalg, ll.linalg), "fft": (strict.fft, ll.fft)}


def functions_of(module: ModuleType, names: list[str]) -> list[str]:
    return [name for name in names if inspect.isfunction(getattr(module, name))]


EVERY = [("", name) for name in functions_of(strict, NAMES)] + [
    (extension, name) for extension, (theirs, _) in EXTENSIONS.items() for name in functions_of(theirs, theirs.__all__)
]


def pair(extension: str, name: str) -> tuple[Any, Any]:
    theirs, ours = EXTENSIONS[extension] if extension else (strict, ll)
    return getattr(theirs, name), getattr(ours, name)


def test_every_name_exists() -> None:
    missing = [name for name in NAMES if not hasattr(ll, name)]
    missing += [
        f"{extension}.{name}"
        for extension, (theirs, ours) in EXTENSIONS.items()
        for name in theirs.__all__
        if not hasattr(ours, name)
    ]
    assert not missing


@pytest.mark.parametrize("extension", sorted({extension for extension, _ in EVERY}), ids=lambda part: part or "top")
def test_signatures_are_compatible(extension: str) -> None:
    """What may be given by position there may be here, in the same place, and what may be given by name, by that."""
    for of, name in EVERY:
        if of == extension:
            has_a_compatible_signature(extension, name)


def has_a_compatible_signature(extension: str, name: str) -> None:
    theirs, ours = [inspect.signature(function).parameters for function in pair(extension, name)]
    places = [p for p in ours.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in ours.values())
    for place, (parameter, theirs_) in enumerate(theirs.items()):
        if theirs_.kind is theirs_.VAR_POSITIONAL:
            assert variadic, name
        elif theirs_.kind is not theirs_.KEYWORD_ONLY:
            assert place < len(places), f"{name} takes no {place + 1} operands"
        if theirs_.kind in (theirs_.KEYWORD_ONLY, theirs_.POSITIONAL_OR_KEYWORD):
            assert parameter in ours, f"{name} has no parameter {parameter}"
            assert ours[parameter].kind is not inspect.Parameter.POSITIONAL_ONLY, f"{name}: {parameter} is no keyword"


def test_what_must_be_given_there_is_all_that_must_be_given_here() -> None:
    for extension, name in EVERY:
        theirs, ours = [inspect.signature(function).parameters for function in pair(extension, name)]
        needed = [
            sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in f.values()) for f in (theirs, ours)
        ]
        assert needed[1] <= needed[0], f"{name} needs more than {list(theirs)}"


def test_tensors_have_every_method_and_attribute() -> None:
    x = strict.ones((2, 2))
    theirs = {n for n in dir(type(x)) if not n.startswith("_") or n.endswith("__")} - set(dir(object))
    implied = {n for n in theirs if n.startswith("__i") and f"__{n[3:]}" in theirs}  # x += y is x = x + y here
    private = {
        "__array__",
        "__annotations__",
        "__dict__",
        "__module__",
        "__weakref__",
        "__class_getitem__",
        "__buffer__",
    }
    missing = {n for n in theirs - implied - private if not hasattr(ll.ones((2, 2)), n)}
    assert not missing


def test_the_namespace_is_limelight() -> None:
    x = ll.ones(2)
    assert x.__array_namespace__() is ll
    assert x.__array_namespace__(api_version=ll.__array_api_version__) is ll
    with pytest.raises(errors.ArgumentError, match=r"version '1999.01' of the Array API"):
        x.__array_namespace__(api_version="1999.01")


def test_constants() -> None:
    assert (ll.e, ll.pi, ll.inf) == (strict.e, strict.pi, strict.inf)
    assert np.isnan(ll.nan)
    assert ll.newaxis is None


def test_what_the_namespace_says_of_itself_is_so() -> None:
    info = ll.__array_namespace_info__()
    found = info.default_dtypes()
    assert found["real floating"] is ll.asarray(1.0).dtype is ll.zeros(2).dtype is ll.linspace(0, 1, 3).dtype
    assert found["integral"] is ll.asarray(1).dtype is ll.arange(3).dtype
    assert found["complex floating"] is ll.asarray(1j).dtype
    assert found["indexing"] is ll.argmax(ll.ones(2)).dtype is ll.nonzero(ll.ones(2))[0].dtype
    assert info.default_device() in info.devices()
    assert ll.ones(2).device == info.default_device()
    theirs = strict.__array_namespace_info__()
    assert {n: np.dtype(n) for n in theirs.dtypes()} == info.dtypes()
    for kind in ("bool", "signed integer", "real floating", ("integral", "complex floating")):
        assert set(info.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind))
    assert set(info.capabilities()) == set(theirs.capabilities())
    assert ll.ones((1,) * info.capabilities()["max dimensions"]).shape == (1,) * 64


@pytest.mark.parametrize("name", list(strict.__array_namespace_info__().dtypes(kind="numeric")))
def test_limits_of_dtypes(name: str) -> None:
    theirs, ours = getattr(strict, name), getattr(ll, name)
    ask = "iinfo" if dtypes.kind(ours) == "integer" else "finfo"
    wanted, found = getattr(strict, ask)(theirs), getattr(ll, ask)(ours)
    assert getattr(ll, ask)(ll.zeros(2, dtype=ours)) == found
    for limit in ("bits", "max", "min") + (("eps", "smallest_normal") if ask == "finfo" else ()):
        value = getattr(found, limit)
        assert value == getattr(wanted, limit)
        assert type(value) is (int if limit == "bits" or ask == "iinfo" else float)
    with pytest.raises(errors.DTypeError):
        getattr(ll, "iinfo" if ask == "finfo" else "finfo")(ours)
