"""Arrays of NumPy's that a cell changes in place, and what else shows their memory."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

from limelight_kernel.staged.array_aliases import ByMemory, Reached, aliases

VIEWS = re.split(
    r"\s{3,}",
    """
    a[1:]   a[0]   a[::-1]   a[None]   a[...]   a[:, 1]   a.T   a.reshape(-1)   a.ravel()   a.squeeze()   a.transpose()
    a.transpose(1, 0)   a.astype(np.float64, copy=False)   a.conj()   np.flip(a)   np.flip(a, 0)   np.fliplr(a)
    np.flipud(a)   np.rot90(a)   np.transpose(a)   np.swapaxes(a, 0, 1)   np.moveaxis(a, 0, 1)   np.reshape(a, -1)
    np.ravel(a)   np.squeeze(a)   np.expand_dims(a, 0)   np.broadcast_to(a, (2, 2, 3))   np.atleast_1d(a)
    np.atleast_3d(a)   np.split(a, 2)[0]   np.array_split(a, 2)[1]   np.vsplit(a, 2)[0]   np.diagonal(a)   np.real(a)
    a.real   list(a)[1]   [row for row in a][0]   next(iter(a))   max([a], key=len)   (a, 1)[0]   {'k': a}['k']
""".strip(),
)
"""What shows the memory of `a`, or is `a`."""

COPIES = re.split(
    r"\s{3,}",
    """
    a + 0.0   a.copy()   a.flatten()   np.copy(a)   a.astype(np.float64)
    np.conj(a)
    a[[0, 1]]   np.roll(a, 1)   np.tile(a, 1)   np.repeat(a, 1, 0)   np.concatenate([a, a])   np.stack([a, a])
""".strip(),
)


@pytest.mark.parametrize("line", ["b += 1.0", "a += 1.0"])
def test_each_name_of_the_same_memory_sees_a_change_or_the_cell_says_no(run, shell, line):
    run("%load_ext limelight\nimport numpy as np")
    for view in VIEWS + COPIES:
        expected: dict[str, Any] = {"np": np}
        try:
            exec(f"a = np.arange(6.0).reshape(2, 3)\nb = {view}\n{line}\ny, z = a.sum(), b.sum()", expected)
        except ValueError:  # it is read-only
            continue
        run("a = np.arange(6.0).reshape(2, 3)")
        ran = run(f"%%stage -q\nb = {view}\n{line}\ny, z = a.sum(), b.sum()", fails=None)
        if ran.error is None:
            for name in ("y", "z", "a"):
                np.testing.assert_allclose(shell.user_ns[name], expected[name], err_msg=f"{name} of {view}; {line}")
        elif view in COPIES:
            raise AssertionError(f"{view}: {ran.error}")


def test_an_array_that_a_named_tuple_has_from_a_later_run_on(run, shell):
    run("%load_ext limelight\nimport numpy as np\nfrom collections import namedtuple\nPair = namedtuple('Pair', 'x y')")
    run("arr, pair = np.arange(3.0), Pair(np.zeros(3), 1.0)")
    cell = "%%stage -q\narr += 1.0\ny = pair.x.sum() * pair.y"
    run(cell)
    run(cell)
    run("pair = Pair(arr, 1.0)")
    ran = run(cell, fails=True)
    assert "`arr += 1.0` changes a NumPy array in place whose memory `pair[0]` shares" in str(ran.error)
    assert shell.user_ns["arr"].tolist() == [2.0, 3.0, 4.0]
    run("pair = Pair(arr.copy(), 1.0)")
    run(cell)
    assert shell.user_ns["y"] == 9.0


def test_a_trace_that_changes_no_array_is_not_refused_for_what_another_does(run, shell):
    run("%load_ext limelight\nimport numpy as np\narr, other, on = np.arange(3.0), np.zeros(3), True")
    cell = "%%stage -q\nif on:\n    arr += 1.0\ny = (arr + other).sum()"
    run(cell)
    run("on, other = False, arr")
    run(cell)
    assert shell.user_ns["y"] == 12.0


@pytest.mark.parametrize(
    ("line", "instead"),
    [("row *= 2.0 + 1.0", "row = row * (2.0 + 1.0)"), ("if on: row -= 1.0", "row = row - 1.0")],
)
def test_a_refusal_says_what_to_write_by_the_names_and_the_operator_of_the_line(run, line, instead):
    run("%load_ext limelight\nimport numpy as np\narr, on = np.arange(6.0).reshape(2, 3), True")
    ran = run(f"%%stage -q\nrow = arr[0]\n{line}\ny = arr.sum()", fails=True)
    assert f"Write `{instead}`" in str(ran.error)


def test_out_and_operators_on_other_arrays_say_what_to_write(run):
    run("%load_ext limelight\nimport numpy as np, types")
    run("arr, box = np.arange(3.0), types.SimpleNamespace(n=np.zeros(3))")
    ran = run("%%stage -q\nprint('before')\nbox.n += arr", fails=True)  # another trace would print again
    assert "write `box.n = box.n + arr` for a new array" in str(ran.error)
    ran = run("%%stage -q\nc = np.empty(3)\nnp.add(arr, 1.0, out=c)", fails=True)
    assert "write `c = np.add(arr, 1.0)` for a new array" in str(ran.error)


def test_a_hit_of_a_cell_that_changes_an_array_looks_at_arrays_alone(run, shell):
    """Not at each of the values that stand in containers beside it."""
    run("%load_ext limelight\nimport numpy as np")

    def calls_of_a_hit(size: int) -> int:
        run(f"arr, table = np.arange(3.0), {{str(i): float(i) for i in range({size})}}")
        run("%%stage -q step\narr += 1.0\ny = arr.sum() * table['3']")
        step = shell.user_ns["step"]
        for _ in range(3):
            step(arr=np.zeros(3))
        calls = 0

        def count(_frame: Any, event: str, _: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            step(arr=np.zeros(3))
        finally:
            sys.setprofile(None)
        return calls

    assert calls_of_a_hit(5000) < 300


def test_only_arrays_of_one_owner_are_compared():
    base, other = np.arange(6.0), np.zeros(3)
    known = ByMemory([Reached("base[::2]", base[::2]), Reached("other", other)])
    assert [one.path for one in known.sharing("x", base[1:])] == ["base[::2]"]
    assert list(known.sharing("x", base[1::2])) == []
    assert list(known.sharing("other", other)) == []
    buffer = bytearray(24)
    lent = ByMemory([Reached("x", np.frombuffer(buffer))])
    assert [one.path for one in lent.sharing("y", np.frombuffer(buffer)[1:])] == ["x"]


def test_an_alias_knows_what_it_held():
    base = np.arange(4.0)
    (alias,) = aliases([Reached("a", base)], [Reached("a", base), Reached("f.args[0]", base[1:])])
    assert not alias.is_changed
    base[2] = 9.0
    assert alias.is_changed
    alias.put_back()
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0]
