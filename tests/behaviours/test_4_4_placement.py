"""Section 4.4, where ops run and why: behaviours 105, 106, 110, 111, 117, 119 and 122."""

from __future__ import annotations

import importlib.util
from typing import Any

import accelerator
import numpy as np
import pytest
from behaving import both, where

import limelight as ll
from limelight import events
from limelight.core import devices
from limelight.core.devices import Device
from limelight.core.op import Op
from limelight.errors import DeviceError

pytestmark = pytest.mark.usefixtures("cpus")
Copies = list[tuple[str, str, int, str]]
HAS_JAX = importlib.util.find_spec("jax") is not None


@pytest.fixture
def gpu(cpus: list[Device], monkeypatch: pytest.MonkeyPatch) -> Device:
    """A GPU:0 whose library has no tanh and no bfloat16."""
    return accelerator.install(monkeypatch)


def placed(run: Any) -> list[tuple[str, str | None, str, str]]:
    """The ops that run eagerly: name, device asked for, device, reason."""
    with ll.explain.Placements() as log:
        run()
    return [(one.op, one.requested, one.device, one.reason) for one in log.records]


# 105, 106


def test_105_devices_know_their_memory(gpu: Device, cpus: list[Device]) -> None:
    assert gpu.memory == 2**30
    assert cpus[0].memory == cpus[3].memory  # the host's, which they share
    assert cpus[0].memory is None or cpus[0].memory > 10**8


def test_105_devices_that_hold_what_a_scope_has_made_cannot_go() -> None:
    with ll.device("cpu:1"):
        x = ll.zeros(3)
    with pytest.raises(DeviceError, match="4 CPU devices are in use already"):
        ll.config.set_virtual_devices(CPU=1)
    assert x.device == "cpu:1"


def test_106_specs_are_names() -> None:
    spec = ll.DeviceName(kind="CPU", index=2)
    with ll.device(spec) as device:
        assert device == spec == devices.parse("cpu:2")
    assert ll.ones(2).to(spec).device == "/device:CPU:2"
    assert ll.memory_info(spec).device == "CPU:2"
    with ll.device(ll.DeviceName(task=0)), ll.device(ll.DeviceName(kind="CPU", index=1)) as device:
        assert device == "cpu:1"
    with pytest.raises(DeviceError, match="'/device:CPU:9' does not exist here"):
        ll.ones(2).to(ll.DeviceName(kind="CPU", index=9))


# 110 Automatic selection


@both
def test_110_an_accelerator_among_the_operands_wins(stage: Any, gpu: Device, copies: Copies) -> None:
    x = ll.constant([1.0, 2.0]).to("gpu:0")
    near = ll.constant([3.0, 4.0])
    copies.clear()
    f = stage(lambda a, b: a + b)
    assert where((f(near, x), f(x, near), np.ones(2, "float32") * x)) == ("GPU:0",) * 3
    assert {copy[:3] for copy in copies} == {("CPU:0", "GPU:0", 8)}


@both
def test_110_an_op_without_a_kernel_falls_back_where_nobody_asked(stage: Any, gpu: Device, copies: Copies) -> None:
    x = ll.constant([1.0, 2.0]).to("gpu:0")
    copies.clear()
    y = stage(lambda a: ll.tanh(a) * 1.0)(x)
    np.testing.assert_allclose(y.numpy(), np.tanh([1.0, 2.0]), rtol=1e-6)
    assert y.device == "cpu:0"
    assert copies == [("GPU:0", "CPU:0", 8, "operand of tanh")]


def test_110_the_decision_and_its_reason_can_be_asked_for(gpu: Device) -> None:
    x = ll.constant([1.0, 2.0]).to("gpu:0")
    reason = "fallback from GPU:0: it has no kernel there: FarArray has no function 'tanh'"
    assert placed(lambda: ll.tanh(x)) == [("tanh", None, "CPU:0", reason)]
    f = ll.function(lambda a: ll.tanh(a) + 1.0)
    f(x)
    found = ll.explain.placements(f)
    assert [(one.op, one.device, one.reason, one.copies, one.nbytes) for one in found.records] == [
        ("tanh", "CPU:0", reason, 1, 8),
        ("add", "CPU:0", "with its first tensor operand", 0, 0),
    ]
    assert str(found).startswith(f"tanh on CPU:0: {reason}; 1 copy in, 8 bytes (test_4_4_placement.py line")


