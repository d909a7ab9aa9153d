"""Where compiled programs are kept, and that JAX's own settings are left as they were."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import limelight as ll
from compiled import X, jax_only  # beside this file
from limelight.errors import ArgumentError
from limelight.executors.xla import disk_cache

pytestmark = pytest.mark.filterwarnings("ignore::limelight.errors.RetracingWarning")


def test_the_folder_is_the_users_unless_somebody_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache.importlib.util, "find_spec", lambda name: True)
    monkeypatch.delenv(disk_cache.ENVIRONMENT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    usual = disk_cache.folder()
    assert usual.parent.name == "xla"
    assert "limelight" in usual.parts
    with ll.config.compilation_cache(tmp_path) as setting:
        assert disk_cache.folder() == tmp_path
        assert repr(setting) == f"<compilation cache: {tmp_path}>"
    with ll.config.compilation_cache(False):
        assert disk_cache.folder() is None
    monkeypatch.setenv(disk_cache.ENVIRONMENT, str(tmp_path / "named"))
    assert disk_cache.folder() == tmp_path / "named"
    monkeypatch.setenv(disk_cache.ENVIRONMENT, "0")
    assert disk_cache.folder() is None
    with ll.config.compilation_cache(True):
        assert disk_cache.folder() is None, "the environment says what the usual place is"
    with pytest.raises(ArgumentError, match="takes a folder, True or False, got 3"):
        ll.config.compilation_cache(3)


def test_without_filelock_it_would_have_no_bound_and_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache.importlib.util, "find_spec", lambda name: None)
    with ll.config.compilation_cache(tmp_path):
        assert disk_cache.folder() is None


def test_the_users_home_may_be_named_by_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setattr(disk_cache.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(disk_cache.ENVIRONMENT, "~/programs")
    assert disk_cache.folder() == tmp_path / "programs"
    with ll.config.compilation_cache("~/others"):
        assert disk_cache.folder() == tmp_path / "others"


@pytest.fixture
def warnings_anew():
    disk_cache._told.clear()
    yield
    disk_cache._told.clear()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a system without owners of files")
@pytest.mark.parametrize(
    ("mode", "where", "why"),
    [
        (0o700, "", ""),
        (0o755, "", ""),
        (0o777, "", "everybody may write to {folder}"),
        (0o1777, "", "everybody may write to {folder}"),
        (0o777, "below", "everybody may write to {folder}"),
        (0o1777, "below", ""),  # a sticky folder keeps what it holds for its owners
    ],
)
def test_a_folder_that_others_may_write_to_is_not_used(mode, where, why, monkeypatch, tmp_path, warnings_anew):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setattr(disk_cache, "_is_private", lambda group: False)
    used = folder / where if where else folder
    if not why:
        assert disk_cache.is_usable(used)
        return
    with pytest.warns(ll.errors.CacheFolderWarning, match=why.format(folder=folder)):
        assert not disk_cache.is_usable(used)
    assert not disk_cache.is_usable(used), "it is said once"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a system without owners of files")
def test_a_group_is_another_user_unless_it_is_the_users_own(monkeypatch, tmp_path, warnings_anew):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o770)
    monkeypatch.setattr(disk_cache, "_is_private", lambda group: True)
    assert disk_cache.is_usable(folder)
    monkeypatch.setattr(disk_cache, "_is_private", lambda group: False)
    with pytest.warns(ll.errors.CacheFolderWarning, match=f"its group may write to {folder}"):
        assert not disk_cache.is_usable(folder)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a system without owners of files")
def test_a_folder_is_looked_at_where_it_is_chosen(tmp_path, warnings_anew):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with (
        pytest.warns(ll.errors.CacheFolderWarning, match="not kept in .*test_disk_cache.py line") as caught,
        ll.config.compilation_cache(folder),
    ):
        pass
    assert caught[0].filename == __file__


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a system without owners of files")
def test_a_folder_of_another_user_is_not_used(monkeypatch, tmp_path, warnings_anew):
    folder = tmp_path / "own"
    assert disk_cache.is_usable(folder)
    assert folder.stat().st_mode & 0o777 == 0o700, "nobody else even reads there"
    real = os.getuid()
    monkeypatch.setattr(disk_cache.os, "getuid", lambda: real + 1)
    if real == 0:
        os.chown(folder, 12345, 12345)
    with pytest.warns(ll.errors.CacheFolderWarning, match="belongs to another user"):
        assert not disk_cache.is_usable(folder)


@jax_only
def test_a_program_is_written_once_and_found_again(monkeypatch, tmp_path):
    import jax

    monkeypatch.setattr(disk_cache, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(disk_cache.used.__wrapped__, "__defaults__", (0.0, disk_cache.MOST_BYTES))
    before = {name: getattr(jax.config, name) for name in dir(jax.config) if "_cache_" in name}

    def files():
        return sorted([file.name for file in (tmp_path / "kept").glob("*-cache")])

    found = []
    with ll.config.compilation_cache(tmp_path / "kept"):
        for _ in range(2):
            f = ll.function(lambda x: ll.tanh(x) * 3.0, jit_compile=True, name="kept")
            np.testing.assert_allclose(f(X).numpy(), np.tanh(X) * 3, rtol=1e-6)
            found.append(files())
    assert len(found[0]) == 1
    assert found[0] == found[1]
    assert {name: getattr(jax.config, name) for name in before} == before
    jax.jit(lambda x: x - 7.0)(X)
    assert files() == found[0], "JAX's own programs go elsewhere"


@jax_only
def test_a_cache_of_the_programs_own_is_left_to_it(monkeypatch, tmp_path):
    import jax

    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    try:
        with disk_cache.used(tmp_path / "ours"):
            assert jax.config.jax_compilation_cache_dir == str(tmp_path / "own")
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert not (tmp_path / "ours").exists()


@jax_only
def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    with ll.config.compilation_cache(tmp_path / "file" / "below"):
        f = ll.function(lambda x: x * 5.0, jit_compile=True)
        np.testing.assert_array_equal(f(X).numpy(), X * 5)
    assert f.trace_cache[0].tier == "xla"


@jax_only
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a system without owners of files")
def test_a_warning_that_is_an_error_is_no_refusal_to_compile(monkeypatch, tmp_path, warnings_anew):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv(disk_cache.ENVIRONMENT, str(folder))
    monkeypatch.setattr(disk_cache.importlib.util, "find_spec", lambda name: True)
    double = ll.function(lambda x: x + x, jit_compile=True)
    with pytest.raises(ll.errors.CacheFolderWarning, match="compiled programs are not kept in"):
        double(X)
    double(X)
    assert (double.trace_cache[0].tier, double.trace_cache[0].tier_reason) == ("xla", "")
