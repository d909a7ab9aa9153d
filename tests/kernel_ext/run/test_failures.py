"""What goes wrong in a staged cell: the message, the line, and a notebook that is as it was."""

from __future__ import annotations

import functools
import re

import pytest

from limelight.core import dispatch


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant([[1.0, 2.0]])\nw = ll.constant([[3.0], [4.0]])\ny = 'old'")
    return run


def clean(run):
    """The notebook's names mean what they meant, and the engine computes eagerly."""
    assert run("y").value == "old"
    assert run("x.numpy().tolist(), type(x) is ll.Tensor").value == ([[1.0, 2.0]], True)
    assert run("(x + 1).numpy()[0, 0]").value == 2.0
    assert len(dispatch.stack()) == 1
    assert (
        run("with ll.GradientTape() as t:\n    t.watch(x)\n    z = x * x\nt.gradient(z, x).numpy()[0, 0]").value == 2.0
    )


def frames(ran):
    """The places that a traceback shows: (cell or file, line)."""
    return re.findall(r"^(Cell In\[\d+\]|File [^\n,]+?)[,:] ?(?:line )?(\d+)", ran.out, flags=re.MULTILINE)


def test_an_error_points_at_the_cells_line_and_hides_the_rest(notebook, shell):
    number = len(shell.user_ns["In"])
    ran = notebook("%%stage step\ny = x\nz = 1 / 0\n", fails=True)
    assert isinstance(ran.error, ZeroDivisionError)
    assert frames(ran)[-1] == (f"Cell In[{number}]", "3")
    assert "----> 3 z = 1 / 0" in ran.out
    for hidden in ("execution.py", "interactiveshell.py", "function.py", "run_cell_magic(", "magics.py"):
        assert hidden not in ran.out.replace("get_ipython().run_cell_magic(", "")
    assert notebook("'step' in dir()").value is False
    clean(notebook)


def test_an_error_in_a_helper_shows_both_lines(notebook, shell):
    notebook("def helper(t):\n    return t @ t")
    number = len(shell.user_ns["In"])
    ran = notebook("%%stage\n\ny = helper(x)", fails=True)
    assert type(ran.error).__name__ == "ShapeError"
    assert frames(ran)[-2:] == [(f"Cell In[{number}]", "3"), (f"Cell In[{number - 1}]", "2")]
    for word in ("matmul", "f32[1,2]", f"In[{number - 1}] line 2"):
        assert word in str(ran.error)
    clean(notebook)


def test_xmode_show_brings_the_frames_back(notebook):
    notebook("%xmode --show")
    ran = notebook("%%stage\ny = x @ x", fails=True)
    assert "execution.py" in ran.out
    notebook("%xmode --hide")


def test_an_eager_error_hides_the_engine_too(notebook, shell):
    number = len(shell.user_ns["In"])
    ran = notebook("z = 1\nx @ x", fails=True)
    assert type(ran.error).__name__ == "ShapeError"
    assert frames(ran) == [(f"Cell In[{number}]", "2")]


CAUSED = """
try:
    {}['inside']
except KeyError as error:
    raise ShapeError('outside') from error
"""


def test_a_cause_inside_the_engine_is_left_out_and_one_of_the_users_is_not(notebook):
    notebook("from limelight.errors import ShapeError")
    for file, told in (("<limelight test>", False), ("<mine>", True)):
        ran = notebook(f"exec(compile({CAUSED!r}, {file!r}, 'exec'))", fails=True)
        assert "outside" in ran.out
        assert ("direct cause" in ran.out) is told
        assert isinstance(ran.error.__cause__, KeyError), "what is not shown is still there"


def test_an_error_of_a_rerun_names_the_running_cell(notebook, shell):
    cell = "%%stage step\nif flag:\n    raise ValueError('stop')\ny = x"
    notebook("flag = False")
    notebook(cell)
    notebook("y = 'old'\nflag = True")
    number = len(shell.user_ns["In"])
    ran = notebook(cell, fails=True)
    assert frames(ran)[-1] == (f"Cell In[{number}]", "3")
    clean(notebook)


def test_an_error_below_another_magic(notebook, shell):
    number = len(shell.user_ns["In"])
    ran = notebook("%%time\n%%stage\ny = x\n1 / 0", fails=None)
    assert frames(ran)[-1] == (f"Cell In[{number}]", "4")
    clean(notebook)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("y = x @ x", "ShapeError", ["matmul", "f32[1,2]", "line 2"]),
        ("y = x + ll.constant(1)", "DTypeError", ["f32[1,2]", "i32[]", "astype", "line 2"]),
        ("if x[0, 0] > 0:\n    y = x", "SymbolicValueError", ["line 2", "ll.cond", "ll.where"]),
        ("y = float(x[0, 0])", "SymbolicValueError", ["float()", "line 2"]),
        ("y = x.numpy()", "SymbolicValueError", [".numpy()", "line 2"]),
        ("y = ll.Variable(1.0)", "StateCreationError", ["line 2", "in a cell above"]),
        ("y = undefined_name", "NameError", ["undefined_name"]),
        ("raise KeyError('k')", "KeyError", ["k"]),
    ],
)
def test_errors_while_tracing(notebook, body, kind, words):
    ran = notebook(f"%%stage step\n{body}", fails=True)
    assert type(ran.error).__name__ == kind
    for word in words:
        assert word in str(ran.error)
    assert frames(ran)[-1][1] == "2"
    assert notebook("'step' in dir()").value is False
    clean(notebook)


