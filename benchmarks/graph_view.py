"""What the graph view costs on large graphs, in a real JupyterLab with a real Chromium, software-rendered.

    python benchmarks/graph_view.py [KIND ...] [--sizes 1000 10000 100000] [--profile FOLDER] [--json FILE]

For each kind of program (`graph_programs`) and number of ops: the seconds from the start of the cell that shows a
function (traced before) to the frame in which its boxes are on the screen; the processor seconds of that, in the kernel
and in the page's main thread, without what other programs took; the kilobytes that go to the page; the milliseconds
from a click on a box to the frame that shows it chosen; the longest task of the main thread, in processor time; and the
95th percentile of the times between frames while the picture is dragged, and while it is zoomed, with the processor
time of the main thread for a frame. The same again for what "Open all" draws. One run each: a busy machine shows, so
the load stands above the table. Bars: drawn in 0.5, 1.5 and 4 s; dragging 33 ms; tasks 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import BrowserContext, Locator, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from chromium_trace import profiled, traced
from graph_programs import BY_SIZE, IMPORTS, OF_ONE_SIZE
from harness import chromium, server
from harness import page as lab

KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
SIZES = (1_000, 10_000, 100_000)
BARS = {1_000: 0.5, 10_000: 1.5, 100_000: 4.0}
FRAME, TASK = 33.0, 50.0  # milliseconds

KERNEL_COST = """\
start = time.process_time()
view = ll.widgets.graph(program)
folded = time.process_time()
shown = view._shown()
view.static().bundle()
drawn = time.process_time()
packed = sum(len(part) for part in wire.pack(shown))
print(json.dumps({"ops": len(shown["graphs"][0]["nodes"]), "fold": folded - start, "picture": drawn - folded,
    "pack": time.process_time() - drawn, "kilobytes": packed / 1000}))"""

RUN = """index => new Promise(resolve => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = index;
  const cell = notebook.widgets[index].node;
  const start = performance.now();
  const told = new MutationObserver(() => {  // to look in each frame would be most of what the page does meanwhile
    if (!cell.querySelector(".ll-picture .ll-box, .ll-picture canvas")) return;
    told.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(now => setTimeout(() => {
      resolve({ seconds: (now - start) / 1000, boxes: cell.querySelectorAll(".ll-box").length });
    }, 60)));
  });
  told.observe(cell, { childList: true, subtree: true });
  window.jupyterapp.commands.execute("notebook:run-cell");
})"""
CLICK = """view => new Promise(resolve => {
  const boxes = view.querySelectorAll(".ll-box");
  const box = boxes[boxes.length >> 1];
  const start = performance.now();
  for (const [type, kind] of [["pointerdown", PointerEvent], ["pointerup", PointerEvent], ["click", MouseEvent]])
    box.dispatchEvent(new kind(type, { button: 0, bubbles: true }));
  const look = () => {
    if (!box.classList.contains("ll-chosen")) return requestAnimationFrame(look);
    requestAnimationFrame(now => setTimeout(() => resolve(performance.now() - start)));
  };
  look();
})"""
OPEN_ALL = """view => new Promise(resolve => {
  const status = view.querySelector("[role=status]");
  status.textContent = "";
  const start = performance.now();
  view.querySelector("[aria-label='Open all groups and functions']").click();
  const look = () => {
    if (!/opened/.test(status.textContent)) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(now => setTimeout(() => {
      resolve({ seconds: (now - start) / 1000, boxes: view.querySelectorAll(".ll-box").length });
    }, 60)));
  };
  look();
})"""
DRAG_FRAMES = """view => new Promise(resolve => {
  const svg = view.querySelector(".ll-picture");
  const { left, top, width, height } = svg.getBoundingClientRect();
  const at = k => ({ clientX: left + width / 2 + 90 * Math.sin(k / 5), clientY: top + height / 2 + 60 * Math.cos(k / 7),
    button: 0, pointerId: 1, bubbles: true });
  svg.dispatchEvent(new PointerEvent("pointerdown", at(0)));
  const frames = [];
  let last = 0, count = 0;
  const move = now => {
    if (last) frames.push(now - last);
    last = now;
    window.dispatchEvent(new PointerEvent("pointermove", at(++count)));
    if (count < 90) return requestAnimationFrame(move);
    window.dispatchEvent(new PointerEvent("pointerup", at(count)));
    frames.sort((a, b) => a - b);
    resolve(frames[Math.floor(frames.length * 0.95)]);
  };
  requestAnimationFrame(move);
})"""
ZOOM_FRAMES = """view => new Promise(resolve => {
  const svg = view.querySelector(".ll-picture");
  const { left, top, width, height } = svg.getBoundingClientRect();
  const turn = deltaY => svg.dispatchEvent(new WheelEvent("wheel",
    { clientX: left + width / 2, clientY: top + height / 2, deltaY, ctrlKey: true, bubbles: true, cancelable: true }));
  const frames = [];
  let last = 0, count = 0;
  const move = now => {
    if (last) frames.push(now - last);
    last = now;
    turn(count++ % 60 < 30 ? -40 : 40);
    if (count < 60) return requestAnimationFrame(move);
    frames.sort((a, b) => a - b);
    resolve(frames[Math.floor(frames.length * 0.95)]);
  };
  requestAnimationFrame(move);
})"""
FRAMES = {"drag": (DRAG_FRAMES, 90), "zoom": (ZOOM_FRAMES, 60)}


@contextmanager
def opened(context: BrowserContext, running: server.LabServer, name: str, *sources: str) -> Iterator[Page]:
    """A page with a notebook of code cells, the first two of which are run."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL}), running.root / name)
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 720})
    lab.open_notebook(page, running, name)
    try:
        for index in (0, 1):
            lab.run_cell(page, index)
        yield page
    finally:
        page.close()


