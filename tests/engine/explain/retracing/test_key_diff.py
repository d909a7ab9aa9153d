"""Random pairs of calls: the explanation names every argument that differs, and the program with its fix runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import limelight as ll
from limelight.explain.retracing.suggest_signature import LATER, ONCE

pytestmark = pytest.mark.usefixtures("retraces_are_meant")
APPLIED = ("", LATER, "call with", ONCE)
"""Places of fixes that tell where in the program the code goes; for others a reader must know the program."""

shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
tensors = st.builds(
    lambda shape, dtype: f'll.ones({shape}, dtype="{dtype}")', shapes, st.sampled_from(["float32", "float64", "int32"])
)
floats = st.sampled_from([0.5, 1.5, 2.0]).map(repr)
lists = st.builds(
    lambda items, kind: f"{kind}([{', '.join(items)}])",
    st.lists(tensors, min_size=1, max_size=2),
    st.sampled_from(["list", "tuple"]),
)
dictionaries = st.dictionaries(st.sampled_from(["b", "c"]), tensors).map(
    lambda more: "{" + ", ".join(f'"{k}": {v}' for k, v in {"a": "ll.ones((2,))", **more}.items()) + "}"
)
TOTAL = 'll.sum(ll.astype({}, "float32"))'
KINDS: dict[str, tuple[st.SearchStrategy[str], str]] = {
    "tensor": (tensors, TOTAL.format("{p}")),
    "float": (floats, "{p} * 2.0 - {p}"),
    "float that decides": (floats, "(2.0 if {p} > 1 else 1.0)"),
    "float or int": (st.sampled_from(["1.0", "1", "2"]), "{p}"),
    "float or tensor": (st.sampled_from(["1.0", "ll.constant(1.0)", "ll.constant([1.0])"]), "ll.sum({p})"),
    "float in a helper": (floats, "helper({p})"),
    "int": (st.sampled_from(["1", "2"]), "ll.ones((3,))[{p}]"),
    "flag": (st.sampled_from(["True", "False", "None"]), "(1.0 if {p} else 2.0)"),
    "text": (st.sampled_from(["'a'", "'bb'"]), "len({p})"),
    "list": (lists, TOTAL.format("{p}[0]")),
    "dictionary": (dictionaries, TOTAL.format('{p}["a"]')),
    "function": (st.sampled_from(["lambda v: v", "abs", "lambda v: v + 1"]), "{p}(1.0)"),
}


@st.composite
def arguments(draw: st.DrawFn) -> tuple[str, str, str]:
    """How an argument is used, with {p} for its name, and what it is in two calls."""
    values, use = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    before = draw(values)
    return use, before, draw(st.just(before) | values)


def written(parameters: list[tuple[str, str, str]]) -> str:
    names = [f"p{i}" for i in range(len(parameters))]
    uses = [f"    total = total + {use.format(p=name)}" for name, (use, _, _) in zip(names, parameters, strict=True)]
    call = ", ".join(f"({before}, {after})[i]" for _, before, after in parameters)
    return "\n".join(
        [
            "def helper(v):\n    return v * 0.5",
            f"@ll.function\ndef f({', '.join(names)}):\n    total = ll.constant(0.0)",
            *uses,
            f"    return total\nfor i in range(2):\n    f({call})",
        ]
    )


def differ(before: str, after: str) -> bool:
    """Whether two values need two traces."""
    f = ll.function(lambda p: 1.0)
    for value in (before, after):
        f(eval(value, {"ll": ll}))
    return f.trace_count == 2


@hypothesis.settings(
    max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], deadline=None
)
@hypothesis.given(parameters=st.lists(arguments(), min_size=1, max_size=3))
@pytest.mark.slow  # hundreds of calls
def test_random_pairs_of_calls(program: Callable[[str], Any], parameters: list[tuple[str, str, str]]) -> None:
    p = program(written(parameters))
    wanted = [f"p{i}" for i, (_, before, after) in enumerate(parameters) if differ(before, after)]
    assert p.f.trace_count == 1 + bool(wanted)
    if not wanted:
        return
    record = p.miss
    named = [difference.path.partition("[")[0] for difference in record.differences]
    assert [name for name, _ in itertools.groupby(named)] == wanted
    assert all(f"`{difference.path}`" in str(record) for difference in record.differences[:3])
    if record.fixes and all(fix.place in APPLIED for fix in record.fixes):
        mended = program(p.mended())
        spared = {path for fix in record.fixes for path in fix.paths}
        every = spared >= {difference.path for difference in record.differences}
        relaxed = "reduce_retracing" in record.fix
        assert mended.f.trace_count == (1 if every and not relaxed else 2)
