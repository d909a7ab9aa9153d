"""`%devices` about tensors and copies, `%%devices` about a cell."""

from __future__ import annotations

import gc

import pytest

import limelight as ll
from limelight.core import device_counts
from limelight_widgets.format import bytes_text


@pytest.fixture
def notebook(run):
    ll.config.set_virtual_devices(CPU=2)
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.ones((300, 300))\nfar = ll.ones((3,)).to('CPU:1')\nnear = ll.ones((3,))")
    return run


def test_live_tensors_by_their_names_in_the_notebook(notebook):
    assert "<img" in notebook("%devices --live --top 3").value.html
    said = repr(notebook("%devices --live --top 3 --text -o kept").value)
    assert [one.spec for one in notebook("kept").value.records if "x" in one.names] == ["f32[300,300]"]
    assert "360,000 bytes  CPU:0  f32[300,300]       x" in said
    on_second = repr(notebook("%devices --live -d CPU:1").value)
    assert "far" in on_second
    assert "f32[300,300]" not in on_second


def test_the_memory_of_all_devices_in_words(notebook):
    said = repr(notebook("%devices --mem --text").value)
    assert said.startswith("Memory: ")
    assert all(device in said for device in ("CPU:0", "CPU:1"))


def test_where_a_tensor_is_and_who_holds_it(notebook):
    said = repr(notebook("%devices --place x").value)
    assert "x, 360,000 bytes, is on /job:localhost/task:0/device:CPU:0" in said
    assert "x (a name of module" in said


def test_a_cell_shows_what_it_copied_and_held_and_gives_its_value(notebook):
    ran = notebook("%%devices -o told\ny = x + 1.0\nfar + near\ny.shape")
    assert ran.value == (300, 300)
    assert "1 copy seen" in ran.text
    assert "In[3]:3" in ran.text
    (record,) = notebook("told").value.copies.records
    assert (record.cause, record.line.line) == ("operand of add", 3)
    said = repr(notebook("%devices --copies").value)
    assert "operand of add" in said
    assert ".to()" in said


@pytest.mark.parametrize("form", ["", " --static", " --text"])
def test_a_cell_shows_what_ran_in_it_and_the_state_at_its_end(notebook, form):
    notebook("f = ll.function(lambda x: x @ x)\nf(x)")
    gc.collect()  # nothing of other tests goes meanwhile
    before = ll.memory_info("CPU:0").current
    ran = notebook(f"%%devices{form} -o told\ny = ll.exp(x) + ll.sin(x)\nz = f(x)")
    first = notebook("told").value.to_dict()["devices"][0]
    assert (first["ops"], first["calls"]) == (3, 1)
    assert first["live"] == before + 2 * 360_000
    assert first["peak"] >= before + 3 * 360_000, "two temporaries and their sum"
    assert "3 ops, 1 call" in ran.text
    assert f"live {bytes_text(first['live'])}, peak {bytes_text(first['peak'])}" in ran.text
    assert not device_counts.kept


def in_one_line(shown) -> str:
    return " ".join(repr(shown).split())


def test_what_nobody_has_counted_is_not_told_as_none(notebook):
    said = in_one_line(notebook("%devices --static").value)
    assert "ops not counted" in said
    assert "ops, calls: not counted while no view is open." in said
    assert "the most of these that a question has found" in said
    notebook("%devices --watch")
    try:
        notebook("ll.exp(ll.exp(x) * ll.sin(x))\n'temporaries'")
        watched = notebook("%devices -q -o told\ntold").value
        first = watched.state()["devices"][0]
        assert first["peak"] >= first["live"] + 3 * 360_000
        assert ll.memory_info("CPU:0").peak == first["peak"]
        said = in_one_line(watched)
        assert f", peak {bytes_text(first['peak'])}<" in watched.static().html
        assert "the most of these, with" in said
    finally:
        notebook("%devices --reset")
    assert "the most of these that a question" in in_one_line(notebook("%devices --static").value)


