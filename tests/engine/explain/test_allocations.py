"""Live tensors by name and line."""

from __future__ import annotations

import time

import pytest

import limelight as ll
from limelight.core import buffer_lifetimes


@pytest.mark.usefixtures("no_garbage")
def test_buffers_are_told_once_by_their_names_with_the_line_that_made_them():
    v = ll.Variable(ll.ones((301, 300)), name="weights")
    with ll.events.listen(lambda event: None, ll.events.Allocated):
        y = ll.ones((200, 301)) * 2.0
        scope = {"y": y, "part": y[:2], "_hidden": y}
        found = ll.explain.live_tensors(top=10_000, scope=scope)
        (record,) = [one for one in found.records if "y" in one.names]
        assert record.names == ("y", "part")
        assert record.line.text == "y = ll.ones((200, 301)) * 2.0"
        assert (record.spec, record.nbytes, record.device) == ("f32[200,301]", y.nbytes, "CPU:0")
    assert [one.spec for one in found.records if "weights" in one.names] == ["f32[301,300]"]
    assert found.nbytes == sum(one.nbytes for one in found.records)
    here = {device.short for device in ll.list_devices()}  # other tests' devices may have gone before their buffers
    counted = sum(one.nbytes for one in found.records if one.device in here)
    assert counted == sum(ll.memory_info(device).current for device in ll.list_devices())
    assert v.shape == (301, 300)


def test_variables_of_two_models_are_told_apart_by_the_names_of_these():
    actor, critic = ll.nn.Dense(307), ll.nn.Dense(307)
    adam, x = ll.optim.Adam(1e-3), ll.ones((2, 311))
    with ll.GradientTape() as tape:
        loss = ll.sum(actor(x) * critic(x))
    adam.apply(tape.gradient(loss, actor.trainable_variables), actor.trainable_variables)
    scope = {"actor": actor, "critic": critic, "adam": adam, "again": actor, "Dense": ll.nn.Dense}
    found = ll.explain.live_tensors(top=10_000, scope=scope)
    kernels = {one.names[0] for one in found.records if one.spec == "f32[311,307]" and "." in one.names[0]}
    assert {"actor.kernel", "critic.kernel"} <= kernels
    assert len([name for name in kernels if name.startswith("adam.slots.")]) == 2


def test_the_line_goes_with_the_buffer_and_is_unknown_where_nobody_listened():
    kept = ll.ones((77, 1024))
    (record,) = [
        one for one in ll.explain.live_tensors(top=10_000, scope={"kept": kept}).records if "kept" in one.names
    ]
    assert record.line is None


def test_an_unknown_device_is_an_error():
    with pytest.raises(ll.errors.DeviceError):
        ll.explain.live_tensors("GPU:77")


def test_forbidden_copies_are_errors_at_their_line_unless_asked_for():
    ll.config.set_virtual_devices(CPU=2)
    x, far = ll.ones((3,)), ll.ones((3,)).to("CPU:1")
    with ll.explain.Copies(forbid=True) as copies:
        near = x.to("CPU:1")
        assert (near + far).device == far.device
        with pytest.raises(
            ll.errors.DeviceError, match=r'operand of add: `x`, f32\[3\], 12 bytes.*x = x.to\("CPU:1"\).*line'
        ):
            far + x
    assert [record.cause for record in copies.records] == [".to()"]
    far + x  # outside it is as before


def test_what_a_tape_keeps_is_told_to_be_saved_by_it():
    w = ll.Variable(ll.ones((33, 77)))
    with ll.GradientTape() as recording:
        ll.sum(ll.tanh(w))
    found = ll.explain.live_tensors(top=10_000, scope={"recording": recording})
    held = [one for one in found.records if "saved by gradient tape `recording`" in one.names]
    assert [one.spec for one in held] == ["f32[33,77]"]


def test_what_was_alive_at_a_moment_that_has_passed():
    before = ll.ones((61, 1013))  # sizes that nobody else has
    sizes_made = {n * 4052 for n in (61, 62, 63, 64)}
    with ll.memory.DeviceWatch() as watch:
        kept = ll.ones((62, 1013))
        gone = ll.ones((63, 1013))
        late_gone = before
        time.sleep(0.05)
        moment = time.perf_counter()
        time.sleep(0.05)
        del gone, before
        late_gone = None
        after = ll.ones((64, 1013))
        scope = {"kept": kept, "after": after}
        ago = time.perf_counter() - moment
        then = ll.explain.live_tensors(top=10_000, scope=scope, watch=watch, at=ago).records
        now = ll.explain.live_tensors(top=10_000, scope=scope, watch=watch).records
    assert late_gone is None
    sizes = {one.nbytes // 4052: one for one in then if one.nbytes in sizes_made}
    assert set(sizes) == {61, 62, 63}
    assert sizes[62].names == ("kept",)
    assert sizes[63].names[0].startswith("gone ")
    assert sizes[63].line.text == "gone = ll.ones((63, 1013))"
    assert sizes[61].line is None, "made before anybody listened"
    assert {one.nbytes // 4052 for one in now if one.nbytes in sizes_made} == {62, 64}


def test_the_peak_is_when_most_was_alive():
    with ll.memory.DeviceWatch() as watch:
        for n in (3, 9, 5):
            ll.ones((n, 100_000))
        at_peak = ll.explain.live_tensors(top=1000, watch=watch, at="peak")
        kept = ll.ones((30, 100_000))
        at_end = ll.explain.live_tensors(top=1000, watch=watch, at="peak", scope={"kept": kept})
    assert [one.nbytes for one in at_peak.records if one.names[0].startswith("gone")] == [9 * 400_000]
    assert [one.nbytes for one in at_end.records if one.names == ("kept",)] == [30 * 400_000]


@pytest.mark.parametrize("at", [0.0, "peak"])
def test_a_watch_that_is_closed_is_not_asked(at):
    with ll.memory.DeviceWatch() as watch:
        x = ll.ones((3, 1000))
        assert ll.explain.live_tensors(watch=watch, at=at, scope={"x": x}).count
    ll.ones((3, 1000))
    with pytest.raises(ll.errors.ArgumentError, match="the watch is closed"):
        ll.explain.live_tensors(watch=watch, at=at)


@pytest.mark.parametrize("at", [-1.0, "start", float("nan")])
def test_what_is_no_moment_is_an_error(at):
    with (
        ll.memory.DeviceWatch() as watch,
        pytest.raises(ll.errors.ArgumentError, match='seconds ago, 0 or more, or "peak"'),
    ):
        ll.explain.live_tensors(watch=watch, at=at)


def test_a_moment_before_the_watch_is_an_error():
    with pytest.raises(ll.errors.ArgumentError, match="known to a watch"):
        ll.explain.live_tensors(at=1.0)
    with ll.memory.DeviceWatch() as watch, pytest.raises(ll.errors.ArgumentError, match="the watch began"):
        ll.explain.live_tensors(watch=watch, at=3600.0)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(buffer_lifetimes, "MOST", 5)
    with ll.memory.DeviceWatch() as watch:
        start = time.perf_counter()
        for _ in range(50):
            ll.ones((3,))
        assert len(watch.lifetimes._gone) == 5
        with pytest.raises(ll.errors.ArgumentError, match="only the last 5 buffers"):
            ll.explain.live_tensors(watch=watch, at=time.perf_counter() - start)
