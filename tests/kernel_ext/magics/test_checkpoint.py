"""`%checkpoint`: a file, a file beside an object, two files."""

from __future__ import annotations

import pytest


@pytest.fixture
def notebook(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("%load_ext limelight")
    run("import limelight as ll\nv = ll.Variable([1.0, 2.0])\nall_of_it = ll.Checkpoint(v=v, epoch=1)")
    run("path = all_of_it.write('a.safetensors')\nx = v.assign([1.0, 3.0]); all_of_it.epoch = 2")
    run("later = all_of_it.write('b.safetensors')")
    return run


def test_what_is_in_a_file(notebook):
    text = repr(notebook("%checkpoint a.safetensors").value)
    assert text.splitlines()[0] == "a.safetensors: 2 values, 8 bytes of arrays"
    assert repr(notebook("%checkpoint path").value) == text


def test_a_file_beside_an_object_restores_nothing(notebook):
    assert "2 matched" in repr(notebook("%checkpoint a.safetensors all_of_it").value)
    assert "2 matched" in repr(notebook("%checkpoint a.safetensors v --text").value)
    assert notebook("v.numpy().tolist()").value == [1.0, 3.0]


def test_a_misfit_is_shown(notebook):
    notebook("v = ll.Variable([1.0])")
    text = repr(notebook("%checkpoint a.safetensors v").value)
    assert "mismatched: `v` was saved as f32[2], and the variable is f32[1] now" in text


def test_two_files(notebook):
    text = repr(notebook("%checkpoint a.safetensors b.safetensors").value)
    assert "2 changed" in text
    assert "changed by 44.72%, at most 1" in text
    assert repr(notebook("%checkpoint path later").value) == text


def test_a_status_and_the_forms(notebook):
    notebook("status = all_of_it.restore(path)")
    figure = notebook("%checkpoint status -o kept").value
    assert "2 matched" in repr(figure)
    assert notebook("kept").value is figure
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<table" in bundle["text/html"]


def test_what_is_wrong_is_one_sentence(notebook):
    error = notebook("%checkpoint no.safetensors", fails=True).error
    assert "%checkpoint: there is no file no.safetensors; . has a.safetensors, b.safetensors" in str(error)
    assert "Which file?" in repr(notebook("%checkpoint").value)


def test_a_file_of_saved_functions_is_told_from_one(notebook):
    notebook("saved = ll.save(lambda x: x, 'f.ll', ll.TensorSpec(()))")
    assert "ll.load(path) reads it" in str(notebook("%checkpoint f.ll", fails=True).error)
