"""Contrast of everything written in the views, in both themes: 4.5 to 1 for text, 3 to 1 for outlines and edges."""

from __future__ import annotations

from functools import partial

from playwright.sync_api import Locator, expect

from harness.page import DARK, LIGHT, becomes, output, run_all, set_theme

PROGRAM = """\
import limelight as ll
w = ll.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
@ll.function
def inner(x):
    return ll.tanh(x)
@ll.function
def step(x):
    return ll.tanh(inner(x @ w) * 2.0) + ll.random.normal((2,))
ll.config.set_virtual_devices(CPU=2)
display(ll.widgets.devices())
step(ll.ones((3, 2)))
step(ll.ones((5, 2)))
with ll.device("cpu:1"):
    copied = w * 2.0
path = ll.Checkpoint(w=w, epoch=3, layer=ll.State(v=ll.Variable(1.0))).write("contrast.safetensors")
with ll.GradientTape() as tape:
    y = ll.sum(w * w)"""

MEASURE = """view => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const paint = (...colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const part = value => { const s = value / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ratio = (front, back) => {
    const [a, b] = [luminance(paint(...back, front)), luminance(paint(...back))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const behind = element => {
    const found = [];
    for (let at = element; at; at = at.parentElement) found.unshift(getComputedStyle(at).backgroundColor);
    return found;
  };
  const poor = [];
  const note = (kind, element, value, least) => {
    if (value < least) poor.push(`${kind} ${element.className.baseVal ?? element.className} ` +
      `"${element.textContent.slice(0, 30)}": ${value.toFixed(2)}`);
  };
  let count = 0;
  for (const element of view.querySelectorAll("*")) {
    if (element.closest("svg") || !element.checkVisibility()) continue;
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
    count += 1;
    note("text", element, ratio(getComputedStyle(element).color, behind(element)), 4.5);
  }
  for (const box of view.querySelectorAll(".ll-box")) {
    const around = behind(view.querySelector(".ll-canvas"));
    const outline = getComputedStyle(box.querySelector(".ll-outline"));
    note("outline", box, ratio(outline.stroke, around), 3);
    for (const text of box.querySelectorAll("text")) {
      count += 1;
      note("label", text, ratio(getComputedStyle(text).fill, [...around, outline.fill]), 4.5);
    }
  }
  for (const frame of view.querySelectorAll(".ll-frame")) {
    const around = behind(view.querySelector(".ll-canvas"));
    const outline = getComputedStyle(frame.querySelector(".ll-frame-outline"));
    const title = view.querySelector(`[data-title="${frame.dataset.frame}"] text`);
    note("frame", frame, ratio(outline.stroke, around), 3);
    note("title", title, ratio(getComputedStyle(title).fill, [...around, outline.fill]), 4.5);
  }
  for (const edge of view.querySelectorAll(".ll-edge")) {
    note("edge", edge, ratio(getComputedStyle(edge).stroke, behind(view.querySelector(".ll-canvas"))), 3);
  }
  return [count, poor];
}"""


def poor(view: Locator) -> list[str]:
    """What cannot be read in a view, which has something to read."""
    count, found = view.evaluate(MEASURE)
    assert count > 5
    return list(found)


def test_everything_can_be_read(open_cells):
    cells = ["graph(step)", "trace_cache(step)", "tape(tape)", "checkpoint(path, ll.Checkpoint(w=w, later=3, v=w))"]
    page = open_cells(PROGRAM, *[f"ll.widgets.{cell}" for cell in cells])
    run_all(page)
    graph = output(page, 1).locator(".ll-graph-view")
    expect(graph.locator(".ll-fused")).to_have_count(1)
    graph.locator(".ll-box").nth(2).click()
    graph.get_by_role("button", name="Keys").click()
    graph.locator(".ll-outline-pane summary").click()
    for theme in (LIGHT, DARK):
        set_theme(page, theme)
        for index, name in enumerate(["devices", "graph", "cache", "tape", "checkpoint"]):
            view = output(page, index).locator(f".ll-{name}-view")
            assert becomes(page, partial(poor, view), []) == [], (name, theme)  # colours change within 80 ms
