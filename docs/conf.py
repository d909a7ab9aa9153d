"""Sphinx's settings, for `make docs`: pages are Markdown, the reference's entries come from `scripts/reference.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import documentation  # from scripts
import limelight

project = "Limelight"
author = "The Limelight maintainers"
project_copyright = "The Limelight maintainers, Apache-2.0"
version = release = limelight.__version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["package_index.md"]
myst_enable_extensions = ["colon_fence", "fieldlist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["ref.python"]  # `Step` is a record of the stepper and a schedule
add_module_names = False
toc_object_entries_show_parents = "hide"
nitpicky = False
python_use_unqualified_type_names = True

html_theme = "furo"  # system fonts, light and dark, no script or font from elsewhere
html_title = "Limelight"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["limelight.css"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


def setup(app: Any) -> None:
    """Sphinx calls this."""
    documentation.connect(app)
