"""How a graph view is seen: what share of its boxes is in sight, how small its type is, whether boxes lie on others."""

from __future__ import annotations

from playwright.sync_api import Locator, ViewportSize

LEAST_TYPE = 11
SHARE = 0.95
ENLARGED: ViewportSize = {"width": 640, "height": 360}
"""What 1280 x 720 is to a page at 200 %."""
LOST = """root => {
  const view = root.getBoundingClientRect();
  const scrolls = (element) => {
    for (let at = element.parentElement; at && at !== root; at = at.parentElement)
      if (/auto|scroll/.test(getComputedStyle(at).overflowX) || at.closest("svg")) return true;
    return false;
  };
  const wrong = [];
  for (const element of root.querySelectorAll("button, h2, h3, summary, th, select, input, label, p")) {
    const seen = element.checkVisibility({ visibilityProperty: true });
    if (!seen || element.closest(".ll-sr, [aria-hidden='true']")) continue;
    const { left, right, width } = element.getBoundingClientRect();
    if (width > 1 && (left < view.left - 1 || right > view.right + 1) && !scrolls(element))
      wrong.push(`${element.tagName} ${element.textContent.slice(0, 30)}: to ${right - view.left} of ${view.width}`);
  }
  if (root.scrollWidth > root.clientWidth + 1) wrong.push(`it scrolls: ${root.scrollWidth} of ${root.clientWidth}`);
  return wrong;
}"""
"""What of a view is cut off: controls and headings beyond its sides."""
_MEASURE = """view => {
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
_COVERED = """view => {
  const [canvas, side] = [".ll-canvas", ".ll-side"].map(one => view.querySelector(one).getBoundingClientRect());
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return [...view.querySelectorAll(".ll-box")].filter(box => {
    const place = box.querySelector(".ll-outline").getBoundingClientRect();
    const { left, right, top, bottom } = place;
    const across = left < canvas.left - 1 || right > canvas.right + 1;
    const beyond = across || top < canvas.top - 1 || bottom > canvas.bottom + 1;
    return beyond || (side.width && meet(place, side));
  }).map(box => box.dataset.box);
}"""
_SETTLED = """view => new Promise(resolve => {
  const corner = () => view.querySelector(".ll-picture > g").getAttribute("transform") + view.clientWidth;
  let [last, same] = [corner(), 0];
  const look = () => {
    const now = corner();
    [last, same] = [now, now === last ? same + 1 : 0];
    if (same > 12) resolve(); else requestAnimationFrame(look);
  };
  look();
})"""


def settle(view: Locator) -> Locator:
    """Wait until the picture of a graph view stands still."""
    view.scroll_into_view_if_needed()
    view.locator(".ll-box").first.wait_for()
    view.evaluate(_SETTLED)
    return view


def out_of_sight(view: Locator) -> list[str]:
    """The boxes of a graph view that are beyond its edges, or below the panel beside it, in part at least."""
    return list(view.evaluate(_COVERED))


def smallest_type(view: Locator) -> float:
    """The smallest type of a graph view, in pixels of the screen."""
    return float(view.evaluate(_MEASURE)["type"])


def problems(view: Locator) -> list[str]:
    """What is wrong with how a view is seen: nothing, if all is well."""
    found = view.evaluate(_MEASURE)
    told = [f"{found['overlaps']} overlaps"] if found["overlaps"] else []
    told += [f"spills: {found['spills']}"] if found["spills"] else []
    if found["seen"] < SHARE * found["boxes"]:
        told.append(f"{found['seen']} of {found['boxes']} boxes in sight")
    if found["type"] < LEAST_TYPE - 0.05:
        told.append(f"type of {found['type']:.1f} pixels")
    return told
