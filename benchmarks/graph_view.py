"""What the graph view costs on large graphs, in a real JupyterLab with a real Chromium, software-rendered.

    python benchmarks/graph_view.py [chain wide loop layers] [--sizes 1000 10000 100000] [--json FILE]

For each kind of program and number of ops: the seconds from the start of the cell that shows a function (traced
before) to the frame in which its boxes are on the screen, of which `python` are spent in the kernel; the kilobytes that
go to the page; the longest task of the page's main thread meanwhile; and the 95th percentile of the times between
frames while the picture is dragged. The same again for what "Open all" draws. One run each: a busy machine shows, so
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
from playwright.sync_api import BrowserContext, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from harness import chromium, server
from harness import page as lab

KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
SIZES = (1_000, 10_000, 100_000)
BARS = {1_000: 0.5, 10_000: 1.5, 100_000: 4.0}
PAN, TASK = 33.0, 50.0  # milliseconds

IMPORTS = """\
import json, random, time
import limelight as ll
from limelight import nn
from limelight_widgets.live import wire
ll.widgets.graph(ll.function(lambda x: x)).state()
"""
PROGRAMS = {
    "chain": """\
random.seed(7)
steps = random.choices([ll.tanh, ll.sin, ll.cos, ll.exp, ll.sigmoid], k={n})
@ll.function
def program(x):
    for step in steps:
        x = step(x)
    return x
program(ll.ones((2, 2)));""",
    "wide": """\
@ll.function
def program(x):
    row = [ll.sin(x * float(k)) for k in range({n} // 3)]
    while len(row) > 1:
        row = [ll.add(*row[k : k + 2]) if k + 1 < len(row) else row[k] for k in range(0, len(row), 2)]
    return row[0]
program(ll.ones((2, 2)));""",
    "loop": """\
@ll.function
def program(x):
    for _ in range({n} // 2):
        x = ll.tanh(x * 1.0001)
    return ll.sum(x)
program(ll.ones((2, 2)));""",
    "layers": """\
width = max({n} // 1000, 1)
class Layer(nn.Module):
    def __init__(self):
        self.denses = [nn.Dense(2, activation="tanh") for _ in range(width)]
    def call(self, x):
        for dense in self.denses:
            x = x + dense(x)
        return x
net = nn.Sequential(*(Layer() for _ in range(100)))
net(ll.ones((2, 2)))
@ll.function
def program(x):
    with ll.GradientTape() as tape:
        loss = ll.sum(net(x))
    return tape.gradient(loss, net.trainable_variables)
program(ll.ones((2, 2)));""",
}
KERNEL_COST = """\
start = time.perf_counter()
view = ll.widgets.graph(program)
folded = time.perf_counter()
view.static().bundle()
drawn = time.perf_counter()
packed = sum(len(part) for part in wire.pack(view.state()))
print(json.dumps({"ops": len(view.state()["graphs"][0]["nodes"]), "fold": folded - start, "picture": drawn - folded,
    "pack": time.perf_counter() - drawn, "kilobytes": packed / 1000}))"""

RUN = """index => new Promise(resolve => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = index;
  const cell = notebook.widgets[index].node;
  const tasks = [];
  const watch = new PerformanceObserver(list => tasks.push(...list.getEntries().map(entry => entry.duration)));
  watch.observe({ type: "longtask" });
  const start = performance.now();
  const look = () => {
    if (!cell.querySelector(".ll-picture .ll-box, .ll-picture canvas")) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(now => setTimeout(() => {
      watch.disconnect();
      const boxes = cell.querySelectorAll(".ll-box").length;
      resolve({ seconds: (now - start) / 1000, task: Math.max(0, ...tasks), boxes });
    }, 60)));
  };
  window.jupyterapp.commands.execute("notebook:run-cell");
  look();
})"""
OPEN_ALL = """view => new Promise(resolve => {
  const tasks = [];
  const watch = new PerformanceObserver(list => tasks.push(...list.getEntries().map(entry => entry.duration)));
  watch.observe({ type: "longtask" });
  const status = view.querySelector("[role=status]");
  status.textContent = "";
  const start = performance.now();
  view.querySelector("[aria-label='Open all groups and functions']").click();
  const look = () => {
    if (!/opened/.test(status.textContent)) return requestAnimationFrame(look);
    requestAnimationFrame(() => requestAnimationFrame(now => setTimeout(() => {
      watch.disconnect();
      const boxes = view.querySelectorAll(".ll-box").length;
      resolve({ seconds: (now - start) / 1000, task: Math.max(0, ...tasks), boxes });
    }, 60)));
  };
  look();
})"""
PAN_FRAMES = """view => new Promise(resolve => {
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


def measured(context: BrowserContext, running: server.LabServer, kind: str, size: int) -> dict[str, Any]:
    """One row of the table."""
    sources = (IMPORTS, PROGRAMS[kind].replace("{n}", str(size)), "ll.widgets.graph(program)", KERNEL_COST)
    with opened(context, running, f"{kind}-{size}.ipynb", *sources) as page:
        page.wait_for_timeout(500)
        shown = page.evaluate(RUN, 2)
        lab.wait_idle(page)
        view = lab.output(page, 2).locator(".ll-graph-view").first
        view.evaluate("view => view.scrollIntoView({block: 'center'})")
        page.wait_for_timeout(500)
        shown["pan"] = view.evaluate(PAN_FRAMES)
        open_all = view.evaluate(OPEN_ALL)
        page.wait_for_timeout(500)
        open_all["pan"] = view.evaluate(PAN_FRAMES)
        lab.run_cell(page, 3)
        kernel = json.loads(lab.output(page, 3).inner_text())
    return {"kind": kind, "size": size, "kernel": kernel, "shown": shown, "opened": open_all}


def line(row: dict[str, Any]) -> str:
    """The row as text; what misses a bar is marked."""
    kernel, shown, opened = row["kernel"], row["shown"], row["opened"]
    limit = BARS.get(row["size"], float("inf"))

    def part(one: dict[str, Any]) -> str:
        told = ((one["seconds"], limit, "7.2f"), (one["task"], TASK, "7.0f"), (one["pan"], PAN, "6.0f"))
        return f"{one['boxes']:6,}" + "".join(
            f"{value:{form}}{'!' if value > bar else ' '}" for value, bar, form in told
        )

    python = kernel["fold"] + kernel["picture"] + kernel["pack"]
    return (
        f"{row['kind']:7}{kernel['ops']:8,}{kernel['fold']:6.2f}{kernel['picture']:6.2f}{kernel['pack']:6.2f}{python:7.2f}"
        f"{kernel['kilobytes']:8,.0f} |{part(shown)}|{part(opened)}"
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    print(f"{platform.platform()}, {os.cpu_count()} cores, CPython {platform.python_version()}; load {os.getloadavg()}")
    print("                kernel, s                          | as it is shown              | all opened")
    print("kind        ops  fold picture pack  all      kB | boxes  drawn   task   pan | boxes  drawn   task   pan")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root, state, profile = (Path(folder) / name for name in ("notebooks", "state", "profile"))
        root.mkdir()
        with (
            server.running(root, state, Path(folder) / "log") as running,
            lab.browser(chromium.ensure(), profile) as context,
        ):
            for size in chosen.sizes:
                for kind in chosen.kinds:
                    rows.append(measured(context, running, kind, size))
                    print(line(rows[-1]), flush=True)
    print(f"load after: {os.getloadavg()}")
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
