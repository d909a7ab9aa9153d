"""How variables and modules of one's own are shown."""

from __future__ import annotations

from typing import Any

import limelight as ll


class Net(ll.Module):
    def __init__(self) -> None:
        self.hidden = ll.nn.Dense(8, "relu")
        self.scale = ll.Variable([1.0, 2.0])
        self.rate = 0.5

    def call(self, x: Any) -> Any:
        return self.hidden(x)


def test_a_module_shows_its_children() -> None:
    shown = """Net(
    hidden=Dense(8, activation=relu),
    scale=Variable(shape=(2,), dtype=float32),
)"""
    assert repr(Net()) == shown
    outer = ll.Module()
    assert repr(outer) == "Module()"
    outer.nets = [Net(), ll.nn.Sequential(Net())]  # type: ignore[attr-defined]  # any attribute is state
    assert repr(outer).count(shown.split("\n")[1].strip()) == 2
    assert "    nets/0=Net(\n        hidden=Dense(8" in repr(outer)


def test_a_large_module_and_a_circle_are_cut_short() -> None:
    large = ll.Module()
    large.parts = [ll.Variable(1.0) for _ in range(25)]  # type: ignore[attr-defined]  # any attribute is state
    assert repr(large).endswith("    ... and 5 more\n)")
    circle = ll.Module()
    circle.again = circle  # type: ignore[attr-defined]  # any attribute is state
    assert repr(circle) == "Module(\n    again=Module(...),\n)"
    deep: Any = ll.Module()
    for _ in range(2000):
        outer: Any = ll.Module()
        outer.inner, deep = deep, outer
    assert len(repr(deep)) < 500


def test_the_rows_of_a_variable_stand_below_each_other() -> None:
    assert repr(ll.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")) == (
        "ll.Variable(\n[[1., 2.],\n [3., 4.]], name='w', shape=(2, 2), dtype=float32)"
    )
    assert repr(ll.Variable([1.0], name="w")) == "ll.Variable([1.], name='w', shape=(1,), dtype=float32)"