@both
def test_110_a_device_that_was_named_is_an_error_or_soft(stage: Any, gpu: Device) -> None:
    def f(a: Any) -> Any:
        with ll.device("gpu:0"):
            return ll.tanh(a)

    x = ll.constant([1.0, 2.0])
    with pytest.raises(DeviceError, match="tanh: GPU:0 is asked for, and it has no kernel there") as caught:
        stage(f)(x)
    said = str(caught.value)
    assert "FarArray has no function 'tanh'; devices that have one: CPU:0, CPU:1, CPU:2, CPU:3" in said
    assert 'with ll.device("CPU:0"):' in said
    assert "test_4_4_placement.py line" in said
    with ll.config.soft_placement():
        assert stage(f)(x).device == "cpu:0"


def test_110_a_dtype_that_a_library_lacks_runs_elsewhere(gpu: Device) -> None:
    x = ll.ones(2).astype("bfloat16")
    with pytest.raises(DeviceError, match=r"add: GPU:0 is asked for, and .* FarArray has no bfloat16"), ll.device(gpu):
        x + x
    with ll.config.soft_placement(), ll.device(gpu):
        assert (x + x).device == "cpu:0"


def test_110_an_op_for_one_library_alone_finds_its_device(gpu: Device) -> None:
    op = Op(
        "only_far",
        inputs="x",
        infer=lambda x: x,
        kernel=lambda xp, x: x * 2,
        special={"numpy": None, "jax": None},
        why_no_gradient="a test",
    )
    from limelight.core import dispatch

    y = dispatch.apply(op, (ll.constant([1.0, 2.0]),))
    assert (y.device, y.tolist()) == ("gpu:0", [2.0, 4.0])
    with (
        pytest.raises(DeviceError, match=r"only_far: CPU:1 is asked for.*devices that have one: GPU:0"),
        ll.device("cpu:1"),
    ):
        dispatch.apply(op, (ll.constant(1.0),))


# 111 What stays on the host


def test_111_sizes_stay_on_the_host_and_the_log_says_so(gpu: Device, copies: Copies) -> None:
    @ll.function(input_signature=[ll.TensorSpec((None, 2))])
    def f(a: Any) -> Any:
        return ll.reshape(a, (ll.shape_of(a)[0] * 2,))

    y = f(ll.ones((3, 2)).to("gpu:0"))
    assert (y.device, y.shape) == ("gpu:0", (6,))
    assert [copy[3] for copy in copies] == [".to()"]
    log = {one.op: one for one in ll.explain.placements(f).records}
    assert (log["shape_of"].device, log["shape_of"].reason) == (
        "CPU:0",
        "on the host, as it computes from shapes alone",
    )
    assert log["reshape_dynamic"].on_host[0] == "shape"
    assert "on the host: shape" in str(log["reshape_dynamic"])


def test_111_axes_are_on_no_device(gpu: Device) -> None:
    x = ll.ones((3, 2)).to("gpu:0")
    with ll.explain.Placements() as log:
        ll.sum(x, axis=1)
    assert [(one.op, one.device, one.copies, one.on_host) for one in log.records] == [
        ("sum", "GPU:0", 0, ("axis", "keepdims"))
    ]


def test_111_text_is_on_no_accelerator(gpu: Device) -> None:
    with pytest.raises(ll.errors.DTypeError, match="cannot make a tensor of text"), ll.device(gpu):
        ll.constant("text")


# 115, 116 State of inner functions, and initialisers


