"""Is a split that is another one in each pass told of at the user's line, and is any other left alone?"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import limelight as ll

Step = Callable[[Any], Any]


def numbers() -> Any:
    return ll.data.from_sequence(range(10))


NEW_IN_EACH_PASS: dict[str, Step] = {
    "seeded": lambda d: d.shuffle(seed=0),
    "unseeded": lambda d: d.shuffle(),
    "window": lambda d: d.shuffle(seed=0, window=4),
    "mapped": lambda d: d.shuffle(seed=0).map(lambda x: x + 1),
    "batched": lambda d: d.shuffle(seed=0).batch(2),
    "fetched": lambda d: d.shuffle(seed=0).prefetch(2),
    "zipped": lambda d: ll.data.zip((d, d.shuffle(seed=0))),
    "shuffled twice": lambda d: d.shuffle(seed=0, reshuffle=False).shuffle(seed=1),
}
THE_SAME: dict[str, Step] = {
    "in order": lambda d: d,
    "one order": lambda d: d.shuffle(seed=0, reshuffle=False),
    "cached": lambda d: d.shuffle(seed=0).cache(),
    "a stream": lambda d: d.shuffle(seed=0).repeat(),
}


@pytest.mark.parametrize("name", NEW_IN_EACH_PASS)
def test_a_split_that_is_another_in_each_pass_is_told_of(name: str) -> None:
    data = NEW_IN_EACH_PASS[name](numbers())
    with pytest.warns(UserWarning, match=r"skip\(3\): shuffle\(.*another order") as heard:
        data.skip(3)
    assert [warning.filename for warning in heard] == [__file__]
    assert "reshuffle=False" in str(heard[0].message)


@pytest.mark.parametrize("name", THE_SAME)
def test_any_other_split_is_left_alone(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        THE_SAME[name](numbers()).skip(3)
        numbers().shuffle(seed=0).skip(0)
        numbers().shuffle(seed=0).take(3)


def test_what_the_warning_tells_to_write_is_a_split() -> None:
    with pytest.warns(UserWarning, match=r"write shuffle\(seed=0, reshuffle=False\)"):
        numbers().shuffle(seed=0).skip(3)
    data = numbers().shuffle(seed=0, reshuffle=False)
    held_out, rest = data.take(3), data.skip(3)
    for _ in range(3):
        assert not {x.item() for x in held_out} & {x.item() for x in rest}
