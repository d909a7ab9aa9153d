"""How the graphs of real models open: all of them in sight, no text below 11 pixels, no box on another."""

from __future__ import annotations

import pytest

from harness.page import DARK, LIGHT, output, run_all, set_theme
from harness.programs import IMPORTS, PROGRAMS

WINDOWS = ((1280, 720), (1920, 1080))
LEAST_TYPE = 11
SHARE = 0.95
MEASURE = """view => {
  const canvas = view.querySelector(".ll-canvas").getBoundingClientRect();
  const boxes = [...view.querySelectorAll(".ll-box .ll-outline")].map(box => box.getBoundingClientRect());
  const inside = ({ left, right, top, bottom }) =>
    left >= canvas.left - 1 && right <= canvas.right + 1 && top >= canvas.top - 1 && bottom <= canvas.bottom + 1;
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const scale = view.querySelector(".ll-picture > g").getCTM().a;
  const texts = [...view.querySelectorAll(".ll-picture text")]
    .filter(text => text.checkVisibility({ visibilityProperty: true }) && text.textContent.trim());
  const spills = [...view.querySelectorAll(".ll-box")].filter(box => {
    const { left, right } = box.querySelector(".ll-outline").getBoundingClientRect();
    return [...box.querySelectorAll("text")].some(text => {
      const place = text.getBoundingClientRect();
      return place.width && (place.left < left - 1 || place.right > right + 1);
    });
  });
  return {
    boxes: boxes.length, seen: boxes.filter(inside).length, spills: spills.map(box => box.textContent),
    overlaps: boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => over(a, b))).length,
    type: Math.min(...texts.map(text => parseFloat(getComputedStyle(text).fontSize) * scale)),
  };
}"""
SETTLED = """view => new Promise(resolve => {
  const corner = () => view.querySelector(".ll-picture > g").getAttribute("transform") + view.clientWidth;
  let [last, same] = [corner(), 0];
  const look = () => {
    const now = corner();
    [last, same] = [now, now === last ? same + 1 : 0];
    if (same > 12) resolve(); else requestAnimationFrame(look);
  };
  look();
})"""


@pytest.fixture
def views(open_cells):
    """One page with all programs: gives the window's page, and each program's view by name."""
    page = open_cells(
        IMPORTS, *(cell for name, code in PROGRAMS.items() for cell in (code, f"ll.widgets.graph({name})"))
    )
    page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    run_all(page)

    def view(name):
        at = 2 + 2 * list(PROGRAMS).index(name)
        found = output(page, at).locator(".ll-graph-view").first
        found.scroll_into_view_if_needed()
        found.locator(".ll-box").first.wait_for()
        found.evaluate(SETTLED)
        return found

    return page, view


def legible(view):
    """What is wrong with how a view is seen: nothing, if all is well."""
    found = view.evaluate(MEASURE)
    problems = [f"{found['overlaps']} overlaps"] if found["overlaps"] else []
    problems += [f"spills: {found['spills']}"] if found["spills"] else []
    if found["seen"] < SHARE * found["boxes"]:
        problems.append(f"{found['seen']} of {found['boxes']} boxes in sight")
    if found["type"] < LEAST_TYPE - 0.05:
        problems.append(f"type of {found['type']:.1f} pixels")
    return problems


def test_models_open_in_sight(views, picture) -> None:
    page, view = views
    problems = {}
    for theme in (LIGHT, DARK):
        set_theme(page, theme)
        for width, height in WINDOWS:
            page.set_viewport_size({"width": width, "height": height})
            for name in PROGRAMS:
                found = legible(view(name))
                if found:
                    problems[name, theme, width] = found
                if height == WINDOWS[0][1]:
                    picture(view(name), f"first-sight-{name}-{'dark' if theme == DARK else 'light'}")
    assert problems == {}
    page.set_viewport_size({"width": WINDOWS[0][0], "height": WINDOWS[0][1]})
    is_read_opened_and_lit(page, view("transformer"))
    is_projected(page, view("convolutional"), picture)


def is_read_opened_and_lit(page, shown) -> None:
    """Layers and their number, the optimiser, what is kept; what is opened stays; gradients are lit."""
    assert "blocks" in shown.locator(".ll-box.ll-group", has_text="×4").first.text_content()
    assert "69 variables" in shown.locator(".ll-box", has_text="Adam").first.text_content()
    assert shown.locator(".ll-saved").count() >= 2

    box = shown.locator(".ll-box", has_text="×4").first
    name = box.get_attribute("data-box")
    box.locator(".ll-opener").hover()  # which scrolls the page
    before = box.locator(".ll-outline").bounding_box()
    box.locator(".ll-opener").click()
    frame = shown.locator(f'.ll-frame[data-frame="{name}"] .ll-frame-outline')
    after = frame.bounding_box()
    assert abs(after["x"] - before["x"]) < 1
    assert abs(after["y"] - before["y"]) < 1
    shown.get_by_role("button", name="Close all groups and functions").click()

    shown.locator(".ll-strip-forward").first.wait_for()
    shown.locator(".ll-box.ll-group", has_text="head").first.click()
    assert shown.locator(".ll-mirrored").count() == 1
    assert "head" in shown.locator(".ll-details").text_content()
    page.keyboard.press("Escape")


def is_projected(page, shown, picture) -> None:
    """Larger type, and still all in sight."""
    shown.get_by_role("button", name="Larger type").click()
    shown.evaluate(SETTLED)
    assert shown.evaluate(MEASURE)["type"] >= LEAST_TYPE - 0.05
    assert legible(shown) == []
    assert shown.evaluate("view => view.currentCSSZoom") > 1.3
    picture(page, "first-sight-projector")
