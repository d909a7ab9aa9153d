"""The thread that compiles, the process that does it for it, and what the end of a program finds of both."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import limelight as ll
from limelight.executors.tiered import background_compilation, compile_thread
from limelight.executors.tiered.compile_cost import FELT, seconds_due
from limelight.executors.tiered.compile_thread import CompileThread
from limelight.executors.xla import compiler_process, exported_program
from limelight.executors.xla.compiler_process import CompilationError, CompilerProcess, StoppedError

HAS_JAX = importlib.util.find_spec("jax") is not None
jax_only = pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed: pip install 'limelight[xla]'")
X = np.linspace(-1.0, 1.0, 6, dtype="float32")


def test_jobs_run_one_after_the_other_and_the_thread_goes_when_there_are_none():
    thread, done = CompileThread(), []
    for i in range(5):
        thread.submit(lambda process, i=i: done.append((i, threading.current_thread().name)))
    running = thread._thread
    if running is not None:
        running.join()
    assert done == [(i, "limelight compiles") for i in range(5)]
    thread.submit(lambda process: done.append("again"))
    running = thread._thread
    if running is not None:
        running.join()
    assert done[-1] == "again"


def test_after_its_end_nothing_begins():
    thread, done = CompileThread(), []
    thread.stop()
    thread.submit(lambda process: done.append(1))
    assert (thread._thread, done) == (None, [])
    with pytest.raises(StoppedError):
        thread.process.stop_if_told()


def test_a_thread_that_cannot_begin_is_no_error_of_the_call(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    thread, done = CompileThread(), []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        thread.submit(lambda process: done.append("lost"))
    thread.submit(lambda process: done.append("later"))
    running = thread._thread
    if running is not None:
        running.join()
    assert done == ["later"]


def test_a_forked_process_does_not_wait_for_the_thread_of_its_parent(monkeypatch):
    parents, forgotten = compile_thread._threads[0], []
    monkeypatch.setattr(compile_thread, "_threads", [parents])
    monkeypatch.setattr(compile_thread.atexit, "unregister", forgotten.append)
    compile_thread._begin_anew()
    assert forgotten == [parents.stop], "a lock that is held for ever would be asked for there"
    assert compile_thread._threads[0] is not parents


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows knows no parent's end")
def test_the_process_that_compiles_ends_with_its_parent_however_that_ends():
    child = "from exported_program import end_with_parent as e; e(0.05); import time; print('begun', flush=True); "
    code = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child + "time.sleep(600)"!r}], stdout=subprocess.PIPE)
child.stdout.readline()
os._exit(0)
"""
    folder = str(Path(exported_program.__file__).parent)
    subprocess.run(  # its stderr is closed when both are gone
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": folder},
        capture_output=True,
        timeout=60,
        check=True,
    )


def test_the_price_grows_with_the_graph_and_what_is_felt_is_a_small_share(monkeypatch):
    def graph(n):
        def chain(x):
            for _ in range(n):
                x = ll.tanh(x * 2.0)
            return x

        return ll.function(chain).get_concrete_function(ll.TensorSpec((3,))).graph

    monkeypatch.setitem(sys.modules, "jax", sys)
    short, long = (seconds_due(graph(n)) for n in (10, 1000))
    assert short < long
    monkeypatch.delitem(sys.modules, "jax")
    assert seconds_due(graph(10)) > short + 0.5 * FELT, "JAX would have to be imported"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.stdin.buffer.read(); raise ValueError('no such thing')", "ValueError: no such thing"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "its process ended with status -9"),
    ],
)
def test_what_goes_wrong_in_the_other_process_is_told(monkeypatch, tmp_path, script, words):
    file = tmp_path / "compiler.py"
    file.write_text(script)
    monkeypatch.setattr(compiler_process, "_SCRIPT", str(file))
    with pytest.raises(CompilationError, match=words):
        CompilerProcess().compile(b"x", tmp_path)


