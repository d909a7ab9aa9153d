"""Warnings at the user's line: also at those of a terminal, `python -c` and `exec`, whose code is in no file."""

import warnings

import pytest

import limelight as ll
from limelight.errors import LostChangeWarning
from limelight.user_code.source_line import Source
from limelight.user_code.warn_at import warn_at


@pytest.mark.parametrize(
    ("file", "module"),
    [("/home/me/train.py", "train"), ("<stdin>", "<stdin>"), ("<ipython-input-3-8a>", "<ipython-input-3-8a>")],
)
def test_it_is_heard_from_every_file_and_filters_know_the_module(file, module):
    with pytest.warns(LostChangeWarning, match="lost") as heard:
        warn_at(Source(file, 3, "f"), "lost", LostChangeWarning)
    assert (heard[0].filename, heard[0].lineno) == (file, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module=module)
        warn_at(Source(file, 3, "f"), "lost", LostChangeWarning)


def drops(x):
    x.sort()
    x.at[0].set(1.0)


def test_a_line_is_warned_of_once_and_again_where_the_filters_say_always():
    for action, times in (("default", 2), ("always", 6)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter(action)
            for _ in range(3):
                drops(ll.constant([2.0, 1.0]))
                warn_at(Source("<gone>", 3, "f"), "lost", LostChangeWarning)
        here = [w.lineno - drops.__code__.co_firstlineno for w in heard if w.filename == __file__]
        assert here == [1, 2] * (times // 2)
        assert len([w for w in heard if w.filename == "<gone>"]) == times // 2


def test_a_change_that_is_lost_is_told_in_a_terminal():
    names = {"ll": ll}
    exec(compile("@ll.function\ndef f(x, d):\n    d['y'] = x\n    return x", "<stdin>", "exec"), names)
    with pytest.warns(LostChangeWarning, match="the change is lost"):
        names["f"](ll.ones(2), {})
