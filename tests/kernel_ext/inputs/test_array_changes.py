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
    assert "the NumPy array `a` of" in str(error)
    assert f"Write `a = a {line[2]} {line[5:]}` for a new array" in str(error)
    assert error.lineno == 3
    assert shell.user_ns["log"] == []
    np.testing.assert_array_equal(shell.user_ns["a"], before)


@pytest.mark.parametrize(
    ("other", "refused"), [("base[1:]", True), ("base[1::2]", False), ("[base[3:5]]", True), ("base[:0]", False)]
)
def test_an_array_whose_memory_another_input_shares(shell, other, refused):
    """The columns of one matrix lie between each other, and share nothing."""
    shell.run_line_magic("load_ext", "limelight")
    shell.run_cell(f"import numpy as np\nbase = np.arange(8.0)\na = base[::2]\nb = {other}")
    ran = shell.run_cell("%%stage -q\na += 1.0\nc = a.sum() + len(b)")
    error = ran.error_before_exec or ran.error_in_exec
    assert refused == (error is not None and "whose memory `b" in str(error))
    assert shell.user_ns["base"].tolist() == ([0, 1, 2, 3, 4, 5, 6, 7] if refused else [1, 1, 3, 3, 5, 5, 7, 7])