def moved(view: Locator) -> dict[str, Any]:
    """Frames while the picture is dragged and zoomed: the 95th percentile, and processor time for each."""
    found: dict[str, Any] = {}
    for name, (script, frames) in FRAMES.items():
        with traced(view.page) as tasks:
            found[name] = view.evaluate(script)
        found[f"{name}_main"], found[f"{name}_all"] = tasks.total / frames, tasks.all / frames
        found[f"{name}_kinds"] = tasks.kinds
    return found


def measured(
    context: BrowserContext, running: server.LabServer, kind: str, size: int, folder: Path | None
) -> dict[str, Any]:
    """One row of the table."""
    program = {**BY_SIZE, **OF_ONE_SIZE}[kind].replace("{n}", str(size))
    sources = (IMPORTS, program, "ll.widgets.graph(program)", KERNEL_COST)

    def profile(part: str) -> Path | None:
        return folder / f"{kind}-{size}-{part}" if folder else None

    with opened(context, running, f"{kind}-{size}.ipynb", *sources) as page:
        page.wait_for_timeout(500)
        with traced(page) as tasks, profiled(page, profile("shown")):
            shown = page.evaluate(RUN, 2)
        shown |= {"main": tasks.total / 1e3, "task": tasks.longest, "parts": tasks.parts}
        lab.wait_idle(page)
        view = lab.output(page, 2).locator(".ll-graph-view").first
        view.evaluate("view => view.scrollIntoView({block: 'center'})")
        page.wait_for_timeout(500)
        shown |= moved(view)
        shown["click"] = view.evaluate(CLICK)
        with traced(page) as tasks, profiled(page, profile("opened")):
            open_all = view.evaluate(OPEN_ALL)
        open_all |= {"main": tasks.total / 1e3, "task": tasks.longest, "parts": tasks.parts}
        page.wait_for_timeout(500)
        with profiled(page, profile("opened-moved")):
            open_all |= moved(view)
        open_all["click"] = view.evaluate(CLICK)
        lab.run_cell(page, 3)
        kernel = json.loads(lab.output(page, 3).inner_text())
    return {"kind": kind, "size": size, "kernel": kernel, "shown": shown, "opened": open_all}


def line(row: dict[str, Any]) -> str:
    """The row as text; what misses a bar is marked."""
    kernel, shown, opened = row["kernel"], row["shown"], row["opened"]
    limit = BARS.get(row["size"], float("inf"))

    def part(one: dict[str, Any]) -> str:
        told = (
            (one["seconds"], limit, "6.2f"), (one["main"], limit, "6.2f"), (one["task"], TASK, "6.0f"),
            (one["click"], 100.0, "5.0f"), (one["drag"], FRAME, "5.0f"), (one["drag_main"], FRAME, "5.1f"),
            (one["zoom"], FRAME, "5.0f"), (one["zoom_main"], FRAME, "5.1f"),
        )  # fmt: skip
        return f"{one['boxes']:6,}" + "".join(
            f"{value:{form}}{'!' if value > bar else ' '}" for value, bar, form in told
        )

    python = kernel["fold"] + kernel["picture"] + kernel["pack"]
    return (
        f"{row['kind']:11}{kernel['ops']:8,}{kernel['fold']:6.2f}{kernel['picture']:6.2f}{kernel['pack']:6.2f}{python:6.2f}"
        f"{kernel['kilobytes']:7,.0f} |{part(shown)}|{part(opened)}"
    )


HEAD = """\
                   kernel, processor s            | as it is shown: s, ms, ms a frame                    | opened:
kind           ops  fold pictr  pack   all    kB | boxes drawn   main   task click  drag main  zoom main | the same"""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=[*BY_SIZE, *OF_ONE_SIZE])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--profile", type=Path, help="a folder for profiles of the page's main thread")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    print(f"{platform.platform()}, {os.cpu_count()} cores, CPython {platform.python_version()}; load {os.getloadavg()}")
    print(HEAD)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root, state, profile = (Path(folder) / name for name in ("notebooks", "state", "profile"))
        root.mkdir()
        with (
            server.running(root, state, Path(folder) / "log") as running,
            lab.browser(chromium.ensure(), profile) as context,
        ):
            sized = [(kind, size) for size in chosen.sizes for kind in chosen.kinds if kind in BY_SIZE]
            for kind, size in [*sized, *((kind, 10_000) for kind in chosen.kinds if kind in OF_ONE_SIZE)]:
                rows.append(measured(context, running, kind, size, chosen.profile))
                print(line(rows[-1]), flush=True)
    print(f"load after: {os.getloadavg()}")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
