"""Nothing of ll.nn goes without a case."""

from __future__ import annotations

import cases_networks
import pytest
from cases import CASES

from limelight.nn import functional

ELSEWHERE = {
    "swish": "another name of silu",
    "global_avg_pool": "test_pooling.py, a mean",
    "global_max_pool": "test_pooling.py, a maximum",
}


@pytest.mark.parametrize("name", sorted(set(functional.__all__) - set(ELSEWHERE)))
def test_every_function_has_a_case(name):
    told = {word for case in cases_networks.CASES for word in case.note.split()} | {case.op for case in CASES}
    assert name in told, f"ll.nn.{name} has no case"
