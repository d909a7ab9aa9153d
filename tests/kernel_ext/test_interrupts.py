"""An interrupt in a real kernel, in the midst of staged calls: the traceback has the user's lines and no other."""

from __future__ import annotations

import re
import time

import pytest
from jupyter_client.manager import start_new_kernel

PROGRAM = """\
%load_ext limelight
import limelight as ll
x = ll.ones((150, 150))
@ll.function
def f(x):
    for _ in range(6):
        x = ll.tanh(x @ x)
    return x
f(x)"""
LOOP = "for i in range(10**8):\n    y = f(x)"


@pytest.fixture(scope="module")
def client():
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def ran(client, code, interrupt=None):
    """The traceback of a cell, "" for none; interrupted some seconds after it has begun."""
    manager, client = client
    asked, said, busy = client.execute(code), "", None
    while True:
        if busy is not None and interrupt is not None and time.monotonic() - busy > interrupt:
            manager.interrupt_kernel()
            interrupt = None
        try:
            message = client.get_iopub_msg(timeout=0.05)
        except Exception:  # noqa: BLE001  # nothing has come, whichever queue says so
            continue
        if message["parent_header"].get("msg_id") != asked:
            continue
        if message["msg_type"] == "error":
            said = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "status":
            busy = time.monotonic()
            if message["content"]["execution_state"] == "idle":
                return said


@pytest.mark.slow  # starts a kernel
@pytest.mark.timeout(120)
def test_a_loop_of_staged_calls_shows_the_users_line_alone(client):
    assert ran(client, PROGRAM) == ""
    for after in (0.1, 0.13, 0.17):
        said = ran(client, LOOP, after)
        assert "KeyboardInterrupt" in said
        assert "y = f(x)" in said
        assert not re.search(r"limelight[/\\]|File |ipykernel", said), said
        assert said.count("Cell In[") == 1
