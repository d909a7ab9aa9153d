"""The corpus of twins through `ll.function`: where a staged function differs from the plain one, that is said.

At the first call, by an error or a warning at the line, where something would be lost or left behind; what Python does
while tracing alone is told by `ll.explain.side_effects`, and what is baked in and has changed by `ll.explain.baked`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import staged_functions  # beside this file
from test_twins import is_fifth, shell  # noqa: F401  # the fixture
from twin import TWINS, differences, read

UNSAID = {
    "part_of_a_computed_array_added_to": "an array is a tensor in the function, and `row += 1.0` makes a new one",
    "kinds_of_inputs_asked": "an array is a tensor in the function, which `isinstance` tells of it",
}
"""Twins whose cells are refused, and which differ as functions without a word, with the reason."""


CHOSEN = [path for path in TWINS if path.stem in UNSAID or "LIMELIGHT_ALL_TWINS" in os.environ or is_fifth(path)]


@pytest.mark.slow  # a fifth of them, in one order each
@pytest.mark.parametrize("path", CHOSEN, ids=lambda path: path.stem)
def test_a_staged_function_says_where_it_differs(path: Path, shell: Any) -> None:  # noqa: F811
    twin = read(path)
    order = twin.brief_order
    plain = staged_functions.run(twin.cells, order, shell, staged=False)
    staged = staged_functions.run(twin.cells, order, shell, staged=True)
    found = list(differences(plain, staged, order))
    said = any(step.said for step in staged)
    if path.stem in UNSAID:
        assert found, "it agrees now: take it off the list"
        assert not said, "it is said now: take it off the list"
        return
    assert said or not found, f"{twin.about}:\n" + "\n".join(found)
    left = [name for step in staged if not step.said for name, x in step.names.items() if "symbolic" in str(x)]
    assert not left or said, f"{twin.about}: left symbolic and unsaid: {left}"
