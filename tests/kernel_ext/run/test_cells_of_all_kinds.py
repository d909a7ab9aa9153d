"""`%%stage` on cells of all kinds, under its flags: each line that is code has a word, and errors are the user's."""

from __future__ import annotations

import itertools

import pytest

from limelight_kernel.report import timing

CELLS = {
    "control flow": [
        "y = x",
        "if x.shape[0] == 1:",
        "    y = y * 2",
        "else:",
        "    y = -y",
        "for i in range(2):",
        "    y = y + i",
        "ll.sum(y)",
    ],
    "on tensors": [
        "y = x",
        "if ll.sum(y) > 2:",
        "    y = y * 2",
        "for _ in ll.arange(2):",
        "    y = y + 1",
        "while ll.sum(y) < 9:",
        "    y = y * 2",
        "ll.sum(y)",
    ],
    "nested functions": [
        "def outer(t):",
        "    def inner(u):",
        "        return u * 2",
        "    return inner(t) + 1",
        "ll.sum(outer(x))",
    ],
    "classes and decorators": [
        "import functools",
        "def twice(f):",
        "    @functools.wraps(f)",
        "    def g(*a):",
        "        return f(f(*a))",
        "    return g",
        "",
        "class Net:",
        "    def __init__(self):",
        "        self.k = 2.0",
        "",
        "    @twice",
        "    def __call__(self):",
        "        return self",
        "",
        "@twice",
        "def h(t):",
        "    return t + Net().k",
        "ll.sum(h(x))",
    ],
    "blocks": [
        "with ll.name_scope('a'):",
        "    y = x * 2",
        "while True:",
        "    break",
        "try:",
        "    y = y / 2",
        "finally:",
        "    pass",
        "ll.mean(y)",
    ],
    "no result": [
        "y = x * 2",
        "z = y + 1",
    ],
    "unicode, tabs, comments": [
        "# größe",
        "",
        "α = x * 2  # naïve",
        "if True:",
        "\tβ = α + 1",
        "",
        "\t# tab",
        "名 = ll.sum(β); s = '→ \\t'",
        "",
        "名",
    ],
    "long statements": [
        "y = ll.where(",
        "    x > 1,",
        "    x,   # yes",
        "    0.0,",
        ")",
        "s = '''",
        "many",
        "",
        "lines",
        "'''",
        "ll.sum(",
        "  y)",
    ],
}
FLAGS = ("--relax", "-g", "-a", "-a plan", "-t", "--max-traces 2", "--strict", "-f")
PAIRS = [" ".join(pair) for pair in itertools.combinations(FLAGS, 2)]


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])")
    return run


@pytest.mark.slow  # runs many cells
@pytest.mark.parametrize("kind", CELLS)
def test_every_line_of_code_has_a_glyph_and_a_word_whatever_is_asked_for(notebook, kind, monkeypatch):
    monkeypatch.setattr(timing, "REPEATS", timing.FEWEST)  # the times are not looked at
    more = "--autograph " if kind == "on tensors" else ""
    for flags in ["", "--autograph", *FLAGS, *PAIRS]:
        ran = notebook(f"%%stage -o ran {more}{flags}\n" + "\n".join(CELLS[kind]))
        lines = notebook("ran.lines").value
        bare = [
            line.text for line in lines if not line.mark and line.text.strip() and not line.text.strip().startswith("#")
        ]
        assert bare == [], flags
        assert all(f" {line.words}" in ran.text for line in lines if line.mark), flags
        assert max(map(len, ran.text.splitlines())) <= 80
        assert ("shortest" in ran.text, "Gradients of" in ran.text or "No gradient" in ran.text) == (
            "-t" in flags.split(),
            "-g" in flags.split(),
        )


@pytest.mark.parametrize(
    ("cell", "line", "words"),
    [
        ("y = x\n%timeit y", 3, "'%timeit y' is IPython's own syntax"),
        ("!ls\ny = x", 2, "'!ls' is IPython's own syntax"),
        ("y = x +", 2, "invalid syntax"),
        ("y = x\nreturn y", 3, "a staged cell has no 'return'"),
        ("y = x\nraise ValueError('mine')", 3, "ValueError: mine"),
        ("y = x @ x", 2, "ShapeError: matmul: f32[1,2] @ f32[1,2]"),
        ("y = ll.linalg.cholesky(-ll.eye(2) * x)", 2, "LinAlgError: cholesky: f32[2,2]"),
        ("y = x\ny = nothing", 3, "name 'nothing' is not defined"),
    ],
)
def test_an_error_points_at_its_line_and_shows_no_other_code(notebook, cell, line, words):
    said = notebook(f"%%stage\n{cell}", fails=True)
    text = said.out + said.err
    assert words in text
    assert f"Cell In[3], line {line}" in text
    assert text.count("Cell In[") == 1
    assert "site-packages" not in text
    assert "direct cause" not in text


@pytest.mark.parametrize("when", ["while tracing", "while running"])
def test_an_interrupt_leaves_the_notebook_as_it_was(notebook, when):
    notebook("def stop(t):\n    raise KeyboardInterrupt\n")
    call = "stop(y)" if when == "while tracing" else "y = ll.py_func(stop, [y], ll.TensorSpec([1, 2]))"
    said = notebook(f"%%stage step -t\ny = x * 2\n{call}", fails=True).out
    assert "KeyboardInterrupt" in said
    assert "in stop(t)" in said
    assert notebook("'y' in dir(), 'step' in dir()").value == (False, False)
    assert notebook("%%stage\ny = x * 2\nll.sum(y)").value.item() == 6.0


def test_times_of_a_cell_that_is_not_to_run_are_those_of_its_trace(notebook):
    text = notebook("%%stage -t --no-run\nll.sum(x)").text
    assert ("first call" in text, "cached call" in text, "eager" in text) == (True, False, False)
    assert "Not run for its times: --no-run." in text


def test_state_is_to_be_made_in_a_cell_above(notebook):
    for code, kind in (("ll.Variable(1.0)", "variable"), ("ll.random.Generator(1)", "generator")):
        said = notebook(f"%%stage\nmade = {code}\nx", fails=True).out
        assert f"Create the {kind} in a cell above" in said


def test_dataclasses_are_no_side_effects(notebook):
    cell = "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: object\n    b: int = 2\nP(x).a * 2"
    assert notebook(f"%%stage --strict\n{cell}").value.numpy().tolist() == [[2.0, 4.0]]


def test_a_result_that_has_no_gradient(notebook):
    assert "the cell's result is a list, and a gradient" in notebook("%%stage -g\n[x]").text.replace("\n", " ")
    assert "the cell's result is an int, and a gradient" in notebook("%%stage -g\n1 + 1").text.replace("\n", " ")


def test_a_global_at_the_top_of_a_cell_is_no_side_effect(notebook):
    for _ in range(2):
        assert "⚠" not in notebook("%%stage\nglobal q\nq = x * 2").text
    notebook("x = x + 1")
    assert "cache hit" in notebook("%%stage\nglobal q\nq = x * 2").text
    assert notebook("q.numpy().tolist()").value == [[4.0, 6.0]]