def test_a_staged_function_says_where_its_nodes_run(notebook):
    notebook("@ll.function\ndef f(x):\n    with ll.device('CPU:1'):\n        return x * 2.0\nf(near)")
    said = repr(notebook("%devices --place f").value)
    assert "multiply on CPU:1: asked for by the scope around it; 1 copy in" in said


def test_a_copy_that_nobody_asked_for_fails_at_its_line_with_the_fix(notebook):
    ran = notebook("%%devices --fail-on-copy\nok = near.to('CPU:1')\nfar + near", fails=True)
    told = ran.out + ran.err
    assert "DeviceError" in told
    assert "line 3" in told
    assert 'near = near.to("CPU:1")' in told.replace("\n", " ")
    assert "watched_devices.py" not in told
    assert "ordinary_cell.py" not in told
    notebook("far + near")  # afterwards it is as before
    assert not ll.events.wanted(ll.events.Allocated)


def test_a_budget_names_the_line_that_broke_it_also_inside_a_staged_call(notebook):
    ran = notebook("%%devices --budget 400kB\na = x + 1.0\nb = a + 1.0", fails=True)
    assert "MemoryBudgetError: " in ran.out + ran.err
    assert "In[3] line 2" in ran.out + ran.err
    notebook("f = ll.function(lambda x: (x @ x).sum())\nf(x)\ndel a, b")
    inside = notebook("%%devices --budget 500kB\nf(x)", fails=True)
    assert "MemoryBudgetError: " in inside.out + inside.err
    assert notebook("%%devices --budget 1GiB\nf(x).shape").value == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%devices --budget 3MB", "--budget is for a cell; write %%devices --budget"),
        ("%%devices --live\n1", "--live is for no cell"),
        ("%%devices --budget much\n1", "'much' is no size; write 512MB"),
        ("%devices --place ll", "is a module, and lives on no device"),
        ("%devices --live -d GPU:7", "GPU:7"),
    ],
)
def test_usage_errors_are_one_line(notebook, line, words):
    ran = notebook(line, fails=True)
    assert ran.err.startswith("UsageError: ")
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_peaks_are_counted_while_somebody_watches(notebook):
    notebook("%devices --watch")
    notebook("big = ll.ones((1000, 1000)) + 1.0\ndel big")
    told = {one.device: one for one in notebook("%devices --mem -q -o told\ntold").value}
    assert told["CPU:0"].peak >= told["CPU:0"].current + 4_000_000
    notebook("far.to('CPU:0')\nkept = ll.ones((500, 500))")
    assert "kept = ll.ones" in repr(notebook("%devices --live --top 1 --text").value)
    assert "is copied" in repr(notebook("%devices --copies").value) or ll.memory.recent_copies()
    notebook("%devices --reset")
    assert ll.memory.recent_copies() == ()
    assert not ll.events.wanted(ll.events.Allocated)
    told = {one.device: one for one in notebook("%devices --mem -q -o told\ntold").value}
    assert told["CPU:0"].peak == told["CPU:0"].current
    assert "ask one at a time" in notebook("%devices --watch --reset", fails=True).err


def test_unloading_ends_the_watch(notebook):
    notebook("%devices --watch")
    notebook("%unload_ext limelight")
    assert not ll.events.wanted(ll.events.Allocated)


def test_live_at_a_moment_that_has_passed(notebook):
    assert "nobody has counted; write %devices --watch first" in notebook("%devices --live 1", fails=True).err
    notebook("%devices --watch")
    try:
        notebook("big = ll.ones((500, 333))\ndel big")
        said = repr(notebook("%devices --live peak").value)
        (row,) = [line for line in said.splitlines() if "gone " in line and "666 kB" in line]
        assert "In[5]:1" in row
        assert "666 kB" not in repr(notebook("%devices --live 0.0s").value)
        assert "the watch began" in notebook("%devices --live 3600", fails=True).err
        assert "'soon' is no moment" in notebook("%devices --live soon", fails=True).err
    finally:
        notebook("%devices --reset")
