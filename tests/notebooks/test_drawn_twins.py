"""Cells drawn from a grammar of statements, run with `%%stage` and without; LIMELIGHT_DRAWN_TWINS=N draws N of them.

LIMELIGHT_DRAWN_TWINS_SEED=K draws others, LIMELIGHT_DRAWN_TWINS_FLAGS="-q --autograph" stages them otherwise.
A staged cell may refuse, which says so and leaves the notebook as it was, and it may warn of what Python does while
tracing alone: then what comes of these lines may differ (`draws_of_traces`). All else is as in the plain cell.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from draws_of_traces import Covered  # beside this file
from grammar import CELLS, CHANGES, ORDERS, SETUP  # beside this file
from hypothesis import HealthCheck, example, given, seed, settings
from test_twins import shell  # noqa: F401  # the fixture
from twin import Step, differences, run, same

EXAMPLES = int(os.environ.get("LIMELIGHT_DRAWN_TWINS", "50"))
SEED = os.environ.get("LIMELIGHT_DRAWN_TWINS_SEED")
FLAGS = os.environ.get("LIMELIGHT_DRAWN_TWINS_FLAGS", "-q")
BUILT = {"net", "lazy", "opt"}  # weights that a refused cell has made stay, as those of a plain cell that fails
NOTED = {"noting"}  # ends its `with` block in a refused cell, too


@pytest.mark.slow  # a hundred notebooks, each run twice
@(seed(int(SEED)) if SEED else lambda test: test)
@given(CELLS, CELLS, CHANGES, ORDERS)
@example("%%stage\nxs[0], ys[-1] = ys[-1], xs[0]", "%%stage\nd['z'] = xs\nys = alias", "n = n % 3 + 1", (1, 2, 3, 4, 2))
@example("%%stage\ncfg.t = cfg.t * 2.0 + box.t", "%%stage\nbox.t = cfg.t", "cfg = Config(t=a)", (1, 2, 2, 3, 4, 2))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_drawn_cells_are_their_plain_twins(shell: Any, one: str, other: str, change: str, order: Any) -> None:  # noqa: F811
    cells = (SETUP, one, other, change)
    plain = run(cells, order, shell, staged=False)
    staged = run(cells, order, shell, staged=True, flags=FLAGS)
    refused = next(
        (i for i, (x, y) in enumerate(zip(plain, staged, strict=True)) if y.error and x.error != y.error), None
    )
    if refused is not None:
        assert staged[refused].said
        changed = _changed(staged[refused - 1], staged[refused])
        assert not changed, f"a refused cell has changed {changed}:\n" + "\n----\n".join(cells[1:])
        plain, staged, order = plain[:refused], staged[:refused], order[:refused]
    found = list(differences(plain, staged, order, Covered(cells).after))
    assert not found, "\n----\n".join([*cells[1:], *found])


def test_a_warning_of_draws_covers_what_comes_of_them_alone(shell: Any) -> None:  # noqa: F811
    cells = (
        "import random\nrandom.seed(0)\nx, xs, other, n = ll.ones(2), [1], [2], 1\nalias = xs",
        "%%stage\nn = 5\nr = random.random()\ny = x * r\nxs.append(r)\nother.append(n)",
        "z = y + 1.0\nw = x + 1.0",
    )
    covered, order = Covered(cells), (1, 2, 2, 3)
    plain, staged = run(cells, order, shell, staged=False), run(cells, order, shell, staged=True)
    assert not list(differences(plain, staged, order, covered.after))
    assert list(differences(plain, staged, order))
    assert covered.names - {"_"} == {"r", "y", "xs", "alias", "z"}


def test_a_warning_of_draws_covers_functions_that_keep_them(shell: Any) -> None:  # noqa: F811
    cells = (
        "import random\nrandom.seed(0)\nx = ll.ones(2)",
        "%%stage\ndef running():\n    total = 0.0\n    def add(more):\n        nonlocal total\n        "
        "total = total + more\n        return total\n    return add\nadd = running()\n"
        "add(x * random.random())\ny = add(x)\nz = x + 1.0",
    )
    covered, order = Covered(cells), (1, 2, 2)
    plain, staged = run(cells, order, shell, staged=False), run(cells, order, shell, staged=True)
    assert not list(differences(plain, staged, order, covered.after))
    assert list(differences(plain, staged, order))
    assert "z" not in covered.names


def _changed(before: Step, after: Step) -> list[str]:
    names: Sequence[str] = sorted({*before.names, *after.names} - BUILT - NOTED)
    return [name for name in names if not same(before.names.get(name), after.names.get(name))]