def test_the_other_process_takes_no_memory_of_a_gpu(monkeypatch, tmp_path):
    file = tmp_path / "compiler.py"
    file.write_text(
        "import os, sys; sys.stdin.buffer.read(); "
        "sys.exit(os.environ['JAX_PLATFORMS'] + ' ' + os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'])"
    )
    monkeypatch.setattr(compiler_process, "_SCRIPT", str(file))
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(CompilationError, match=r"^cpu false$"):
        CompilerProcess().compile(b"x", tmp_path)


@pytest.mark.parametrize(("name", "value"), [("executable", ""), ("frozen", True)])
def test_no_process_begins_where_there_is_no_program_of_python(monkeypatch, tmp_path, name, value):
    monkeypatch.setattr(sys, name, value, raising=False)
    with pytest.raises(CompilationError, match="does not know its own program"):
        CompilerProcess().compile(b"x", tmp_path)


def test_a_compilation_is_ended_from_another_thread(monkeypatch, tmp_path):
    file = tmp_path / "compiler.py"
    file.write_text("import sys, time; sys.stdin.buffer.read(); time.sleep(600)")
    monkeypatch.setattr(compiler_process, "_SCRIPT", str(file))
    process, ended = CompilerProcess(), []

    def compiles():
        with pytest.raises(StoppedError):
            process.compile(b"x", tmp_path)
        ended.append(True)

    thread = threading.Thread(target=compiles)
    thread.start()
    process.stop()
    thread.join(60)
    assert ended


@jax_only
@pytest.mark.parametrize("chosen", ["/dev/null/nowhere", False])
def test_where_no_folder_can_be_written_to_there_is_one_for_the_program_alone(chosen):
    with ll.config.compilation_cache(chosen), background_compilation._folder() as (folder, most_bytes):
        assert folder.is_dir()
        assert most_bytes == -1, "JAX needs the package filelock for a bound"
    assert not folder.exists()


@jax_only
def test_a_cache_of_the_programs_own_keeps_its_bound(tmp_path):
    import jax

    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        with background_compilation._folder() as found:
            assert found == (str(tmp_path), jax.config.jax_compilation_cache_max_size)
            assert found[1] == -1, "by default it has none: nothing in it may be deleted"
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


@jax_only
def test_a_program_compiled_elsewhere_draws_assigns_and_computes_the_same(tmp_path):
    v = ll.Variable(np.ones(6, "float32"))

    def step(x):
        noise = ll.random.normal((6,))
        v.assign_add(ll.tanh(x) + noise)
        return (v * x).sum(), noise

    f = ll.function(step)
    f(X)
    function = f.trace_cache[0].function

    def times_of_use():
        return [file.read_bytes() for file in tmp_path.glob("*-atime")]

    class Watched(CompilerProcess):
        def compile(self, program, folder, most_bytes):
            super().compile(program, folder, most_bytes)
            self.left = times_of_use()

    process = Watched()
    with ll.config.compilation_cache(tmp_path):
        program = background_compilation.compiled(function.optimised.graph, process)
    assert len(process.left) == len(times_of_use()) == 1
    assert process.left != times_of_use(), "it was found there, and not compiled again"
    payloads = [x._data for x in (ll.constant(X), *f.trace_cache[0].captures)]
    before = v.numpy()
    ll.random.seed(4)
    wanted, values = program.rehearse(payloads)
    np.testing.assert_array_equal(v.numpy(), before)
    ll.random.seed(4)
    results = program.runner()(*payloads)
    for x, y in zip([*results, v.numpy()], [*wanted, *values], strict=True):
        np.testing.assert_array_equal(x, y)
    v.assign(before)
    ll.random.seed(4)
    for x, y in zip(f(X), results, strict=True):
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-5)


@jax_only
@pytest.mark.slow  # three processes import JAX
def test_a_program_ends_as_it_would_while_something_is_compiled():
    code = """
import sys
import limelight as ll
from limelight.executors.tiered import compile_thread
f = ll.function(lambda x: ll.tanh(x) * 2.0)
f(1.0)
f.trace_cache[0].function._built._due = 0.0
f(1.0)
print(f.trace_cache[0].tier_progress)
process = compile_thread._threads[0].process
while process._running is None:
    pass
sys.exit(3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (3, "compiling…", "")
