"""An interrupt while the notebook's state is put back after a trace leaves nothing of the trace behind."""

import sys
from collections import OrderedDict, deque
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

import limelight as ll
from limelight_kernel.staged.borrowed_state import BorrowedState
from limelight_kernel.staged.cell_body import _restore


class InterruptAtLine:
    """Raises KeyboardInterrupt once, at the n-th line that runs in the modules that put things back."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.passed = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.endswith(("borrowed_state.py", "contents.py")):
            return None
        if event == "line" and not self.passed:
            self.left -= 1
            if self.left == 0:
                self.passed = True
                raise KeyboardInterrupt
        return self


def lent() -> tuple[dict[str, Any], BorrowedState, list[Any]]:
    """A notebook's inputs in the middle of a trace: some lent, some changed, some removed; and what they held."""
    a, b, c = ll.ones(2), ll.zeros(2), ll.ones(3)
    inputs = {
        "xs": [a, b], "d": OrderedDict(a=a, b=b), "window": deque([a, b], maxlen=2), "names": {"x"},
        "box": SimpleNamespace(t=a, kept=[b], n=1),
    }  # fmt: skip
    held = [[a, b], [("a", a), ("b", b)], [a, b], {"x"}, {"t": a, "kept": inputs["box"].kept, "n": 1}, [b]]
    state = BorrowedState(inputs)
    state.lend("xs", inputs["xs"], [c, c])
    state.lend_inside(inputs["box"], (".", "t"), c)
    state.begin()
    inputs["xs"].append(c)
    inputs["d"]["a"], inputs["d"]["z"] = c, c
    inputs["window"].append(c)
    inputs["names"].add("y")
    inputs["box"].kept.append(c)
    inputs["box"].extra, inputs["box"].n = c, 2
    return inputs, state, held


def now(inputs: dict[str, Any]) -> list[Any]:
    box = inputs["box"]
    return [list(inputs["xs"]), list(inputs["d"].items()), list(inputs["window"]), inputs["names"], vars(box), box.kept]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, ll.Tensor):
        return one is other
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(x, other[key]) for key, x in one.items())
    return len(one) == len(other) and all(map(same, one, other)) if isinstance(one, list | tuple) else one == other


def test_an_interrupt_at_any_line_of_putting_back_leaves_nothing_of_the_trace() -> None:
    n, interrupted = 0, True
    while interrupted:
        n += 1
        inputs, state, held = lent()
        interrupt = InterruptAtLine(n)
        sys.settrace(interrupt)
        try:
            _restore(state)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        interrupted = interrupt.passed
        assert same(now(inputs), held), n
    assert n > 100


def test_it_is_raised_afterwards() -> None:
    _, state, _ = lent()
    sys.settrace(InterruptAtLine(9))
    try:
        with pytest.raises(KeyboardInterrupt):
            _restore(state)
    finally:
        sys.settrace(None)
