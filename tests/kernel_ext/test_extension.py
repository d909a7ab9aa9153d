"""Loading and unloading."""

from __future__ import annotations

import re
import textwrap

import pytest

from limelight.user_code import source_line
from limelight_kernel.magics.registry import MAGICS

OURS = {name for magic in MAGICS for name in magic.magics["line"]}


def belongings(shell):
    """Everything in a shell that an extension might leave something in."""
    shell.run_line_magic("unload_ext", "nothing")  # IPython loads its own magics when they are first used
    manager = shell.magics_manager
    return {
        "magics": {kind: dict(known) for kind, known in manager.magics.items()},
        "registry": set(manager.registry),
        "events": {name: list(callbacks) for name, callbacks in shell.events.callbacks.items()},
        "matchers": list(shell.Completer.custom_matchers),
        "completers": dict(shell.Completer.custom_completers.strs),
        "cleanup": list(shell.input_transformers_cleanup),
        "post": list(shell.input_transformers_post),
        "token": list(shell.input_transformer_manager.token_transformers),
        "line": list(shell.input_transformer_manager.line_transforms),
        "syntax": list(shell.ast_transformers),
        "formatters": {
            kind: (dict(f.type_printers), dict(f.deferred_printers), dict(f.singleton_printers))
            for kind, f in shell.display_formatter.formatters.items()
        },
        "mimebundle": dict(shell.display_formatter.mimebundle_formatter.type_printers),
        "exceptions": (shell.custom_exceptions, vars(shell).get("CustomTB")),
        "hooks": {name: list(hook) for name, hook in shell.hooks.items() if hasattr(hook, "__iter__")},
        "compiler": (shell.compile, type(shell.compile)),
        "namer": current_namer(),
        "names": {name for name in shell.user_ns if not name.startswith("_")},
    }


def current_namer():
    namer = source_line.set_cell_namer(None)
    source_line.set_cell_namer(namer)
    return namer


def test_unloading_leaves_the_shell_as_it_was(shell, run):
    shell.set_custom_exc((KeyError,), lambda self, *error, **kwargs: None)
    before = belongings(shell)
    run("%load_ext limelight")
    run("%unload_ext limelight")
    assert belongings(shell) == before


def test_loading_prints_nothing_and_adds_only_what_it_says(shell, run):
    before = belongings(shell)
    loaded = run("%load_ext limelight")
    assert (loaded.out, loaded.err, loaded.shown, loaded.value) == ("", "", [], None)
    after = belongings(shell)
    changed = {key for key in before if after[key] != before[key]}
    assert changed == {"magics", "registry", "matchers", "exceptions", "events", "formatters", "namer"}
    assert set(after["magics"]["line"]) - set(before["magics"]["line"]) == OURS
    assert set(after["magics"]["cell"]) - set(before["magics"]["cell"]) == {
        "devices",
        "stage",
        "steps",
        "tape",
        "trace_cache",
    }


def test_a_second_load_says_so_and_a_reload_works(shell, run):
    run("%load_ext limelight")
    assert "already loaded" in run("%load_ext limelight").out
    before = belongings(shell)
    run("%reload_ext limelight")
    after = belongings(shell)
    assert set(after["magics"]["line"]) == set(before["magics"]["line"])
    assert len(after["matchers"]) == len(before["matchers"]) == 1
    run("%unload_ext limelight")
    assert run("%stage", fails=True).err.startswith("UsageError: Line magic function `%stage` not found")


def test_the_packages_own_name_loads_too(shell, run):
    run("%load_ext limelight_kernel")
    assert "stage" in shell.magics_manager.magics["cell"]
    run("%load_ext limelight")
    run("%unload_ext limelight_kernel")
    assert "stage" not in shell.magics_manager.magics["cell"]


