"""Threads that call staged cells while another thread traces one see the notebook's own tensors."""

import threading

import pytest

from limelight_kernel.staged import notebook_lock


@pytest.fixture
def notebook(run):
    run("%load_ext limelight")
    run("import limelight as ll, threading\nclass Config: pass\ncfg = Config()\ncfg.t = x = ll.ones(2)\nxs = [x]")
    run("began, go_on = threading.Event(), threading.Event()")
    return run


def test_a_hit_waits_until_what_a_trace_was_lent_is_back(notebook, shell):
    notebook("%%stage -q hit\ny = x * cfg.t + xs[0]\ny")
    notebook("def slow(t):\n    began.set()\n    go_on.wait(300)\n    return t\nslow_down = False")
    notebook("%%stage -q traced\nz = (slow(x) if slow_down else x) + cfg.t + xs[0]\nz")
    names, results = shell.user_ns, []
    tracing = threading.Thread(target=lambda: results.append(names["traced"](slow_down=True).result.tolist()))
    tracing.start()
    assert names["began"].wait(300)
    hitting = threading.Thread(target=lambda: results.append(names["hit"]().result.tolist()))
    hitting.start()
    hitting.join(0.05)
    assert hitting.is_alive()  # it waits
    names["go_on"].set()
    tracing.join()
    hitting.join()
    assert sorted(results) == [[2.0, 2.0], [3.0, 3.0]]


def test_what_was_lent_between_reading_and_running_is_read_again(notebook, shell, monkeypatch):
    """As if another thread had begun to trace after this call read the list, and put a symbolic tensor there."""
    notebook("%%stage -q hit\ny = xs[0] * 2.0\ny")
    hit, leaked = shell.user_ns["hit"], []
    with pytest.warns(match="leaves a symbolic tensor behind"):
        notebook("keep = []\nf = ll.function(lambda t: (keep.append(t), t)[1])\n_ = f(x)")
    use, real = hit._use, shell.user_ns["xs"][0]

    def lent_first(sent, run):
        if not leaked:
            leaked.append(True)
            notebook_lock.tracers.append(-1)
            sent = {**sent, "xs": [shell.user_ns["keep"][0]]}
        return use(sent, run)

    monkeypatch.setattr(hit, "_use", lent_first)
    assert hit().result.tolist() == [2.0, 2.0]
    assert leaked
    assert shell.user_ns["xs"][0] is real


def test_it_can_be_taken_again_by_its_thread_and_is_new_in_a_forked_child():
    assert notebook_lock.take()
    assert notebook_lock.take(timeout=0.0)
    notebook_lock.give_back()
    notebook_lock.give_back()
