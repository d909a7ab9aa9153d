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
    notebook("one = ll.Checkpoint(epoch=1).write('c.safetensors')")
    assert repr(notebook("%checkpoint one").value).startswith("c.safetensors: 1 value, 0 bytes of arrays")


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


def test_quoted_names(notebook, tmp_path):
    notebook("written = all_of_it.write('a b.safetensors')")
    for quote in "'\"":
        assert "2 values" in repr(notebook(f"%checkpoint {quote}a b.safetensors{quote}").value)
        assert "2 matched" in repr(notebook(f"%checkpoint {quote}a b.safetensors{quote} all_of_it").value)
        text = repr(notebook(f"%checkpoint a.safetensors {quote}a b.safetensors{quote}").value)
        assert "a b.safetensors" in text
        notebook(f"f = ll.function(lambda: v + 1.0)\n%steps --save {quote}of steps.html{quote} f()")
        assert (tmp_path / "of steps.html").exists()
        (tmp_path / "of steps.html").unlink()


def test_an_object_under_another_name_is_matched_with_the_only_one(notebook):
    notebook("one = ll.Checkpoint(weights=v).write('one.safetensors')")
    assert "1 matched" in repr(notebook("%checkpoint one.safetensors v").value)
    notebook("w = ll.Variable([1.0])")
    text = repr(notebook("%checkpoint one.safetensors w").value)
    assert "mismatched: `weights` was saved as f32[2], and the variable is f32[1] now" in text
    notebook("manager = ll.CheckpointManager({'weights': v}, 'run'); saved = manager.save()")
    assert "1 matched" in repr(notebook("%checkpoint run/checkpoint-1.safetensors v").value)
    assert "2 matched" in repr(notebook("%checkpoint run/checkpoint-1.safetensors manager").value)


def test_an_object_under_another_name_is_matched_with_what_it_fits(notebook):
    notebook("net, one, two = ll.nn.Dense(2), ll.Variable([1.0]), ll.Variable([2.0]); net.build((3,))")
    notebook("path = ll.Checkpoint(net=net, a=one, b=two, step=ll.Variable(0)).write('all.safetensors')")
    notebook("m = ll.nn.Dense(2)")
    for build in ("", "m.build((3,))"):  # without weights, and with them
        notebook(build)
        assert "new" not in repr(notebook("%checkpoint all.safetensors m").value).splitlines()[0]
    assert "1 matched" in repr(notebook("i = ll.Variable(3)\n%checkpoint all.safetensors i").value)
    notebook("m = ll.nn.Dense(2); m.build((4,))")
    assert "mismatched: `net/kernel` was saved as f32[3,2]" in repr(notebook("%checkpoint all.safetensors m").value)
    error = str(notebook("x = ll.Variable([3.0])\n%checkpoint all.safetensors x", fails=True).error)
    assert "nothing in all.safetensors is called x; x fits `a`, `b` of it alike" in error
    assert "c = ll.Checkpoint(a=x), then %checkpoint all.safetensors c" in error
    error = str(notebook("x = ll.random.Generator(1)\n%checkpoint all.safetensors x", fails=True).error)
    assert "it has `net`, `a`, `b`, `step`, and x fits none of them" in error


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.safetensors t", "t is a Tensor, which has no state to restore"),
        ("manager", "manager is a manager of many files: name one, such as run/checkpoint-1.safetensors"),
        ("v", "v is a "),
        ("f.ll", "f.ll is no checkpoint: it has functions that ll.save wrote, and ll.load(path) reads it"),
    ],
)
def test_what_is_no_file_or_no_object_is_said(notebook, line, said):
    notebook("t = ll.ones(2); manager = ll.CheckpointManager({'v': v}, 'run'); saved = manager.save()")
    notebook("f = ll.function(lambda x: x + v); written = ll.save(f, 'f.ll', ll.TensorSpec((2,)))")
    assert said in str(notebook(f"%checkpoint {line}", fails=True).error)


def test_the_bytes_of_a_file_are_checked(notebook):
    text = repr(notebook("%checkpoint a.safetensors --check").value)
    assert text.splitlines()[0].endswith("8 bytes of arrays; all bytes are as they were written")
    assert "--check is for one file" in str(notebook("%checkpoint a.safetensors v --check", fails=True).error)