def test_115_variables_that_inner_functions_return_stay_where_they_are() -> None:
    with ll.device("cpu:2"):
        far = ll.Variable([1.0, 2.0])
    inner = ll.function(lambda a: (far, a))

    @ll.function
    def outer(a: Any) -> Any:
        state, passed = inner(a)
        return state + 1.0, passed

    near = ll.ones(2)
    for _ in range(2):
        assert where(inner(near)) == where(outer(near)) == ("CPU:2", "CPU:0")
        assert where(outer(near.to("cpu:1"))) == ("CPU:2", "CPU:1")


def test_116_initialisers_run_where_the_variable_will_be() -> None:
    made: list[Any] = []

    @ll.function
    def f(a: Any) -> Any:
        if not made:
            made.append(ll.Variable(lambda: ll.exp(ll.zeros(2)) * 2.0))
        return made[0] * a

    with ll.explain.Placements() as log, ll.device("cpu:1"):
        f(ll.ones(2))
    assert {one.device for one in log.records if one.op in ("full", "exp", "multiply")} == {"CPU:1"}
    assert made[0].device == "cpu:1"


# 117 Colocation, and what a trace says of devices


@both
def test_117_ops_run_where_a_tensor_is(stage: Any) -> None:
    @stage
    def f(a: Any, b: Any) -> Any:
        c = a + 1.0
        with ll.colocate_with(c):
            return b * 2.0, ll.zeros(2)

    near, far, third = ll.ones(2), ll.ones(2).to("cpu:1"), ll.ones(2).to("cpu:2")
    for a, b in ((near, far), (far, near), (third, near), (near, near), (far, third)):
        assert where(f(a, b)) == (a.device.short,) * 2
    v = ll.Variable(1.0)
    with ll.device("cpu:3"):
        w = ll.Variable(1.0)
    with ll.colocate_with(w), ll.colocate_with(v) as place:
        assert place == "cpu:0"
    with pytest.raises(DeviceError, match="a float is on no device"):
        ll.colocate_with(1.0)


@pytest.mark.parametrize("size", [0, 2, 20])
def test_117_the_body_of_a_loop_knows_where_it_runs(gpu: Device, size: int) -> None:
    said: list[str] = []

    @ll.function
    def f(x: Any, host: Any) -> Any:
        def step(i: Any, x: Any, host: Any) -> Any:
            said.append(x.device.short)
            return i + 1, x + 1.0, host

        return ll.while_loop(lambda i, x, host: i < 2, step, (ll.constant(0), x, host))[1]

    assert [f(ll.ones(4).to(gpu), ll.ones(size)).device.short] == said == ["GPU:0"]


def test_117_a_trace_knows_where_its_tensors_will_be(gpu: Device) -> None:
    said: list[Any] = []
    captured, w = ll.ones(2).to("cpu:3"), ll.Variable(ll.ones(2))
    inner = ll.function(lambda t: said.append(("inner", t.device.short)) or t.to("cpu:2"))

    @ll.function
    def f(a: Any) -> Any:
        b = a * 2.0
        said.extend(
            [("argument", a.device.short), ("result", b.device.short), ("capture", (captured + b).device.short)]
        )
        said.append(("copy", b.to("cpu:1").device.short))
        said.append(("read", (w + 0.0).device.short))
        said.append(("called", inner(b).device.short))
        with ll.device("cpu:1"):
            said.append(("scope", (a + 1.0).device.short))
        return ll.while_loop(
            lambda i, x: i < 2, lambda i, x: (said.append(("loop", x.device.short)) or i + 1, x * 2.0), (0, b)
        )[1]

    for place in ("CPU:2", "GPU:0", "CPU:0"):
        said.clear()
        y = f(ll.ones(2).to(place))
        inside = [("inner", place)]
        expected = [("argument", place), ("result", place), ("capture", "CPU:3" if place[0] == "C" else place)]
        expected += [
            ("copy", "CPU:1"),
            ("read", "CPU:0"),
            *inside,
            ("called", "CPU:2"),
            ("scope", "CPU:1"),
            ("loop", place),
        ]
        assert said == expected
        assert y.device == place


# 118 Control flow runs where most of what it takes is


