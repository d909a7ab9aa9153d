"""The format: what the library reads of ours and we of the library's, and files that somebody has changed."""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from safetensors.numpy import load_file, save_file

import checkpoint_faults
import limelight as ll
from limelight.checkpoint.array_files import DTYPES, ArrayFile
from limelight.checkpoint.file_system import Reader
from limelight.checkpoint.values import decode
from limelight.core import dtypes
from limelight.errors import CheckpointError

FIXTURES = Path(__file__).parent / "files"
full = pytest.mark.skipif(os.environ.get("LIMELIGHT_TESTS") != "full", reason="many files; make test has them")
CHANGED_FILES = int(os.environ.get("LIMELIGHT_CHANGED_FILES", "1000"))
"""Ten thousand take a minute: by hand, after a change of how files are read."""


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)], ids=str)
def test_every_dtype_and_shape_comes_back_bit_for_bit(tmp_path, dtype, shape):
    raw = np.random.default_rng(1).integers(0, 2 if dtype == ll.bool else 256, (*shape, dtype.itemsize), "uint8")
    array = np.frombuffer(raw.tobytes(), dtype).reshape(shape)
    v, a = ll.Variable(array), ll.State(a=array.copy())
    path = ll.Checkpoint(v=v, s=a).write(tmp_path / "x")
    w, b = ll.Variable(np.zeros(shape, dtype)), ll.State()
    ll.Checkpoint(v=w, s=b).restore(path).assert_consumed()
    for restored in (w.numpy(), b.a):
        assert (restored.dtype, restored.shape) == (array.dtype, array.shape)
        assert restored.tobytes() == array.tobytes()
    assert load_file(path).keys() == {"v", "s/a"}


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="asks Linux for the pages of an array")
def test_large_arrays_are_read_into_ordinary_pages_of_memory(tmp_path):
    value = np.arange((1 << 20) + 3, dtype="float32")
    v = ll.Variable(np.zeros_like(value))
    ll.Checkpoint(v=v).restore(ll.Checkpoint(v=ll.Variable(value)).write(tmp_path / "x")).assert_consumed()
    np.testing.assert_array_equal(v.numpy(), value)
    flags = _flags_at(v.numpy().ctypes.data + (1 << 16))  # the first page may be another mapping
    assert "hg" not in flags  # no advice to make them huge
    assert "sh" not in flags  # a forked child has its own


