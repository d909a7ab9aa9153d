"""Views and questions about a training step change nothing of what they show: variables, draws, traces, hits, bytes."""

from __future__ import annotations

import gc

import limelight as ll

PROGRAM = """\
import limelight as ll
net = ll.nn.Sequential(ll.nn.Dense(4, activation="relu"), ll.nn.Dropout(0.3), ll.nn.Dense(2))
adam = ll.optim.Adam(0.1)
x, y = ll.ones((5, 3)), ll.zeros((5,), dtype="int32")
net(x)
@ll.function
def step(x, y):
    with ll.GradientTape() as tape:
        loss = ll.mean(ll.nn.softmax_cross_entropy(net(x, training=True), y))
    adam.apply(tape.gradient(loss, net.trainable_variables), net.trainable_variables)
    return loss
step(x, y)
step(x, y);"""
ASKED = (
    "%graph step",
    "%graph step(x, y) --overlay time",
    "%graph step --which backward",
    "%trace_cache step --why",
    "%trace_cache --would step(x[:2], y[:2])",
    "%explain step",
    "%explain --nan step(x, y)",
    "%steps step(x, y) --grad",
    "%tape --flow step(x, y)",
    "%tape --recompute step(x, y)",
    "%devices --place step",
    "%devices --live",
    "%dashboard step",
)


def test_what_is_looked_at_stays_as_it_is(run):
    run("%load_ext limelight")
    run(PROGRAM)

    def now():
        gc.collect()
        step, net = run("step").value, run("net").value
        return {
            "weights": [v.numpy().tolist() for v in net.trainable_variables],
            "draws": ll.random.default_generator().state.numpy().tolist(),
            "hits": [entry.hits for entry in step.trace_cache],
            "traces": step.trace_count,
            "bytes": ll.memory_info("cpu:0").current,
        }

    before = now()
    assert before["hits"] == [1]
    changed = {}
    for line in ASKED:
        run(f"shown = {line}\nrepr(shown)\ndel shown")
        if (after := now()) != before:
            changed[line] = after
    run("step(x, y);")
    assert changed == {}
    assert now()["hits"] == [2]
    assert now()["weights"] != before["weights"]
    assert now()["draws"] != before["draws"]
    run("%unload_ext limelight")
