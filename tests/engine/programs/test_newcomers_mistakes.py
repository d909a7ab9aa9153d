"""Mistakes that people make who know another library: does the message say what to write, and nothing that misleads?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import limelight as ll
from limelight.errors import (
    ArgumentError,
    CallError,
    CheckpointWarning,
    DeviceError,
    DTypeError,
    MissingCheckpointError,
    ShapeError,
    SignatureError,
)
from limelight.user_code import call_notes

loose: Any = ll  # the mistakes are no news to type checkers
BOOLEANS, INTS, FLOATS = ll.constant([True, False]), ll.constant([1, 2]), ll.constant([0.5, 1.0])


class Mistake(NamedTuple):
    """`said` are patterns of the message, `unsaid` words that mislead."""

    call: Callable[[], Any]
    error: type[Exception]
    said: str
    unsaid: str = "never said"


def _staged(spec: Any) -> Any:
    return ll.function(input_signature=[spec])(lambda x: x)


def _two_inputs(layer: Any) -> Any:
    return layer(ll.ones((1, 1)), ll.ones((1, 1)))


MISTAKES: dict[str, Mistake] = {
    "counter beside a float": Mistake(
        lambda: ll.fori_loop(0, 3, lambda i, total: total + i, 0.0),
        DTypeError,
        r"write ll\.astype\(i, ll\.float32\)",
        "begin with",
    ),
    "condition of a tuple": Mistake(
        lambda: loose.while_loop(lambda s: s[0] < 3, lambda s: s, (0, 1)),
        CallError,
        r"cond gets 2 arguments.*; take them one by one, lambda a, b: \.\.\.",
    ),
    "map of a pair": Mistake(
        lambda: next(iter(ll.data.from_arrays((np.arange(3), np.arange(3))).map(lambda pair: pair))),
        CallError,
        r"gets 2 arguments.*lambda a, b: \.\.\.",
    ),
    "too many, which are no tuple": Mistake(
        lambda: loose.map_fn(lambda a, b: a, ll.ones((3,))), CallError, "gets 1 argument", "one by one"
    ),
    "size to build": Mistake(
        lambda: ll.nn.Sequential(ll.nn.Dense(2)).build(4), ArgumentError, r"write \(None, 4\) for rows"
    ),
    "shape for a spec": Mistake(
        lambda: _staged((None, 4)), SignatureError, r"write ll\.TensorSpec\(\(None, 4\)\) for \(None, 4\)"
    ),
    "other size than the spec's": Mistake(
        lambda: _staged(ll.TensorSpec((None, 4)))(ll.ones((2, 5))), SignatureError, "axis 1 must have size 4, has 5"
    ),
    "other dtype and size": Mistake(
        lambda: _staged(ll.TensorSpec((None, 4)))(np.ones((2, 5))), SignatureError, "axis 1 must have size 4, has 5"
    ),
    "rows of two lengths": Mistake(
        lambda: ll.constant([[1.0], [1.0, 2.0]]),
        ShapeError,
        r"x\[0\] has 1 element, and x\[1\] has 2 elements; fill rows up",
        "inhomogeneous",
    ),
    "rows of two lengths, deep": Mistake(
        lambda: ll.constant([[[1, 2], [3]], [[1, 2], [3, 4]]]),
        ShapeError,
        r"x\[0\]\[0\] has 2 .*x\[0\]\[1\] has 1 element;",
    ),
    "a number among rows": Mistake(lambda: ll.constant([[1, 2], 3]), ShapeError, r"x\[0\] has 2 .*x\[1\] .* number"),
    "a minus before truth values": Mistake(
        lambda: -BOOLEANS, DTypeError, r"write ~BOOLEANS, or ll\.astype\(BOOLEANS, ll\.int32\) first"
    ),
    "a minus before a comparison": Mistake(lambda: -(INTS > 1), DTypeError, r"write ~\(INTS > 1\), or"),
    "a sum of truth values": Mistake(
        lambda: ll.sum(BOOLEANS), DTypeError, r"write ll\.count_nonzero\(BOOLEANS\) to count, or ll\.astype\(BOOLEANS,"
    ),
    "a sum of a comparison": Mistake(
        lambda: (INTS > 1).sum(axis=0), DTypeError, r"write ll\.count_nonzero\(INTS > 1\) to"
    ),
    "a product along an axis": Mistake(lambda: ll.prod(BOOLEANS, axis=0), DTypeError, r"write ll\.all\(BOOLEANS\), or"),
    "a root of ints": Mistake(lambda: ll.sqrt(INTS), DTypeError, r"write ll\.astype\(INTS, ll\.float32\) first"),
    "ints for a condition": Mistake(
        lambda: ll.where(INTS, FLOATS, FLOATS), DTypeError, r"write ll\.astype\(INTS, ll\.bool_\) first"
    ),
    "floats for indices": Mistake(
        lambda: ll.take(INTS, FLOATS), DTypeError, r"write ll\.astype\(FLOATS, ll\.int32\) first"
    ),
    "operands from tuples": Mistake(
        lambda: ll.add(*(BOOLEANS,), *(BOOLEANS,)), DTypeError, r"write x \| y, or ll\.astype\(x, ll\.int32\) first"
    ),
    "arrays of two shapes": Mistake(
        lambda: ll.constant([np.ones((2, 2)), np.ones((2, 3))]), ShapeError, r"the shape \(2, 2\).* the shape \(2, 3\)"
    ),
    "two numbers of two kinds": Mistake(
        lambda: ll.where(ll.constant([True, False]), 1, 0.5),
        DTypeError,
        r"where: i32\[\] and f32\[\] do not mix",
        "bool",
    ),
    "PyTorch's name of a device": Mistake(
        lambda: ll.ones((2,)).to("cuda:0"), DeviceError, 'write "GPU:0"; devices here: CPU:0', "did you mean"
    ),
    "two inputs of a sequence": Mistake(
        lambda: _two_inputs(ll.nn.Sequential(ll.nn.Dense(1))), ArgumentError, r"Sequential: `training`.*got f32\[1,1\]"
    ),
    "rate at a call": Mistake(lambda: _two_inputs(ll.nn.Dropout(0.5)), ArgumentError, "True or False"),
    "mask of a norm": Mistake(lambda: _two_inputs(ll.nn.BatchNorm()), ArgumentError, "there is one input"),
    "mode of a layer": Mistake(
        lambda: loose.nn.Dropout(0.5)(ll.ones((2,)), training="train"), ArgumentError, "got str; there is one input"
    ),
    "weights of examples": Mistake(
        lambda: loose.nn.softmax_cross_entropy(ll.ones((1, 2)), ll.constant([0]), sample_weight=[1.0]),
        TypeError,
        r"(?s)unexpected keyword argument 'sample_weight'.*ll\.mean\(weight \* loss\)",
    ),
    "labels to leave out": Mistake(
        lambda: loose.nn.softmax_cross_entropy(ll.ones((1, 2)), ll.constant([0]), ignore_index=-100),
        TypeError,
        r"(?s)unexpected keyword argument 'ignore_index'.*ll\.average\(loss, weights=known\)",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_says_what_to_write(name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(mistake.error) as caught:
        mistake.call()
    call_notes.note_call(caught.value)  # as where a script ends with it
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(mistake.said, told), told
    assert mistake.unsaid not in told


@pytest.mark.parametrize("training", [True, False, None, 1, 0, np.True_, ll.constant(True)])
@pytest.mark.parametrize("layer", [ll.nn.Sequential(ll.nn.Dropout(0.5)), ll.nn.Dropout(0.5), ll.nn.BatchNorm()])
def test_whatever_is_a_flag_is_one(layer: Any, training: Any) -> None:
    assert layer(ll.ones((4, 2)), training=training).shape == (4, 2)


def test_a_name_without_its_number_leads_to_the_newest_file(tmp_path: Path) -> None:
    checkpoint = ll.Checkpoint(v=ll.Variable(1.0))
    for name in ("run", "model.safetensors"):
        paths = [checkpoint.save(tmp_path / name) for _ in range(11)]
        with pytest.raises(MissingCheckpointError, match="`save` adds a number") as caught:
            checkpoint.restore(tmp_path / name)
        assert str(paths[-1]) in str(caught.value)
    with pytest.raises(MissingCheckpointError) as caught:
        checkpoint.restore(tmp_path / "ru")
    assert "adds a number" not in str(caught.value)


def test_the_best_of_a_manager_that_knows_none(tmp_path: Path) -> None:
    manager = ll.CheckpointManager({"v": ll.Variable(1.0)}, tmp_path)
    manager.save(loss=1.0)
    with pytest.raises(ArgumentError, match=r"was not said.*best='loss'"):
        manager.restore("best")


def test_weights_under_other_names_are_told_to_be_renamed(tmp_path: Path) -> None:
    net, path = ll.nn.Dense(3), tmp_path / "w.safetensors"
    net.build((None, 2))
    ll.nn.save_weights(net, path)
    model = ll.nn.Sequential(ll.nn.Dense(3))
    model.build((None, 2))
    with pytest.warns(CheckpointWarning, match=r"rename=\{'theirs': 'ours'\}") as heard:
        ll.nn.load_weights(model, path)
    assert "checkpoint.restore" not in str(heard[0].message)
    ll.nn.load_weights(model, path, rename={"kernel": "layers.0.kernel", "bias": "layers.0.bias"}).assert_consumed()
