"""Bytes that a disk or a copy has changed are noticed where somebody asks."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import limelight as ll
from limelight.checkpoint import contents
from limelight.checkpoint.array_files import CHECKSUMS
from limelight.checkpoint.checkpoint_file import CheckpointFile
from limelight.errors import CheckpointError, CheckpointWarning

FIXTURES = Path(__file__).parent / "files"


def checkpoint():
    return ll.Checkpoint(
        a=ll.Variable(np.arange(3.0)), b=ll.Variable(np.arange(400_000, dtype="float32")),
        c=ll.Variable(np.ones((0, 2))), n=7, z=ll.Variable(np.array([1j])),
    )  # fmt: skip


@pytest.mark.parametrize("most_bytes", [1 << 30, 30])
def test_each_flipped_byte_is_noticed(tmp_path, most_bytes):
    path = checkpoint().write(tmp_path / "x.safetensors", most_bytes=most_bytes)
    assert CheckpointFile(path).changed() == []
    checkpoint().restore(path, verify=True).assert_consumed()
    for file in sorted(tmp_path.iterdir()):
        whole = file.read_bytes()
        start = 8 + int.from_bytes(whole[:8], "little")
        places = list(range(start, len(whole), max(1, (len(whole) - start) // 3)))
        number = whole.find(b'\\"value\\":7')  # in the file with the object graph
        for at in [*places, number + 10] if number >= 0 else places:
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            again = checkpoint()
            again.a.assign(again.a + 1)
            with pytest.raises(CheckpointError, match=r"is damaged, and nothing was restored: .* not as it was"):
                again.restore(path, verify=True)
            assert again.a.numpy().tolist() == [1.0, 2.0, 3.0]
        file.write_bytes(whole)


def test_the_damaged_array_is_named_and_is_read_as_it_is_where_nobody_asks(tmp_path):
    path = checkpoint().write(tmp_path / "x.safetensors")
    whole = path.read_bytes()
    at = whole.index(np.arange(400_000, dtype="float32").tobytes()) + 1_500_000
    path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    assert CheckpointFile(path).changed() == ["b"]
    assert contents(path, check=True).headline.endswith("; damaged: `b` is not as it was written")
    checkpoint().restore(path).assert_consumed()


def test_sums_are_crc32_of_the_bytes_in_the_order_of_the_file(tmp_path):
    path = ll.Checkpoint(a=ll.Variable([1.0, 2.0]), b=ll.Variable(np.arange(3))).write(tmp_path / "x")
    with safe_open(path, "np") as file:
        said = file.metadata()[CHECKSUMS]
    assert said[8:16] == f"{zlib.crc32(np.arange(3).tobytes()):08x}"  # the wider elements first
    assert said[16:] == f"{zlib.crc32(np.float32([1, 2]).tobytes()):08x}"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.safetensors")), ids=lambda path: path.name)
def test_files_of_before_say_that_nothing_can_tell(path):
    if "-of-" not in path.name:
        assert CheckpointFile(path).changed() is None
        assert "there are no checksums" in contents(path, check=True).headline


def test_a_file_without_checksums_is_restored_with_a_warning(tmp_path):
    path = ll.Checkpoint(v=ll.Variable([1.0])).write(tmp_path / "x")
    path.write_bytes(path.read_bytes().replace(CHECKSUMS.encode(), CHECKSUMS.replace("c", "x").encode()))
    v = ll.Variable([0.0])
    with pytest.warns(CheckpointWarning, match="has no checksums"):
        ll.Checkpoint(v=v).restore(path, verify=True)
    assert v.item() == 1.0


def test_a_manager_passes_over_a_damaged_file_when_it_verifies(tmp_path):
    v = ll.Variable([0.0])
    manager = ll.CheckpointManager({"v": v}, tmp_path)
    for x in (1.0, 2.0):
        v.assign([x])
        manager.save()
    newest = manager.newest.path
    newest.write_bytes(newest.read_bytes().replace(np.float32(2.0).tobytes(), np.float32(3.0).tobytes()))
    with pytest.warns(CheckpointWarning, match=r"checkpoint-2.safetensors is damaged: `v` is not .* passed over"):
        manager.restore(verify=True)
    assert (v.item(), manager.step) == (1.0, 1)
    with pytest.raises(CheckpointError, match="is damaged"):
        manager.restore(2, verify=True)
    manager.restore()
    assert v.item() == 3.0


def test_one_file_of_several_that_has_lost_its_checksums_hides_no_damage(tmp_path):
    saved = ll.Checkpoint(v=ll.Variable(np.zeros(20)), w=ll.Variable(np.full(20, 7.0)))
    path = saved.write(tmp_path / "x.safetensors", most_bytes=64)
    parts = [part for part in sorted(tmp_path.iterdir()) if part != path]
    damaged = next(part for part in parts if np.full(20, 7.0).tobytes() in part.read_bytes())
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x41")
    for part in parts:
        whole = part.read_bytes()
        part.write_bytes(whole.replace(CHECKSUMS.encode(), CHECKSUMS.replace("c", "x").encode()))
        with pytest.raises(CheckpointError, match="is damaged"):
            ll.Checkpoint(v=ll.Variable(np.zeros(20)), w=ll.Variable(np.zeros(20))).restore(path, verify=True)
        part.write_bytes(whole)


@pytest.mark.parametrize("verify", [True, False])
def test_a_manager_passes_over_a_newest_file_that_can_be_read_no_more(tmp_path, verify):
    v = ll.Variable([0.0])
    manager = ll.CheckpointManager({"v": v}, tmp_path)
    for x in (1.0, 2.0):
        v.assign([x])
        manager.save()
    newest = manager.newest.path
    newest.write_bytes(newest.read_bytes()[:-2])
    with pytest.warns(CheckpointWarning, match="passed over"):
        manager.restore(verify=verify)
    assert (v.item(), manager.step) == (1.0, 1)
