"""autograph=True: names that conversion adds meet none of the user's."""

from __future__ import annotations

import ast
import importlib.util

import pytest

import limelight as ll
from limelight.autograph import converted_cell

SOURCE = """
def NAME1(x):
    return x + 1 if x > 0 else x - 1

def f(x):
    NAME2 = 0.0
    for NAME3 in range(3):
        if x > 100:
            break
        if NAME3 == 1:
            continue
        NAME2 = NAME2 + NAME1(x)
    while 0 <= NAME2 < 10:
        NAME2 = NAME2 * 2 + 1
        if NAME2 > 8:
            return NAME2
    g = lambda NAME4: (NAME4 if NAME4 > 0 else -NAME4)
    def NAME5(y):
        if y > 2:
            return y
        return g(y) + NAME2
    return NAME5(x)
"""
TAKEN = ["ag__", "ag__f", "factory", "cells", "cell", "break_", "continue_", "do_return", "retval_", "get_state"]
TAKEN += ["set_state_1", "if_body", "else_body", "loop_body", "itr", "fscope", "lscope", "break__1"]


def made(tmp_path, text, name="names"):
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # a large function
@pytest.mark.parametrize("first", range(0, len(TAKEN), 3))
def test_any_names_may_be_the_users(tmp_path, first):
    text = SOURCE
    for i in range(5):
        text = text.replace(f"NAME{i + 1}", TAKEN[(first + i) % len(TAKEN)])
    module = made(tmp_path, text)
    staged = ll.function(module.f, autograph=True)
    for x in map(ll.constant, (1.0, 3.0, 200.0)):
        assert float(staged(x)) == float(module.f(x))


@pytest.mark.parametrize("name", ["ag__", "factory", "cells"])
def test_a_function_may_bear_a_name_that_conversion_uses(tmp_path, name):
    text = f"def {name}(x):\n    if x > 0:\n        return x\n    return -x\n\ndef f(x):\n    return {name}(x)\n"
    module = made(tmp_path, text)
    for function in (module.f, getattr(module, name)):
        assert ll.function(function, autograph=True)(ll.constant(-2.0)).item() == 2.0


@pytest.mark.parametrize("name", ["break_even", "continue_to", "do_return_it", "retval_1"])
def test_a_variable_that_reads_like_a_flag_is_a_variable(tmp_path, name):
    """It would be zeros where the branch is not taken."""
    f = made(tmp_path, f"def f(x):\n    if x > 0:\n        {name} = x\n    return {name}\n").f
    with pytest.raises(UnboundLocalError, match=f"`{name}` has no value here"):
        ll.function(f, autograph=True)(ll.constant(-1.0))


def test_a_cell_may_use_a_name_called_cell():
    cell = converted_cell(ast.parse("if cell(x) > 0: y = x\nelse: y = -x\ny + ag__"), "<cell>")
    assert ll.function(lambda x: cell({"x": x, "cell": ll.tanh, "ag__": 1.0}))(ll.constant(-2.0)).item() == 3.0
