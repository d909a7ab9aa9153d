"""Section 4.4, memory: behaviour 121. What devices hold, at every event, is what NumPy's allocator has given out."""

from __future__ import annotations

import tracemalloc
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import limelight as ll
from limelight import events
from limelight.core import device_counts
from limelight.core.collector import collector_paused
from limelight.core.devices import Device
from limelight.errors import DeviceError

SHAPE = (40, 50)  # 8,000 bytes: NumPy keeps blocks below 1 KB for itself, whoever frees them
PLACES = ("CPU:0", "CPU:1", "CPU:2")
GIVEN = np.ones(SHAPE, "float32")
NUMPYS = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)


def parts(x: Any) -> Any:
    with ll.device("cpu:1"):
        y = ll.exp(x) * 2.0
    return y, x.reshape((50, 40)), x + 1.0


def within(place: str, make: Any) -> Any:
    with ll.device(place):
        return make()


STEPS: dict[str, Any] = {
    "constant": lambda x, v, f, place: within(place, lambda: ll.constant(GIVEN)),
    "copy": lambda x, v, f, place: x.to(place),
    "op": lambda x, v, f, place: within(place, lambda: x * 2.0),
    "view": lambda x, v, f, place: x.T,
    "part": lambda x, v, f, place: x[3:30],
    "assign": lambda x, v, f, place: (v.assign(x),)[1:],
    "read": lambda x, v, f, place: v.read_value(),
    "add": lambda x, v, f, place: (v.assign_add(x),)[1:],
    "staged": lambda x, v, f, place: f(x)[:2],
    "variable": lambda x, v, f, place: within(place, lambda: ll.Variable(x)),
}


class Counts:
    """Bytes alive on each device, from births and deaths alone, and where they were not the allocator's.

    Results of one op are born together and told one after the other: `untold` are the bytes of those to come.
    """

    def __init__(self) -> None:
        self.live: dict[str, int] = {}
        self.before = dict.fromkeys([one.short for one in ll.list_devices()], 0)
        self.untold = 0
        self.wrong: list[Any] = []

    def __call__(self, event: Any) -> None:
        born = isinstance(event, events.Allocated)
        self.live[event.device] = self.live.get(event.device, 0) + (event.nbytes if born else -event.nbytes)
        given_out = numpys_bytes() - (0 if born else event.nbytes)  # a death is told just before the memory goes back
        untold, self.untold = self.untold, given_out - sum(self.live.values())
        if self.untold < 0 or untold not in (0, self.untold + event.nbytes) or (self.untold and not born):
            self.wrong.append((event, given_out, dict(self.live)))
        if device_counts.live[event.device] != self.before[event.device] + self.live[event.device]:
            self.wrong.append((event, dict(device_counts.live), dict(self.live)))


def numpys_bytes() -> int:
    """What NumPy's allocator has given out and not taken back, of what tracemalloc has seen."""
    return sum([trace.size for trace in tracemalloc.take_snapshot().filter_traces([NUMPYS]).traces])


FEW = settings(  # to shrink an example takes minutes, as each walks over the heap
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@FEW
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(PLACES), st.integers(0, 9)), max_size=8))
def test_121_totals_are_the_allocators_at_every_event(cpus: list[Device], steps: list[tuple[str, str, int]]) -> None:
    with ll.config.executor("plan"):  # tables of NumPy's loops keep memory of their own from one run to the next
        f = ll.function(parts)
        for place in PLACES:
            f(ll.constant(GIVEN).to(place))
    before = {one.short: ll.memory_info(one).current for one in cpus}
    with collector_paused(), events.listen(counts := Counts(), events.Allocated, events.Freed):
        counts.before.update(device_counts.live)
        tracemalloc.start()
        try:
            v, kept = ll.Variable(GIVEN), [ll.constant(GIVEN)]
            for name, place, index in steps:
                x = next((x for x in reversed(kept) if isinstance(x, ll.Tensor) and x.shape == SHAPE), kept[0])
                kept.append(STEPS[name](x, v, f, place))
                del x
                if 0 < index < len(kept):
                    kept[index] = None
                now = {one.short: ll.memory_info(one).current - before[one.short] for one in cpus}
                assert now == {device: counts.live.get(device, 0) for device in now}
                assert sum(now.values()) == numpys_bytes()
                assert not counts.untold
            del v, kept
        finally:
            tracemalloc.stop()
        assert counts.wrong == []
        assert not any(counts.live.values())


@pytest.mark.usefixtures("no_garbage")
def test_121_live_tensors_are_told_by_name_and_line_and_add_up(cpus: list[Device]) -> None:
    with ll.memory.DeviceWatch():
        with ll.device("cpu:2"):
            weights = ll.Variable(GIVEN, name="weights")
            hidden = weights * 2.0  # the line
            part = hidden[3:]
        found = ll.explain.live_tensors("cpu:2", scope={"hidden": hidden, "part": part})
        assert found.nbytes == ll.memory_info("cpu:2").current == 16000
        named = {name: one for one in found.records for name in one.names}
        assert set(named) == {"weights", "hidden", "part"}
        assert named["hidden"] is named["part"]  # a view is no buffer of its own
        assert named["hidden"].line is not None
        assert named["hidden"].line.text == "hidden = weights * 2.0  # the line"
    del weights, hidden, part


def test_121_virtual_devices_are_counted_apart(cpus: list[Device]) -> None:
    before = [ll.memory_info(one).current for one in cpus]
    x = ll.constant(GIVEN)
    there = [x.to(one) for one in cpus[1:]]
    assert [ll.memory_info(one).current - was for one, was in zip(cpus, before, strict=True)] == [8000] * 4
    assert not any(np.shares_memory(x._data, one._data) for one in there)
    with pytest.raises(DeviceError, match="'cpu:7' does not exist here"):
        ll.memory_info("cpu:7")
