"""The checkpoint view in JupyterLab: it follows the objects, takes the keyboard, and leaves its static forms behind."""

from __future__ import annotations

from playwright.sync_api import expect

from harness.page import DARK, LIGHT, becomes, output, run_cell, set_theme

PROGRAM = """\
%load_ext limelight
import limelight as ll
def model():
    return ll.nn.Sequential(ll.nn.Dense(16, "relu"), ll.nn.Dense(4))
trained, again = model(), model()
trained(ll.ones((1, 8)))
path = ll.Checkpoint(model=trained, epoch=3, extra=ll.State(note="x")).write("view-1.safetensors")
trained.layers[1].bias.assign_add(ll.ones((4,)))
later = ll.Checkpoint(model=trained, epoch=4).write("view-2.safetensors")
checkpoint = ll.Checkpoint(model=again, epoch=0)"""


CLIPPED = """view => [...view.querySelectorAll(".ll-window .ll-wrapped")]
  .filter(cell => cell.scrollWidth > cell.clientWidth || cell.scrollHeight > cell.clientHeight + 1 ||
    cell.getBoundingClientRect().right > view.getBoundingClientRect().right + 1)
  .map(cell => cell.textContent)"""
"""Reasons that are cut, or beyond the view's edge."""


def test_a_match_follows_the_objects(open_cells, picture):
    asked = ["%checkpoint view-1.safetensors checkpoint", "%checkpoint path later"]
    page = open_cells(PROGRAM, *asked, "again(ll.ones((1, 8)));")
    for index in range(3):
        run_cell(page, index)
    view = output(page, 1).locator(".ll-checkpoint-view")
    expect(view.locator(".ll-title")).to_contain_text("1 matched, 5 waiting")
    page.set_viewport_size({"width": 1280, "height": 720})
    assert becomes(page, lambda: view.evaluate(CLIPPED), []) == []
    view.locator(".ll-window").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(view.locator(".ll-row-detail")).to_contain_text("until Dense has")
    other = output(page, 2).locator(".ll-checkpoint-view")
    expect(other.locator(".ll-title")).to_contain_text("1 removed, 2 changed, 3 equal")
    only = other.get_by_role("button", name="2 changed")
    only.focus()
    page.keyboard.press("Enter")
    expect(only).to_have_attribute("aria-pressed", "true")
    expect(other.locator(".ll-window [role=row]")).to_have_count(2)
    run_cell(page, 3)
    expect(view.locator(".ll-title")).to_contain_text("5 matched, 1 waiting")
    expect(view.locator(".ll-row-detail")).to_contain_text("model/layers/0/kernel")
    for theme in (LIGHT, DARK):
        set_theme(page, theme)
        picture(page, f"checkpoint-{theme.rpartition(' ')[2].lower()}")
