"""What axe finds wrong on a page: names, roles, contrast."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page

from harness.page import becomes

AXE = Path(__file__).parents[2] / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"


def violations(page: Page, root: str) -> list[str]:
    """What axe finds in what `root` selects, and goes on to find: colours take a moment to change with the theme.

    Without axe (`npm ci` in widgets/js) nothing is looked for.
    """
    if not AXE.is_file():
        return []
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    return list(becomes(page, lambda: _found(page, root), []))


def _found(page: Page, root: str) -> list[str]:
    found = page.evaluate("root => axe.run(root).then(({violations}) => violations)", root)
    return [f"{one['id']}: {json.dumps([node['html'][:200] for node in one['nodes']])}" for one in found]
