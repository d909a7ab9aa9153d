"""Files of ll.save that somebody has changed: they load, or are refused in words, in bounded memory."""

import contextlib
import copy
import json
import os
import tracemalloc

import numpy as np
import pytest

import limelight as ll
from limelight.checkpoint.checkpoint_file import FUNCTIONS
from limelight.errors import ExportError, LimelightError

PUT_IN = [None, 5, -1.5, [], ["nope"], {}, {"nope": 1}, "x" * 5000, True, 1 << 80]
FULL = os.environ.get("LIMELIGHT_TESTS") == "full"


class Net(ll.Module):
    def __init__(self):
        self.layers = [ll.nn.Dense(2)]
        self.d = {"a/b": ll.Variable(np.ones(2) * 1j)}
        self.g = ll.random.Generator(1)
        self.c = ll.constant(np.arange(40.0, dtype="float32"))

    def call(self, x, scale=2.0, w=np.ones(1, np.float32), *, how=(1, {"a": None})):  # noqa: B008  # never written to
        y = self.layers[0](x) * scale * w + self.g.normal((2,)) + ll.sum(self.c)
        return {"y": ll.cond(ll.sum(y) > 0, lambda: y, lambda: -y), "z": self.d["a/b"] * 1.0}


class Saved:
    """A file, in parts."""

    def __init__(self, path):
        data = path.read_bytes()
        n = int.from_bytes(data[:8], "little")
        self.path = path
        self.header = json.loads(data[8 : 8 + n])
        self.content = json.loads(self.header["__metadata__"][FUNCTIONS])
        self.arrays = data[8 + n :]

    def load_with(self, text, header=None):
        """Loads it with another description of what is in it."""
        header = {**(header or self.header), "__metadata__": {FUNCTIONS: text}}
        data = json.dumps(header).encode()
        data += b" " * (-len(data) % 8)
        self.path.write_bytes(len(data).to_bytes(8, "little") + data + self.arrays)
        return ll.load(self.path)


@pytest.fixture
def saved(tmp_path):
    return Saved(ll.save(Net(), tmp_path / "m.ll", ll.TensorSpec((None, 3))))


def _places(x, above=()):
    if isinstance(x, (dict, list)):
        for key in x if isinstance(x, dict) else range(len(x)):
            yield (*above, key)
            yield from _places(x[key], (*above, key))


def test_whatever_is_put_in_a_place_is_taken_or_refused(saved):
    places = list(_places(saved.content))
    assert len(places) > 60
    wrong = []
    for i, place in enumerate(places):
        for value in PUT_IN if FULL else (PUT_IN[i % len(PUT_IN)], PUT_IN[(i // 2 + 3) % len(PUT_IN)]):
            content = copy.deepcopy(saved.content)
            at = content
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = value
            try:
                saved.load_with(json.dumps(content))
            except LimelightError:
                continue
            except Exception as error:  # noqa: BLE001  # told below
                wrong.append((place, str(value)[:20], repr(error)))
    assert not wrong


def test_a_place_that_is_missing_is_refused(saved):
    for place in _places(saved.content):
        content = copy.deepcopy(saved.content)
        at = content
        for key in place[:-1]:
            at = at[key]
        del at[place[-1]]
        with contextlib.suppress(LimelightError):
            saved.load_with(json.dumps(content))


def test_lists_in_a_key_that_nobody_reads_take_no_memory(saved):
    nested = ("[" * 800 + "]" * 800 + ",") * 2000
    text = json.dumps(saved.content)[:-1] + f', "x": [{nested}0]}}'
    tracemalloc.start()
    try:
        with pytest.raises(ExportError, match="far more memory than the file"):
            saved.load_with(text)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(text)
    finally:
        tracemalloc.stop()


def test_long_paths_of_few_variables_take_no_memory(saved):
    saved.content["variables"][0]["path"] = "a/" * 2_000_000 + "b"
    with pytest.raises(ExportError, match="paths are far longer"):
        saved.load_with(json.dumps(saved.content))


def test_a_generator_of_other_words_is_refused(saved):
    name = next(name for name in saved.header if name.startswith("generators/"))
    begin, end = saved.header[name]["data_offsets"]
    changed = {**saved.header, name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}}
    with pytest.raises(ExportError, match="a generator whose state is none"):
        saved.load_with(json.dumps(saved.content), changed)


@pytest.mark.parametrize("value", [["nope"], 5, [5], None], ids=str)
def test_complex_numbers_that_are_no_pairs_are_refused(saved, value):
    with pytest.raises(ExportError, match="complex numbers that are not pairs"):
        saved.load_with(json.dumps(saved.content | {"complex": value}))


def test_what_was_not_changed_loads(saved):
    loaded = saved.load_with(json.dumps(saved.content))
    assert loaded(ll.ones((1, 3)))["y"].shape == (1, 2)


@pytest.mark.parametrize("count", [0, 4, 8, 100])
def test_a_file_that_was_cut_off_in_its_header_says_so(saved, count):
    saved.path.write_bytes(saved.path.read_bytes()[:count])
    with pytest.raises(ExportError, match=f"only {count} bytes are there.* was cut off"):
        ll.load(saved.path)
