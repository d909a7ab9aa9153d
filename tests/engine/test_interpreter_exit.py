"""At the end of the interpreter: what runs when an object goes asks for no global, since those may be gone before."""

from __future__ import annotations

import limelight as ll
from limelight import module_build
from limelight.checkpoint import commit, file_system, restoration


def _without_globals(monkeypatch, module):
    """As the interpreter leaves a module at its end: all that its functions look up is None."""
    for name, value in list(vars(module).items()):
        if not name.startswith("__") and name != "Restoration":
            monkeypatch.setattr(module, name, None if value is not None else value)


def test_an_open_file_of_a_checkpoint_is_closed(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"1")
    reader = file_system.Reader(tmp_path / "x")
    _without_globals(monkeypatch, file_system)
    reader.__del__()
    assert reader._fd == -1


def test_objects_that_were_restored_or_wait_go_silently(tmp_path, monkeypatch):
    path = ll.Checkpoint(a=ll.State(v=ll.Variable(1.0), later=1)).write(tmp_path / "x")
    noted, waiting = len(commit._newest), len(restoration.attachments.waiting)
    tables = commit._newest, restoration.attachments.waiting
    state = ll.State(v=ll.Variable(0.0))
    checkpoint = ll.Checkpoint(a=state, b=ll.Variable(1.0))
    status = checkpoint.restore(path).expect_partial()
    assert len(tables[0]) > noted
    for module in (commit, restoration):
        _without_globals(monkeypatch, module)
    del state, checkpoint, status
    assert len(tables[0]) <= noted
    assert len(tables[1]) <= waiting


def test_modules_that_were_called_go_silently(monkeypatch):
    layer = ll.nn.Dense(1)
    layer(ll.ones((1, 1)))
    outer = ll.nn.Sequential(layer)
    outer(ll.ones((1, 1)))
    table = module_build._first_calls
    noted = len(table)
    _without_globals(monkeypatch, module_build)
    del outer
    assert len(table) == noted - 1
