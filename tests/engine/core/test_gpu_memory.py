"""Memory of a pretended GPU: what lives there, in the blocks of CuPy's pool, equals the pool's own counters always."""

from __future__ import annotations

import gc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from pretended_gpu import pretended_gpus

import limelight as ll
from limelight import events
from limelight.core.collector import collector_paused
from limelight.executors import base as executors
from limelight_widgets.folds.devices import DevicesFold

MAKERS = {
    "constant": lambda x, w: ll.constant(np.ones((20, 25), "float32")).to("GPU:0"),
    "add": lambda x, w: x + x,
    "view": lambda x, w: ll.reshape(x, (25, 20)),
    "transpose": lambda x, w: x.T,
    "part": lambda x, w: x[0],
    "number of it": lambda x, w: x[0, 0],
    "rows": lambda x, w: x[ll.constant([0, 3, 3]).to("GPU:0")],
    "read": lambda x, w: w + 0.0,
    "sum": lambda x, w: ll.sum(x),
    "assigned": lambda x, w: w.assign(x * 2.0),
    "updated": lambda x, w: w.assign_add(x),
    "staged": lambda x, w: staged(w),
    "gradient": lambda x, w: gradient(x),
    "draw": lambda x, w: ll.random.normal((3,)),
    "singular values": lambda x, w: ll.linalg.svdvals(x),
}


@pytest.fixture(scope="module")
def gpu(no_gpu):
    if no_gpu is None:
        pytest.skip("a real GPU is here, and its kernels would be taken for those of the pretended one")
    with pretended_gpus() as cupy:
        gc.collect()
        yield cupy
        staged.clear_cache()


@ll.function
def staged(w):
    w.assign(ll.tanh(w) * 2.0)
    return w + 1.0, ll.reshape(w, (500,)), ll.sum(w[:2] * 3.0)


def gradient(x):
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.sum(ll.tanh(x) * x)
    return tape.gradient(y, x)


class Count:
    """Bytes alive, from births and deaths alone, and the events at which the pool has said something else."""

    def __init__(self, pool, literals):
        self.pool, self.literals, self.wrong, self.told_afterwards = pool, literals, [], False
        self.live = ll.memory_info("GPU:0").current

    def __call__(self, event):
        if event.device == "GPU:0":
            born = isinstance(event, events.Allocated)
            self.live += event.nbytes if born else -event.nbytes
            handed_back = 0 if born else event.nbytes  # which happens when the one who tells has told
            if not self.told_afterwards and self.live + self.literals != self.pool.used_bytes() - handed_back:
                self.wrong.append(event)

    def agrees(self):
        info = ll.memory_info("GPU:0")
        assert not self.wrong
        assert info.current == self.live
        assert info.in_use == self.pool.used_bytes() == self.live + self.literals
        assert info.reserved == self.pool.total_bytes() >= info.in_use


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(sorted(MAKERS)), max_size=8), st.lists(st.integers(0, 9), max_size=6))
def test_what_lives_is_what_the_pool_has_given_out(gpu, names, dropped):
    pool = gpu.get_default_memory_pool()
    with executors.chosen.override("plan"), ll.device("GPU:0"):
        kept = [ll.ones((20, 25))]  # it lived before anybody listened
        w = ll.Variable(ll.ones((20, 25)))
        staged(w)
        gc.collect()
        literals = pool.used_bytes() - ll.memory_info("GPU:0").current  # of the plan, which are no tensors
        with collector_paused(), events.listen(count := Count(pool, literals), events.Allocated, events.Freed):
            for name in names:
                matrix = next(x for x in reversed(kept) if isinstance(x, ll.Tensor) and x.shape == (20, 25))
                count.told_afterwards = name == "staged"  # of all that it has made, one by one
                kept.append(MAKERS[name](matrix, w))
                del matrix
                count.agrees()
            for index in dropped:
                if index < len(kept):
                    kept[index] = None
                    count.agrees()
            del kept, w
            count.agrees()


def test_views_and_blocks_count_once_and_what_is_others_is_told_apart(gpu):
    with ll.device("GPU:0"):
        x = ll.zeros((100,))
        parts = [x[i : i + 3] for i in range(5)]
    before = ll.memory_info("GPU:0")
    others = gpu.zeros(1000)
    info = ll.memory_info("GPU:0")
    assert (info.current, info.tensors, info.in_use - before.in_use) == (512, 6, 8192)
    assert (ll.memory_info("GPU:1").current, ll.memory_info().in_use) == (0, None)
    del parts, others


def test_peaks_of_a_watch_and_the_devices_view_know_the_gpu(gpu):
    with ll.memory.DeviceWatch() as watch, ll.device("GPU:0"):
        x = ll.zeros((1000,))
        y = x + 1.0
        del x
        z = y * 2.0
        assert watch.peaks()["GPU:0"] == 2 * 4096
    info = ll.memory_info("GPU:0", reset_peak=True)
    fold = DevicesFold([(d.short, d.name, info.current, info.peak) for d in ll.list_devices()])
    assert "GPU:1" in [device["name"] for device in fold.state()["devices"]]
    del y, z