def test_the_users_own_magics_and_variables_come_back(shell, run):
    def graph(line):
        return "mine"

    shell.register_magic_function(graph, "line", "graph")
    run("x = 1\n%load_ext limelight")
    run("import limelight as ll")
    run("%%stage -q step\nx2 = ll.constant(2.0) * x")
    run("%unload_ext limelight")
    assert run("%graph").value == "mine"
    assert run("x, x2.item()").value == (1, 2.0)
    assert run("step()[0]['x2'].item()").value == 2.0


def test_a_handler_installed_after_ours_stays(shell, run):
    run("%load_ext limelight")
    shell.set_custom_exc((KeyError,), lambda self, *error, **kwargs: None)
    theirs = shell.CustomTB
    run("%unload_ext limelight")
    assert shell.CustomTB == theirs
    assert shell.custom_exceptions == (KeyError,)


def test_cells_have_their_names_in_the_engine(shell, run):
    run("%load_ext limelight")
    run("from limelight.user_code import source_line")
    label = run("source_line.user_line().label").value
    assert label == f"In[{len(shell.user_ns['In']) - 1}]"


def test_frames_of_ipython_are_not_the_users(shell, run):
    run("%load_ext limelight")
    run("from limelight.user_code import source_line\ndef where():\n    return source_line.user_stack()")
    stack = run("where()").value
    assert [place.function for place in stack[:2]] == ["where", "<module>"]
    assert not [place for place in stack if "IPython" in place.file]


def test_a_staged_op_comes_from_the_cell_and_the_call_from_its_magic(shell, run):
    run("%load_ext limelight")
    run("import limelight as ll\nx = ll.constant(1.0)\ndef helper(t):\n    return t + t")
    run("%%stage -o kept\n\ny = helper(x)")
    node = run("kept.entry.graph.nodes[-1]").value
    now = len(shell.user_ns["In"]) - 2
    assert [str(place) for place in node.stack] == [f"In[{now - 1}] line 4", f"In[{now}] line 3"]
    assert run("kept.entry.where").value == f"In[{now}] line 1"


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_magic_has_help_with_an_example(shell, run, name):
    run("%load_ext limelight")
    method = shell.magics_manager.magics["line"][name]
    assert f"%{name}" in method.__doc__.split("\n\n", 1)[1]
    info = shell.object_inspect(f"%{name}")
    assert info["found"]
    assert "options" in info["docstring"] or "positional" in info["docstring"]
    assert run(f"%{name}?").err == ""


CHECKPOINTS = """
import os, limelight as ll
os.mkdir("run")
model = ll.nn.Dense(2)
model.build((None, 3))
for name in ("model", "model-1", "model-2"):
    status = ll.Checkpoint(model=model).write(f"run/{name}.safetensors")
status = ll.Checkpoint(model=model).restore("run/model.safetensors")
"""


@pytest.mark.slow  # runs all examples
def test_the_examples_in_the_help_run(shell, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("%load_ext limelight")
    run(CHECKPOINTS)
    for name in (name for magic in MAGICS for name in magic.magics["line"]):
        method = shell.magics_manager.magics["line"][name]
        described = re.split(r"^(?:positional arguments|options):", method.__doc__, flags=re.MULTILINE)[0]
        described = described.split("\n\n", 2)[2]
        examples = re.findall(r"(?:^    .+\n?)+", described, flags=re.MULTILINE)
        assert examples
        for example in examples:
            ran = run(textwrap.dedent(example))
            assert ran.error is None


def test_a_scope_that_an_interrupted_cell_left_open_is_left_before_the_next_one(run):
    run("%load_ext limelight")
    run(
        textwrap.dedent(
            """
            import limelight as ll
            from limelight.core import dispatch

            tape = ll.GradientTape()

            class Interrupted:
                def __enter__(self):
                    tape.__enter__()

                def __exit__(self, *exc):
                    raise KeyboardInterrupt

            def work():
                with Interrupted():
                    pass
            """
        )
    )
    run("work()", fails=True)
    assert run("len(dispatch.active), tape.below is None").value == (0, True)
