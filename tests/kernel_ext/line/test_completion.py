"""Completion on the lines of our magics, through IPython's own completer."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

import limelight as ll
from limelight_kernel.magics.registry import MAGICS

FLAGS = {"-d", "--device", "-i", "--inputs", "--no-run", "-o", "--output", "-q", "--quiet", "-s", "--spec", "--static"}
FLAGS |= {"--relax", "--max-traces", "--strict", "--autograph", "-g", "--grad", "-a", "--annotate", "-t", "--time"}
FLAGS |= {"-f", "--force", "--no-relax", "-O", "--passes"}
FLAGS |= {"--without", "--list", "--source", "--drop", "--json", "--save"}


@pytest.fixture
def complete(shell, run):
    run("%load_ext limelight")

    def completions(text, cursor=None):
        with provisionalcompleter():
            return [found.text for found in shell.Completer.completions(text, len(text) if cursor is None else cursor)]

    return completions


def test_flags_of_a_cell_magic_and_nothing_else(complete):
    assert set(complete("%%stage --")) == {flag for flag in FLAGS | {"--text"} if flag.startswith("--")}
    assert complete("%%stage --no") == ["--no-relax", "--no-run"]
    assert FLAGS <= set(complete("%%stage f -"))


def test_names_of_staged_functions_come_first(complete, run):
    run("import limelight as ll\nstep = ll.function(lambda x: x)\nstart = 1\ntape = ll.GradientTape()")
    assert complete("%graph ")[0] == "step"
    assert complete("%graph st") == ["step"]
    assert complete("%trace_cache s") == ["step"]
    assert complete("%tape ta") == ["tape"]
    assert complete("t = %graph st") == ["step"]


def test_values_of_a_flag(complete, run):
    assert complete("%graph f --which ") == ["traced", "optimised", "backward"]
    assert complete("%graph f --which o") == ["optimised"]
    run("import limelight as ll\nstep = ll.function(lambda x: x)")
    assert complete("%trace_cache --would s") == complete("%explain --nan s") == ["step"]
    assert complete("%%stage -d C") == [d.short for d in ll.list_devices() if d.kind == "CPU"]


@pytest.mark.slow  # starts the completer of IPython
def test_elsewhere_ipython_completes_as_ever(complete, run):
    run("starting = 1")
    assert "starting" in complete("star")
    assert "starting" in complete("%%stage step\nstar")
    assert "%stage" in complete("%sta")
    assert "--no-run" not in complete("%%time --no")
    assert "--no-run" not in complete("x = 1\n%%stage --no"), "a cell magic stands on the first line"
    assert complete("%%time\n%%stage --no-r") == ["--no-relax", "--no-run"], "or below another"


def test_the_matcher_is_ours_alone(shell, run):
    run("%load_ext limelight")
    (matcher,) = shell.Completer.custom_matchers
    assert matcher.matcher_api_version == 2
    assert {name for magic in MAGICS for name in magic.magics["cell"]} == {
        "devices",
        "stage",
        "steps",
        "tape",
        "trace_cache",
    }
