"""Each op as XLA runs it: alone on the device XLA:0, and compiled on CPU:0 (`jit_compile`); where JAX is installed.

By default some of the ops, for which JAX compiles for half a second each; another `LIMELIGHT_JAX_SEED` than 0 has
others. `LIMELIGHT_JAX_CASES=all pytest tests/engine/ops/test_cases_in_jax.py` has them all, with all their cases, which
takes minutes.
"""

from __future__ import annotations

import importlib.util
import os

import pytest
from cases import CASES
from opcase import agree, drawn_alike, each, op_of, thinned

import limelight as ll
from limelight.core import dtypes

ALL = os.environ.get("LIMELIGHT_JAX_CASES") == "all"
HAS_JAX = importlib.util.find_spec("jax") is not None
SEED = int(os.environ.get("LIMELIGHT_JAX_SEED", "0"))


def some(every):
    """Each op once, and of these some; where there is no JAX, one that says so."""
    return CASES if ALL else thinned(CASES, op_of)[SEED % every :: every] if HAS_JAX else CASES[:1]


NOT_COMPILED = {
    **dict.fromkeys(("nonzero", "distinct", "repeat_places", "add_up_rows", "bincount", "histogram"), "has no form"),
    **dict.fromkeys(("segment_count", "arange_dynamic"), "has no form"),
    **dict.fromkeys(("random_bernoulli", "random_categorical", "random_gamma", "random_log_gamma"), "draws by numbers"),
    **dict.fromkeys(("random_multinomial", "random_poisson", "dropout_mask"), "draws by numbers"),
    "check_numerics": "does something besides computing",
    "to_device": "copies to a device",
}
"""Ops whose results have shapes that depend on values, that draw by them, or do something else: part of the words."""

pytestmark = [
    pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'"),
    pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning"),  # every case is staged anew
]


def inputs_of(case):
    dtype = dtypes.float32 if dtypes.float32 in case.tried else case.tried[0]
    return [ll.constant(array) for array in case.arrays(dtype)]


@each([(case,) for case in some(24)])
def test_compiled_or_refused_in_words(case):
    tensors = inputs_of(case)
    wanted = drawn_alike(lambda: ll.function(case.call)(*tensors))
    compiled = ll.function(case.call, jit_compile=True)
    agree(drawn_alike(lambda: compiled(*tensors)), wanted)
    entry = compiled.trace_cache[0]
    if entry.tier != "xla":
        refused = entry.tier_reason.split(" ")[0]
        assert refused in NOT_COMPILED, entry.tier_reason
        assert NOT_COMPILED[refused] in entry.tier_reason


@each([(case,) for case in some(64)])
def test_alone_on_the_device(case):
    tensors = inputs_of(case)
    wanted = drawn_alike(lambda: case.call(*tensors))
    there = [x.to("XLA:0") for x in tensors]

    def run():
        with ll.device("XLA:0"):
            return case.call(*there)

    found = drawn_alike(run)
    agree(found, wanted)
    if case.op != "to_device":
        assert {x.device.short for x in ll.tree.leaves(found)} <= {"XLA:0"}
