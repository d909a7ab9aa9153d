"""What is written can be read: many values, long lists, deep and shared ones; strangers' files are held to a bound."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import limelight as ll
from limelight.checkpoint import array_files, header_limits
from limelight.checkpoint.array_files import parse_json
from limelight.checkpoint.checkpoint_file import CheckpointFile
from limelight.checkpoint.file_system import Reader
from limelight.errors import CheckpointError


class Model(ll.Module):
    pass


@pytest.mark.slow  # 9,000 objects
def test_nine_thousand_nodes_are_read_again(tmp_path):
    model, optimizer = Model(), ll.optim.Adam(0.1)
    model.scalars = [ll.Variable(float(i)) for i in range(3_000)]
    optimizer.build(model.scalars)
    checkpoint = ll.Checkpoint(model=model, optimizer=optimizer)
    path = checkpoint.write(tmp_path / "many.safetensors")
    model.scalars[7].assign(0.0)
    checkpoint.restore(path).assert_consumed()
    assert model.scalars[7].item() == 7.0


@pytest.mark.parametrize("files", [1, 3])
def test_files_of_many_scalars_are_as_large_as_reading_them_asks_for(tmp_path, monkeypatch, files):
    """As if 48 MiB were 2: with them 42,000 scalars fit a file without padding."""
    monkeypatch.setattr(header_limits, "ALLOWANCE", 2 << 20)
    model = Model()
    model.scalars = [ll.Variable(float(i)) for i in range(3_000)]
    path = ll.Checkpoint(model=model).write(tmp_path / "x.safetensors", most_bytes=12_000 // files)
    again = Model()
    again.scalars = [ll.Variable(0.0) for _ in range(3_000)]
    ll.Checkpoint(model=again).restore(path).assert_consumed()
    assert [v.item() for v in again.scalars] == list(range(3_000))
    sizes = [p.stat().st_size for p in tmp_path.iterdir()]
    assert len(sizes) == (1 if files == 1 else 4)
    assert 1 << 20 < sum(sizes) < 3_000 * 2_000
    assert b'"version\\":3,' in path.read_bytes()
    if files == 1:
        assert array_files.PADDING not in array_files.ArrayFile(Reader(path)).entries
        tracemalloc.start()
        CheckpointFile(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < path.stat().st_size + (2 << 20)


def test_more_scalars_than_a_file_has_without_padding_are_read_again(tmp_path, monkeypatch):
    """As if 48 MiB were 6: with them a file of 42,000 scalars needs no padding, and one of 50,000 does."""
    monkeypatch.setattr(header_limits, "ALLOWANCE", 6 << 20)
    model = Model()
    model.scalars = [ll.Variable(float(i)) for i in range(6_250)]
    checkpoint = ll.Checkpoint(model=model)
    path = checkpoint.write(tmp_path / "many.safetensors")
    assert f'"{array_files.PADDING}"'.encode() in path.read_bytes()
    model.scalars[5_500].assign(0.0)
    checkpoint.restore(path).assert_consumed()
    assert model.scalars[5_500].item() == 5_500


@pytest.mark.parametrize("count", [500_000])
def test_long_lists_of_floats_are_read_again(tmp_path, count):
    state = ll.State(losses=np.random.default_rng(0).random(count).tolist())
    expected = list(state.losses)
    checkpoint = ll.Checkpoint(state=state)
    path = checkpoint.write(tmp_path / "long.safetensors")
    state.losses.clear()
    checkpoint.restore(path).assert_consumed()
    assert state.losses == expected
    assert type(state.losses[0]) is float


@pytest.mark.parametrize("kept", [True, False])
def test_lists_of_numbers_are_as_they_were(tmp_path, kept):
    count = 1000 if kept else 999
    lists = {
        "floats": [float("inf"), -0.0, float("nan"), *map(float, range(count))],
        "ints": [-(2**63), 2**63 - 1, *range(count)],
        "large": [2**63, *range(count)],
        "mixed": [1.0, *range(count)],
        "flags": [True, False] * count,
    }
    path = ll.Checkpoint(state=ll.State(**lists, inner={"a": (lists["ints"],)})).write(tmp_path / "x.safetensors")
    again = ll.State()
    ll.Checkpoint(state=again).restore(path).assert_consumed()
    for name, values in {**lists, "inner": {"a": (lists["ints"],)}}.items():
        assert repr(vars(again)[name]) == repr(values)


def test_files_without_long_lists_are_of_version_1(tmp_path):
    for values, version in (([0.5], 1), (['"~":"list"'], 1), ([0.5] * 1000, 2)):
        path = ll.Checkpoint(values=values).write(tmp_path / "x.safetensors")
        assert f'\\"version\\":{version},'.encode() in path.read_bytes()


def test_what_no_reader_would_accept_is_refused_before_anything_is_replaced(tmp_path, monkeypatch):
    checkpoint = ll.Checkpoint(values=[1])
    path = checkpoint.write(tmp_path / "x.safetensors")
    checkpoint.values = [[] for _ in range(60_000)]
    monkeypatch.setattr(header_limits, "ALLOWANCE", 2 << 20)
    monkeypatch.setattr(array_files, "MOST_PADDING", 1 << 20)
    with pytest.raises(CheckpointError, match="no reader would accept it"):
        checkpoint.write(path)
    checkpoint.values = []
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.values == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]


def refuse(why):
    raise AssertionError(why)


JSON = {
    "floats": [i + 0.123456789 for i in range(50_000)],
    "integers": list(range(10**9, 10**9 + 50_000)),
    "dictionaries": [{}] * 50_000,
    "one key": [{"a": 1}] * 50_000,
    "six keys": [dict.fromkeys("abcdef", 1)] * 10_000,
    "keys": {f"k{i}": 10**9 for i in range(50_000)},
    "lists": [[]] * 50_000,
    "strings": [f"s{i}" for i in range(50_000)],
    "wide": ["\N{GRINNING FACE}" + "a" * 1_000_000],
}


@pytest.mark.parametrize("name", JSON)
def test_json_takes_no_more_memory_than_is_foreseen(monkeypatch, name):
    text = json.dumps(JSON[name], separators=(",", ":"))
    monkeypatch.setattr(header_limits, "ALLOWANCE", 0)
    low, high = 0, 100_000_000
    while high - low > 1000:
        middle = (low + high) // 2
        low, high = (low, middle) if header_limits.fits(text, middle) else (middle, high)
    tracemalloc.start()
    parse_json(text, refuse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak + len(text) <= 1.2 * high


@pytest.mark.parametrize("depth", [300, 900])
@pytest.mark.parametrize("outer", ["[", '{"a":'])
def test_values_that_are_nested_deeply_are_refused(tmp_path, outer, depth):
    path = ll.Checkpoint(x="@").write(tmp_path / "x.safetensors")
    data = path.read_bytes()
    old = data[8:]
    value = (outer * depth + "1" + {"[": "]", '{"a":': "}"}[outer] * depth).replace('"', '\\"').encode()
    new = old.rstrip(b" ").replace(b'\\"@\\"', value)
    path.write_bytes(len(new).to_bytes(8, "little") + new)
    with pytest.raises(CheckpointError, match="nested"):
        ll.Checkpoint(x=1).restore(path)


@pytest.mark.parametrize("times", [1, 2])
def test_a_list_that_contains_itself_is_refused(tmp_path, times):
    values = []
    values += [values] * times
    with pytest.raises(CheckpointError, match="contains itself"):
        ll.Checkpoint(s=ll.State(values=values)).write(tmp_path / "x")


def test_a_list_that_is_shared_too_often_is_refused(tmp_path):
    values = [1]
    for _ in range(60):
        values = [values, values]
    with pytest.raises(CheckpointError, match="elements"):
        ll.Checkpoint(s=ll.State(values=values)).write(tmp_path / "x")


def test_complex_numbers_with_a_stride_are_kept(tmp_path):
    values = np.arange(10, dtype=complex)
    v = ll.Variable(values)
    v.assign(v[::-1])
    x = ll.State(a=values[::2], b=values.reshape(2, 5).T, c=values.astype(">c16")[::3])
    path = ll.Checkpoint(v=v, x=x).write(tmp_path / "c.safetensors")
    w, y = ll.Variable(0 * values), ll.State()
    ll.Checkpoint(v=w, x=y).restore(path).assert_consumed()
    np.testing.assert_array_equal(w.numpy(), values[::-1])
    for name, a in vars(x).items():
        np.testing.assert_array_equal(vars(y)[name], a)


def test_complex_numbers_with_a_stride_are_kept_with_functions(tmp_path):
    values = np.arange(4, dtype=complex)
    v = ll.Variable(values)
    v.assign(v[::-1])
    loaded = ll.load(ll.save(ll.function(lambda x: x * v), tmp_path / "f.ll", ll.TensorSpec((4,), "complex128")))
    np.testing.assert_array_equal(loaded(ll.constant(np.ones(4, complex))).numpy(), values[::-1])


def test_functions_of_strangers_take_no_more_memory_than_their_file(tmp_path):
    path = tmp_path / "f.ll"
    ll.save(ll.function(lambda x: x + 1.0), path, ll.TensorSpec((2,)))
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    described = header["__metadata__"]["limelight.functions"]
    header["__metadata__"]["limelight.functions"] = f'{described[:-1]},"x":[{"[]," * 600_000}[]]}}'
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    with pytest.raises(ll.errors.ExportError, match="more memory than the file"):
        ll.load(path)
