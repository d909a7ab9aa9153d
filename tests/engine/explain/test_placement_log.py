"""How placements tell themselves: op by op where there are few, else by device and reason."""

from __future__ import annotations

import limelight as ll
from limelight.explain.placement_log import MOST_TOLD

FIRST = "with its first tensor operand"


def placed(op="add", requested=None, device="CPU:0", reason=FIRST, copies=0):
    return ll.explain.PlacedOp(op, requested, device, reason, copies, 8 * copies, None)


def test_few_ops_are_told_one_by_one():
    told = str(ll.explain.Placements([placed()] * MOST_TOLD)).splitlines()
    assert told == [f"add on CPU:0: {FIRST}"] * MOST_TOLD


def test_many_ops_are_told_by_device_and_reason_and_one_by_one_where_there_is_more_to_say():
    variables = [placed("read_variable", reason=f"with its variable w{k}") for k in range(4)]
    copied, elsewhere = placed(device="CPU:1", copies=1), placed("exp", requested="CPU:1")
    log = ll.explain.Placements([*variables, *[placed()] * 30, copied, elsewhere])
    assert str(log).splitlines() == [
        f"35 ops on CPU:0: {FIRST} (31), with its variable (4)",
        f"1 op on CPU:1: {FIRST} (1)",
        f"add on CPU:1: {FIRST}; 1 copy in, 8 bytes",
        f"exp on CPU:0, asked for CPU:1: {FIRST}",
    ]
    many = str(ll.explain.Placements([copied] * (MOST_TOLD + 5))).splitlines()
    assert len(many) == MOST_TOLD + 2
    assert many[-1] == "and 5 more of these, in records"
