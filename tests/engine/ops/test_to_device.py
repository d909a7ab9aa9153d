"""Moving tensors between devices: real copies, none where none is needed, and gradients that come home."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import limelight as ll
from limelight import events
from limelight.errors import DeviceError

pytestmark = pytest.mark.slow  # many compiled ways for each case: not while you work


def run(code: str) -> str:
    """What code prints in a process of its own, since devices once in use stay."""
    code = (
        "import limelight as ll\nfrom limelight import events\nll.config.set_virtual_devices(CPU=2)\n"
        + textwrap.dedent(code)
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_to_the_same_device_moves_no_bytes():
    x = ll.constant([1.0])
    with events.listen(lambda event: pytest.fail(f"{event}"), events.Copied):
        y = x.to("CPU:0")
    assert y.device is x.device
    assert y.tolist() == [1.0]


def test_a_device_that_does_not_exist():
    with pytest.raises(DeviceError, match="devices here"):
        ll.constant(1.0).to("CPU:99")


def test_a_copy_is_real_and_says_why():
    told = run("""
        x = ll.constant([1.0, 2.0])
        with events.listen(lambda e: print(e.source_device, e.target_device, e.nbytes, e.cause), events.Copied):
            y = x.to("cpu:1")
        print(y.device.short, y.tolist(), y._data is not x._data)
    """)
    assert told == "CPU:0 CPU:1 8 .to()\nCPU:1 [1.0, 2.0] True\n"


def test_to_wins_over_a_device_scope():
    told = run("""
        with ll.device("cpu:1"):
            x = ll.constant([1.0]) * 2
            made = (x, x.to("cpu:0"), ll.zeros(2), ll.random.normal((2,)))
            print(*[y.device.short for y in made])
    """)
    assert told == "CPU:1 CPU:0 CPU:1 CPU:1\n"


def test_the_gradient_comes_back_to_the_source():
    told = run("""
        x = ll.constant([1.0, 2.0])
        for stage in (lambda f: f, ll.function):
            f = stage(lambda x: (x.to("cpu:1") * x.to("cpu:1")).sum())
            with ll.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            g = tape.gradient(y, x)
            print(y.device.short, g.device.short, g.tolist())
    """)
    assert told == "CPU:1 CPU:0 [2.0, 4.0]\n" * 2


def test_likes_and_constants_in_gradients_stay_where_their_tensor_is():
    told = run("""
        x = ll.constant([1.0, -2.0]).to("cpu:1")
        copies = []
        with events.listen(copies.append, events.Copied):
            print(ll.zeros_like(x).device.short, ll.nn.relu(x).device.short)
            with ll.GradientTape() as tape:
                tape.watch(x)
                y = ll.nn.softmax(ll.abs(x) ** 3)[0]
            print(tape.gradient(y, x).device.short)
        print(sum(c.nbytes > 8 for c in copies))
    """)
    assert told == "CPU:1 CPU:1\nCPU:1\n0\n"
