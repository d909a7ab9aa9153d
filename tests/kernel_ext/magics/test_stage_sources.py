"""`%%stage -g x,w` and `--passes`: by what is differentiated, and which passes run."""

from __future__ import annotations

import pytest

CELL = "y = ((x @ w) * v * lr).sum()\ny"


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nw = ll.constant([[3.0], [4.0]])\nlr = 0.5")
    run("v = ll.Variable(2.0, name='v')")
    return run


def named(notebook, line):
    """The names of the gradients that a line shows, and the outputs of the graph that makes them."""
    notebook(f"%%stage {line} -q -o ran\n{CELL}")
    gradients = notebook("ran.gradients").value
    graph = gradients.function
    outputs = [] if graph is None else graph.output_names(None)
    assert graph is None or len(outputs) == len(graph.trace_cache[0].graph.outputs)
    return [one.name for one in gradients.found], outputs


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("-g", ["w", "x", "v"]),
        ("-g x,w", ["w", "x"]),
        ("-g v", ["v"]),
        ("-g w, v", ["w", "v"]),
        ("step -g x", ["x"]),
        ("-g x step", ["x"]),
        ("step -g", ["w", "x", "v"]),
        ("--grad=w", ["w"]),
    ],
)
def test_names_after_g_are_those_by_which_is_differentiated(notebook, line, names):
    found, outputs = named(notebook, line)
    assert sorted(found) == sorted(names)
    assert outputs == [f"gradient of {name}" for name in found]
    assert ("step" in notebook("dir()").value) == ("step" in line)


def test_the_numbers_are_those_of_all(notebook):
    notebook(f"%%stage -g -q -o every\n{CELL}")
    notebook(f"%%stage -g v,x -q -o some\n{CELL}")
    every = {one.name: one.value for one in notebook("every.gradients.found").value}
    for one in notebook("some.gradients.found").value:
        assert one.value.numpy().tolist() == every[one.name].numpy().tolist()
    run = notebook("some.gradients.function(x=x, w=w)").value
    assert [g.numpy().tolist() for g in run] == [every[name].numpy().tolist() for name in ("x", "v")]


def test_a_name_that_holds_several_stands_for_all_of_them(notebook):
    notebook("p = {'a': x, 'b': w}")
    notebook("%%stage -g p -q -o ran\n((p['a'] @ p['b']) * v).sum()")
    assert [one.name for one in notebook("ran.gradients.found").value] == ['p["a"]', 'p["b"]']
    notebook("%%stage -g p['b'] -q -o ran\n((p['a'] @ p['b']) * v).sum()")
    assert [one.name for one in notebook("ran.gradients.found").value] == ['p["b"]']


def test_what_cannot_be_differentiated_by_is_said(notebook):
    ran = notebook(f"%%stage -g xx,w\n{CELL}", fails=True)
    assert ran.err == "UsageError: %%stage -g: the cell reads no 'xx'; did you mean 'x'?; NAME goes first\n"
    ran = notebook(f"%%stage -g total\n{CELL}", fails=True)
    assert ran.err == "UsageError: %%stage -g: the cell reads no 'total'; it reads lr, v, w, x; NAME goes first\n"
    assert not {"y", "total"}.intersection(notebook("dir()").value)
    notebook(f"%%stage -g lr,w -q -o ran\n{CELL}")
    lr = notebook("ran.gradients.found").value[-1]
    assert (lr.name, lr.value) == ("lr", None)
    assert "no floating tensor and no trainable variable" in lr.why


def test_the_passes_that_run_and_no_others(notebook):
    notebook("%%stage -q --passes fold,simplify chosen\n-(-x) + 0.0 * x")
    chosen = notebook("{one.name for one in chosen.trace_cache[0].function.optimised.records}").value
    assert chosen <= {"fold", "simplify"}
    assert "simplify" in chosen
    notebook("%%stage -q --passes prune kept\n-(-x)")
    assert notebook("len(kept.trace_cache[0].optimised.nodes)").value == 2
    again = "%%stage -q --without hoist,stack,spread,fuse,share,prune chosen\n-(-x) + 0.0 * x"
    assert "cache hit" in notebook(again.replace(" -q", "")).text, "the same setting, written the other way round"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--passes fould", "--passes: 'fould': no such pass; there are prune,"),
        ("--passes fold --without fuse", "write one of them"),
    ],
)
def test_a_list_of_passes_that_is_none(notebook, flags, says):
    assert says in notebook(f"%%stage {flags}\nx", fails=True).err
