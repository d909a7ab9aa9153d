"""Tensors are tiles where a cell shows them, and only while the extension is loaded."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

import limelight as ll
from limelight_kernel import extension

MIMES = ["text/plain", "text/html"]


def html(shell: InteractiveShell, x):
    data, _ = shell.display_formatter.format(x, include=MIMES)
    assert data["text/plain"] == repr(x)
    return data.get("text/html")


def test_tensors_and_variables_are_tiles_while_the_extension_is_loaded(shell):
    x, w = ll.ones((40, 40)), ll.Variable(ll.ones((40, 40)), name="w")
    assert html(shell, x) is None
    extension.load_ipython_extension(shell)
    assert "f32[40,40]" in html(shell, x)
    assert "w" in html(shell, w)
    assert html(shell, ll.ones((3,))) is None
    extension.unload_ipython_extension(shell)
    assert html(shell, x) is None
    assert html(shell, w) is None


def test_a_formatter_of_the_users_comes_back(shell):
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(ll.Tensor, lambda x: "mine")
    extension.load_ipython_extension(shell)
    assert "f32[40,40]" in html(shell, ll.ones((40, 40)))
    extension.unload_ipython_extension(shell)
    assert html(shell, ll.ones((40, 40))) == "mine"


def test_what_replaced_a_tile_stays(shell):
    extension.load_ipython_extension(shell)
    shell.display_formatter.formatters["text/html"].for_type(ll.Tensor, lambda x: "theirs")
    extension.unload_ipython_extension(shell)
    assert html(shell, ll.ones((40, 40))) == "theirs"
