"""The dashboard in a page, and a program that has something for each of its views."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

PROGRAM = """\
%load_ext limelight
import limelight as ll
w = ll.Variable(ll.ones((8, 4)), name="kernel")

@ll.function
def predict(x):
    h = x @ w
    return ll.tanh(h)

@ll.function
def double(x):
    return x * 2.0

double(ll.ones((2,)))
for n in (2, 3):
    predict(ll.ones((n, 8)))
with ll.GradientTape() as tape:
    y = ll.sum(ll.tanh(w * 2.0))"""


def docked(page: Page) -> Locator:
    """The dashboard beside the notebook, of which there is one."""
    panel = page.locator(".ll-docked .ll-dashboard")
    expect(panel).to_have_count(1)
    return panel