@pytest.mark.filterwarnings("ignore:.*leaves a symbolic tensor behind")
def test_a_leaked_tensor_is_explained(notebook):
    notebook("class Box: pass\nbox = Box()\nwith_box = {'box': box}")
    notebook("exec('def keep(t):\\n    box.kept = t + 1\\n', with_box)\nkeep = with_box['keep']")
    notebook("%%stage -q\nkeep(x)\nq = x")
    error = notebook("box.kept + 1", fails=True).error
    assert type(error).__name__ == "LeakedTensorError"
    assert "line 2" in str(error)
    clean(notebook)


def test_an_error_of_python_code_that_the_graph_calls(notebook, shell):
    notebook("def boom(t):\n    raise ValueError('at run time')")
    number = len(shell.user_ns["In"])
    ran = notebook("%%stage\nq = x\ny = ll.py_func(boom, [q], ll.TensorSpec([1, 2]))", fails=True)
    assert isinstance(ran.error, ValueError)
    assert frames(ran) == [(f"Cell In[{number}]", "3"), (f"Cell In[{number - 1}]", "2")]
    assert "----> 3 y = ll.py_func" in ran.out
    clean(notebook)


def test_an_error_of_a_kernel_that_the_graph_runs(notebook, shell):
    notebook("i = ll.constant([0])")
    cell = "%%stage step\nq = x\ny = ll.gather(q, i, axis=1)"
    notebook(cell)
    notebook("y = 'old'\ni = ll.constant([7])")
    number = len(shell.user_ns["In"])
    ran = notebook(cell, fails=True)
    assert type(ran.error).__name__ == "OutOfBoundsError"
    assert frames(ran) == [(f"Cell In[{number}]", "3")]
    clean(notebook)
    notebook("i = ll.constant([1])")
    assert "cache hit" in notebook(cell).text, "a run-time error is not sticky"


def test_a_failure_of_limelight_itself_is_shown_whole(notebook, monkeypatch):
    from limelight_kernel.staged import cell_body

    monkeypatch.setattr(cell_body, "split_outputs", None)
    ran = notebook("%%stage\ny = x", fails=True)
    assert isinstance(ran.error, TypeError)
    assert "cell_body.py" in ran.out
    assert "run_cell" in ran.out


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("y = x +", 2, "invalid syntax"),
        ("y = x\nreturn y", 3, "last expression is its result"),
        ("y = x\nawait y", 3, "event loop"),
        ("y = x\n%time y", 3, "IPython's own syntax"),
    ],
)
def test_syntax_errors_have_the_cells_line(notebook, shell, text, line, words):
    number = len(shell.user_ns["In"])
    ran = notebook(f"%%stage\n{text}", fails=True)
    assert isinstance(ran.error, SyntaxError)
    assert f"Cell In[{number}], line {line}" in ran.out
    assert words in ran.out
    assert "Traceback" not in ran.out
    assert "execution.py" not in ran.out
    clean(notebook)


def test_an_interrupt_in_the_middle_of_a_trace(notebook):
    cell = "%%stage step\ny = x * 2\nstop()\n"
    notebook("def stop():\n    raise KeyboardInterrupt")
    ran = notebook(cell, fails=True)
    assert isinstance(ran.error, KeyboardInterrupt)
    clean(notebook)
    notebook("def stop():\n    pass")
    assert "traced" in notebook(cell).text
    assert notebook("y.numpy().tolist()").value == [[2.0, 4.0]]


def test_an_interrupt_in_the_middle_of_a_run(notebook):
    notebook(
        "stop = iter([True])\n"  # not what a cell compares: another value would be another trace
        "def slow(t, ask=lambda it=stop: next(it, False)):\n"
        "    if ask():\n        raise KeyboardInterrupt\n    return t",
    )
    cell = "%%stage step\nq = ll.py_func(slow, [x], ll.TensorSpec([1, 2]))\ny = q * 2"
    ran = notebook(cell, fails=True)
    assert isinstance(ran.error, KeyboardInterrupt)
    clean(notebook)
    assert "cache hit" in notebook(cell).text
    assert notebook("y.numpy().tolist()").value == [[2.0, 4.0]]


def test_a_real_signal_while_a_graph_runs_is_shown_at_the_line_that_ran(notebook):
    notebook("import os, signal, threading\nsent = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))")
    notebook("z = ll.constant(0)\nsent.start()")
    ran = notebook("%%stage\ny = z + 1\nz = ll.while_loop(lambda i: i >= 0, lambda i: i * 1, (y,))", fails=True)
    assert isinstance(ran.error, KeyboardInterrupt)
    assert "----> 3 z = ll.while_loop(" in ran.out
    assert ".py" not in ran.out


def test_frames_of_what_the_library_calls_are_not_shown(notebook, monkeypatch):
    notebook("import functools")

    def stopped(*_):
        functools.reduce(stopping, [1, 2])

    def stopping(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("limelight.staging.concrete_function.ConcreteFunction.call_leaves", stopped)
    for one in (stopped, stopping):
        code = one.__code__
        one.__code__ = code.replace(co_filename=functools.__file__)
    ran = notebook("%%stage\ny = x + 1", fails=True)
    assert ran.out.strip() == "KeyboardInterrupt: while limelight prepared the graph"


def test_a_real_signal_while_tracing(notebook):
    notebook("import os, signal, time")
    ran = notebook("%%stage\ny = x\nos.kill(os.getpid(), signal.SIGINT)\nwhile True:\n    time.sleep(0.01)", fails=True)
    assert isinstance(ran.error, KeyboardInterrupt)
    clean(notebook)


def test_the_graph_of_a_refused_cell_advises_what_the_traceback_does(notebook):
    refused = notebook("%%stage step\nz = x * 2.0\nif z[0, 0] > 1:\n    z = -z", fails=True)
    assert "`%%stage step --autograph`" in " ".join(str(refused.error).split())
    graph = " ".join(notebook("%graph --text").out.split())
    assert "%%stage step --autograph" in graph
    assert "ll.function(autograph=True)" not in graph