def test_118_a_condition_on_the_host_does_not_bring_a_branch_there(copies: Copies) -> None:
    x = ll.ones(100).to("cpu:1")
    copies.clear()
    f = ll.function(lambda p, a: ll.cond(p, lambda: a * 2.0, lambda: a))
    assert f(ll.constant(True), x).device == "cpu:1"
    assert all(copy[2] <= 8 for copy in copies)
    loop = ll.function(lambda a: ll.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + a), (0, a))[1])
    copies.clear()
    assert loop(x).device == "cpu:1"
    assert all(copy[2] <= 8 for copy in copies)


# 119 On a compiled device a function is one program


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'")
def test_119_a_function_is_compiled_once_for_each_signature() -> None:
    f = ll.function(lambda a: ll.tanh(a) * 2.0 + a)
    x = ll.constant([1.0, 2.0]).to("XLA:0")
    with ll.explain.Placements() as log:
        for _ in range(3):
            y = f(x)
    assert y.device == "XLA:0"
    assert {one.op for one in log.records} == {"call"}  # nothing ran op by op
    (entry,) = f.trace_cache
    assert len(entry._run_elsewhere._programs) == 1
    f(ll.constant([1.0, 2.0, 3.0]).to("XLA:0"))
    assert [len(one._run_elsewhere._programs) for one in f.trace_cache] == [1, 1]
    np.testing.assert_allclose((ll.tanh(x) * 2.0 + x).numpy(), y.numpy(), rtol=1e-6)  # op by op it runs, too


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'")
def test_119_what_has_no_form_there_is_told_with_its_line() -> None:
    @ll.function
    def f(a: Any) -> Any:
        return ll.py_func(lambda t: t * 2.0, [a], ll.TensorSpec((2,))) + 1.0  # the line

    y = f(ll.constant([1.0, 2.0]).to("XLA:0"))
    assert (y.device, y.tolist()) == ("XLA:0", [3.0, 5.0])
    (entry,) = f.trace_cache
    assert entry.tier == "plan"
    assert "py_func at test_4_4_placement.py:" in entry.tier_reason


# 122 The log


@both
def test_122_the_log_equals_what_happened(stage: Any, copies: Copies) -> None:
    with ll.device("cpu:3"):
        w = ll.Variable([1.0, 1.0], name="w")

    def f(a: Any) -> Any:
        with ll.device("cpu:1"):
            b = ll.exp(a)
        return w.assign_add(b), b + 1.0, a.to("cpu:2")

    x = ll.constant([1.0, 2.0])
    copies.clear()
    staged = ll.function(f)
    if stage is ll.function:
        staged(x)
        log = ll.explain.placements(staged)
    else:
        with ll.explain.Placements() as log:
            f(x)
    found = [(one.op, one.requested, one.device, one.reason, one.copies, one.nbytes) for one in log.records]
    assert found == [
        ("exp", "CPU:1", "CPU:1", "asked for by the scope around it", 1, 8),
        ("assign_add", None, "CPU:3", "with its variable w", 1, 8),
        ("add", None, "CPU:1", "with its first tensor operand", 0, 0),
        ("to_device", None, "CPU:2", "the op says where", 1, 8),
    ]
    assert sum(one.copies for one in log.records) == len(copies)
    assert sum(one.nbytes for one in log.records) == sum(copy[2] for copy in copies)
    assert all(
        one.line.text in ("b = ll.exp(a)", 'return w.assign_add(b), b + 1.0, a.to("cpu:2")') for one in log.records
    )


def test_122_nothing_traced_has_no_placements() -> None:
    with pytest.raises(ll.errors.ArgumentError, match="it has not been traced yet"):
        ll.explain.placements(ll.function(lambda x: x))
    with pytest.raises(ll.errors.ArgumentError, match="got int"):
        ll.explain.placements(3)


def test_listeners_of_several_kinds_come_and_go_alone() -> None:
    seen: list[Any] = []
    with events.listen(seen.append, events.OpRan):
        with events.listen(print, events.Freed):
            pass
        ll.ones(2) + 1.0
    assert [one.op for one in seen][-1] == "add"
