"""What a page's main thread did, by Chromium's own trace, and which functions took its time, by its profiler.

The trace has processor time beside time on the clock: what other programs take of a busy machine is not in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

CATEGORIES: Final = "toplevel,devtools.timeline,blink.user_timing,disabled-by-default-devtools.timeline"
SAMPLE: Final = 250  # microseconds between two samples of the profiler


@dataclass
class Tasks:
    """Tasks of a page's main thread, in milliseconds of processor time; `all` is that of all threads of Chromium."""

    longest: float = 0.0
    total: float = 0.0
    all: float = 0.0
    parts: str = ""  # what the longest task is made of
    kinds: str = ""  # and all tasks of the main thread


@contextmanager
def traced(page: Page) -> Iterator[Tasks]:
    """Fills in at the end what the page did in the block."""
    session, tasks = page.context.new_cdp_session(page), Tasks()
    config = {"includedCategories": CATEGORIES.split(","), "recordMode": "recordUntilFull"}
    session.send("Tracing.start", {"transferMode": "ReturnAsStream", "traceConfig": config})
    try:
        yield tasks
    finally:
        done: list[dict[str, Any]] = []
        session.once("Tracing.tracingComplete", lambda told: done.append(told))  # noqa: PLW0108  (it marks what it is given)
        session.send("Tracing.end")
        while not done:
            page.wait_for_timeout(20)
        text, end = [], False
        while not end:
            part = session.send("IO.read", {"handle": done[0]["stream"], "size": 1 << 22})
            text.append(part["data"])
            end = part["eof"]
        session.send("IO.close", {"handle": done[0]["stream"]})
        session.detach()
        events = json.loads("".join(text))
        _fill(tasks, events["traceEvents"] if isinstance(events, dict) else events)


def _fill(tasks: Tasks, events: list[dict[str, Any]]) -> None:
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one.get("name") == "thread_name"}
    timed = [one for one in events if one.get("ph") == "X" and "tdur" in one]
    by_thread: Counter[tuple[int, int]] = Counter()
    for one in timed:
        if one["name"].endswith("RunTask"):
            by_thread[one["pid"], one["tid"]] += one["tdur"]
    mains = [thread for thread in by_thread if names.get(thread) == "CrRendererMain"]
    if not mains:
        return
    main = max(mains, key=lambda thread: by_thread[thread])  # the page's: other renderers do nothing
    inside = [one for one in timed if (one["pid"], one["tid"]) == main]
    longest = max((one for one in inside if one["name"].endswith("RunTask")), key=lambda one: one["tdur"])
    end = longest["ts"] + longest["dur"]
    tasks.parts = _told(one for one in inside if longest["ts"] <= one["ts"] <= end)
    tasks.kinds = _told(inside)
    tasks.longest, tasks.total = longest["tdur"] / 1e3, by_thread[main] / 1e3
    tasks.all = sum(by_thread.values()) / 1e3


def _told(events: Iterable[dict[str, Any]]) -> str:
    """The kinds of work that took most, one within another, in ms."""
    parts: Counter[str] = Counter()
    for one in events:
        if not one["name"].endswith("RunTask"):
            parts[one["name"]] += one["tdur"] / 1e3
    return ", ".join(f"{name} {spent:.0f}" for name, spent in parts.most_common(12) if spent >= 2)


@contextmanager
def profiled(page: Page, path: Path | None) -> Iterator[None]:
    """Writes the functions that took most of the page's main thread to `path`, and the profile itself beside it."""
    if path is None:
        yield
        return
    session = page.context.new_cdp_session(page)
    session.send("Profiler.enable")
    session.send("Profiler.setSamplingInterval", {"interval": SAMPLE})
    session.send("Profiler.start")
    try:
        yield
    finally:
        profile = session.send("Profiler.stop")["profile"]
        session.detach()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".cpuprofile").write_text(json.dumps(profile))
        path.with_suffix(".txt").write_text("\n".join(_functions(profile)))


def _functions(profile: dict[str, Any]) -> Iterator[str]:
    """Each function with the milliseconds in it, and in what it calls."""
    nodes = {node["id"]: node for node in profile["nodes"]}
    parent = {child: node["id"] for node in profile["nodes"] for child in node.get("children", ())}
    spent: Counter[int] = Counter()
    for sample, microseconds in zip(profile["samples"], profile["timeDeltas"], strict=True):
        spent[sample] += microseconds
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for sample, microseconds in spent.items():
        chain = []
        at: int | None = sample
        while at is not None:
            frame = nodes[at]["callFrame"]
            file = frame["url"].rpartition("/")[2][:24]
            chain.append(
                f"{frame['functionName'] or '(anonymous)'} {file}:{frame['lineNumber']}:{frame['columnNumber']}"
            )
            at = parent.get(at)
        own[chain[0]] += microseconds
        for name in set(chain):
            whole[name] += microseconds
    yield "     own    whole  ms"
    for name, microseconds in whole.most_common(80):
        yield f"{own[name] / 1e3:8.1f} {microseconds / 1e3:8.1f}  {name}"
