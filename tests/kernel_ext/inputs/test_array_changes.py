"""Arrays that a cell changes in place: what is refused, and at which line."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("array", "line"),
    [("np.arange(3)", "a += 0.5"), ("np.ones(3)", "a *= np.ones((2, 3))"), ("np.ones(3, np.float32)", "a += 1j")],
)
def test_a_result_that_the_array_cannot_take_is_refused_at_the_line_and_nothing_changed(shell, array, line):
    shell.run_line_magic("load_ext", "limelight")
    shell.run_cell(f"import numpy as np\na = {array}\nlog = []")
    before = shell.user_ns["a"].copy()
    ran = shell.run_cell(f"%%stage -q\nlog.append(1)\n{line}")
    error = ran.error_before_exec or ran.error_in_exec
    assert "the array `a` of" in str(error)
    assert error.lineno == 3
    assert shell.user_ns["log"] == []
    np.testing.assert_array_equal(shell.user_ns["a"], before)
