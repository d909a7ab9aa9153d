"""Where compiled programs are kept, and that JAX's own settings are left as they were."""

from __future__ import annotations

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
