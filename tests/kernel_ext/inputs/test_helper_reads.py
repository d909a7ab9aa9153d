"""What the notebook's own helper functions read."""

from __future__ import annotations

import functools
import math
import textwrap
import types
from typing import Any

import pytest

from limelight_kernel.inputs.helper_reads import reads_of


@pytest.fixture
def notebook() -> dict[str, Any]:
    """Globals of a notebook with helpers of every kind."""
    space: dict[str, Any] = {"__name__": "notebook", "functools": functools, "math": math}
    source = """
        scale, offset, other, mean = 2.0, 1.0, 0.0, 0.0

        def helper(x):
            return scale * x.mean()

        def outer(x):
            def inner(y):
                return offset + helper(y)
            return inner(x)

        @functools.wraps(helper)
        def wrapped(x):
            return helper(x)

        class Model:
            rate = 1.0
            def call(self, x):
                return self.part(x) * scale
            @property
            def part(self):
                return other
            @staticmethod
            def fixed():
                return offset

        class Child(Model):
            pass

        model = Child()
    """
    exec(textwrap.dedent(source), space)
    return space


def test_a_function_reads_its_globals_and_not_attributes_of_the_same_name(notebook):
    assert reads_of(notebook["helper"], notebook) == {"scale"}


def test_functions_inside_count(notebook):
    assert reads_of(notebook["outer"], notebook) == {"offset", "helper"}


def test_partials_methods_and_wrappers_are_looked_through(notebook):
    helper = notebook["helper"]
    assert reads_of(functools.partial(helper, 1), notebook) == {"scale"}
    assert reads_of(notebook["model"].call, notebook) == {"scale", "other", "offset"}  # it may call any of the others
    assert reads_of(notebook["wrapped"], notebook) == {"scale", "helper"}


def test_a_class_and_its_instances_read_what_their_methods_read(notebook):
    for value in (notebook["Model"], notebook["Child"], notebook["model"]):
        assert reads_of(value, notebook) == {"scale", "other", "offset"}


@pytest.mark.parametrize(
    "code",
    [
        "[lambda x: x * scale]",
        "{'deep': [(1, {'f': helper})]}",
        "types.SimpleNamespace(fn=helper)",
        "(lambda fn: lambda x: fn(x))(helper)",
        "lambda x, fn=helper: fn(x)",
        "lambda x, *, fn=helper: fn(x)",
        "functools.partial(map, helper)",
    ],
)
def test_functions_count_wherever_they_are_kept(notebook, code):
    notebook["types"] = types
    assert reads_of(eval(code, notebook), notebook) == {"scale"}


def test_a_container_that_leads_back_to_itself_ends(notebook):
    value = [notebook["helper"]]
    value.append(value)
    assert reads_of(value, notebook) == {"scale"}


@pytest.mark.parametrize("value", [1, "text", math, math.sin, textwrap.dedent, object(), [1, 2], None])
def test_what_was_not_written_in_the_notebook_reads_nothing(notebook, value):
    assert reads_of(value, notebook) == frozenset()


def test_names_that_the_notebook_lacks_are_left_out(notebook):
    exec("def f(): return missing, len, scale", notebook)
    assert reads_of(notebook["f"], notebook) == {"scale"}


def test_a_wrapper_around_itself_ends(notebook):
    def loop():
        pass

    loop.__wrapped__ = loop
    assert reads_of(loop, notebook) == frozenset()


def test_a_variable_that_a_helper_closes_over_has_its_name_in_the_signature(run):
    run("%load_ext limelight")
    run("import limelight as ll\nw = ll.Variable([2.0], name='w1')\ndef helper(t):\n    return t * w")
    run("x = ll.constant([1.0])")
    run("%%stage step\ny = helper(x)")
    signature = run("str(step.trace_cache[0].signature)").value
    assert "variable w1" in signature
    assert "Pinned" not in signature