def _flags_at(address: int) -> list[str]:
    """What Linux says of the memory at an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if "-" in word and not word.endswith(":"):
            first, last = (int(x, 16) for x in word.split("-"))
            inside = first <= address < last
        elif inside and word == "VmFlags:":
            return rest.split()
    raise AssertionError("the address is in no mapping")


@pytest.mark.parametrize(
    "value", [{"~": "complex", "text": [10**400, 1]}, {"~": "strings", "items": ["x"], "shape": [2**64]}]
)
def test_numbers_that_are_too_large_in_a_value_are_refused(value):
    with pytest.raises(CheckpointError, match="a value that is none"):
        decode(value, lambda key: np.ones(1))


SHAPES = npst.array_shapes(min_dims=0, max_dims=3, min_side=0)


@given(array=npst.arrays(st.sampled_from(["f8", "i4", ">f4", "u2"]), SHAPES),
       step=st.sampled_from([1, 2, -1]))  # fmt: skip
def test_arrays_of_any_layout(tmp_path_factory, array, step):
    array = array[::step] if array.ndim else array
    path = ll.Checkpoint(s=ll.State(a=array)).write(tmp_path_factory.mktemp("x") / "x")
    state = ll.State()
    ll.Checkpoint(s=state).restore(path)
    np.testing.assert_array_equal(state.a, array)


def test_the_library_reads_what_is_written(tmp_path):
    arrays = {f"a{i}": np.full((i, 2), i, dtype) for i, dtype in enumerate(DTYPES.values())}
    path = ll.Checkpoint(**{name: ll.Variable(x) for name, x in arrays.items()}).write(tmp_path / "x")
    read = load_file(path)
    assert all(read[name].tobytes() == x.tobytes() and read[name].dtype == x.dtype for name, x in arrays.items())


def test_what_the_library_writes_is_read(tmp_path):
    arrays = {f"a{i}": np.full((i, 2), i, dtype) for i, dtype in enumerate(DTYPES.values())}
    save_file(arrays, tmp_path / "x", metadata={"a": "b"})
    file = ArrayFile(Reader(tmp_path / "x"))
    assert file.metadata == {"a": "b"}
    assert all(file.array(name).tobytes() == x.tobytes() for name, x in arrays.items())


def test_data_are_aligned(tmp_path):
    state = {
        f"x{i}": ll.Variable(np.ones(3, dtype)) for i, dtype in enumerate(["uint8", "float64", "int16", "float32"])
    }
    file = ArrayFile(Reader(ll.Checkpoint(**state).write(tmp_path / "x")))
    assert file._start % 8 == 0
    assert all(entry.begin % entry.dtype.itemsize == 0 for entry in file.entries.values())


# Files of strangers


@pytest.fixture(scope="module")
def specimen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("specimen")
    return folder, checkpoint_faults.specimen(folder)


@pytest.fixture(scope="module")
def elsewhere(specimen):
    """Runs changed files in a process of its own: the audit hook that hears of opened files lasts as long as that.

    In this one it would take a tenth of the time of all tests that come after.
    """
    folder, files = specimen
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        yield lambda runs, **options: pool.submit(checkpoint_faults.outcomes, runs, folder, files, **options).result()


@pytest.mark.parametrize("group", range(30))
def test_changed_files_are_refused_or_restored(elsewhere, group):
    assert elsewhere(range(10 * group, 10 * group + 10)) <= {"refused", "restored"}


def test_changed_files_take_no_more_memory_than_they_are_large(elsewhere):
    assert elsewhere(range(5), measured=True) <= {"refused", "restored"}


@full
@pytest.mark.slow  # thousands of files
def test_thousands_of_changed_files(elsewhere):
    assert elsewhere(range(1000, 1000 + CHANGED_FILES)) == {"refused", "restored"}


def raw(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def array(dtype: str, shape: list, begin: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


WRONG = {
    "empty": (b"", "only 0 bytes are there"),
    "short": (b"\x01", "only 1 bytes are there"),
    "no header": (bytes(8), "are not the length of a header"),
    "a huge header": ((2**63).to_bytes(8, "little") + b"{}", "are not the length of a header"),
    "no JSON": (raw(b"{]"), "its JSON is wrong"),
    "no text": (raw(b'{"\xff":1}'), "its JSON is wrong"),
    "a list": (raw([1]), "is not a dictionary"),
    "deep": (raw(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
    "twice": (raw(b'{"a":1,"a":2}'), "'a' occurs twice"),
    "NaN": (raw(b'{"a":NaN}'), "NaN is no number"),
    "digits": (raw(b'{"a":' + b"1" * 5000 + b"}"), "its JSON is wrong"),
    "fields": (raw({"a": {"dtype": "F32"}}), "has no dtype, shape and data_offsets"),
    "dtype": (raw({"a": array("F8_E4M3", [1], 0, 1)}, b"x"), "a dtype that limelight does not have"),
    "negative": (raw({"a": array("U8", [-1], 0, 1)}, b"x"), "not made of whole numbers"),
    "true": (raw({"a": array("U8", [True], 0, 1)}, b"x"), "not made of whole numbers"),
    "huge": (raw({"a": array("U8", [2**31, 2**32], 0, 1)}, b"x"), "larger than any file"),
    "size": (raw({"a": array("F32", [2], 0, 4)}, b"abcd"), "has a place of 4 bytes and needs 2 elements"),
    "overlap": (raw({"a": array("U8", [2], 0, 2), "b": array("U8", [2], 1, 3)}, b"abc"), "overlap, or leave gaps"),
    "gap": (raw({"a": array("U8", [1], 1, 2)}, b"ab"), "overlap, or leave gaps"),
    "cut off": (raw({"a": array("U8", [4], 0, 4)}, b"ab"), "end at byte 4 of 2"),
    "behind": (raw({"a": array("U8", [1], 0, 1)}, b"ab"), "end at byte 1 of 2"),
    "metadata": (raw({"__metadata__": {"limelight": 1}}), "metadata is not a dictionary of strings"),
    "no graph": (raw({"a": array("U8", [1], 0, 1)}, b"a"), "without an object graph"),
    "a bomb": (raw(b'{"a":[' + b"{}," * 2_000_000 + b"{}]}"), "more memory than the file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_file_is_said(tmp_path, name):
    data, said = WRONG[name]
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=said):
        ll.Checkpoint(a=ll.Variable(1.0)).restore(path)


def test_booleans_that_are_none_are_refused(tmp_path):
    path = ll.Checkpoint(flag=ll.Variable(np.array([True]))).write(tmp_path / "x")
    path.write_bytes(path.read_bytes()[:-1] + b"\x02")
    flag = ll.Variable(np.array([False]))
    with pytest.raises(CheckpointError, match="boolean and has other bytes than 0 and 1"):
        ll.Checkpoint(flag=flag).restore(path)
    assert not flag.numpy().any()


def test_a_generator_is_given_no_state_that_numpy_would_not_survive(tmp_path):
    generator = ll.random.Generator(1)
    path = ll.Checkpoint(g=generator).write(tmp_path / "x")
    words = np.frombuffer(path.read_bytes()[-112:], "uint64").copy()
    words[10] = 2**40
    path.write_bytes(path.read_bytes()[:-112] + words.tobytes())
    with pytest.raises(CheckpointError, match="`g` is not the state of a generator"):
        ll.Checkpoint(g=generator).restore(path)


# Files that must always load


def test_files_of_the_first_version_load():
    """`files/version_1` was written by the first release that had checkpoints, and is never written again."""
    layer, optimizer, generator = ll.nn.Dense(2), ll.optim.Adam(0.1), ll.random.Generator(9)
    checkpoint = ll.Checkpoint(model=layer, optimizer=optimizer, state=ll.State(), g=generator, z=ll.Variable([0j, 0j]))
    for name in ("version_1", "version_1_parts"):
        checkpoint.restore(FIXTURES / f"{name}.safetensors")
        layer(ll.ones((1, 3)))
        assert layer.kernel.numpy().tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        assert optimizer.slots_of(layer.kernel)["mean"].numpy().tolist() == [[0.5, 0.5]] * 3
        assert vars(checkpoint.state) == {"epoch": 3, "losses": [1.5, float("inf")], "pair": (1, {"x": 2j})}
        assert checkpoint.z.numpy().tolist() == [1 + 2j, 0]
        assert generator.uniform((2,)).numpy().tolist() == ll.random.Generator(1).uniform((2,)).numpy().tolist()
