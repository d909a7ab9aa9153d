"""The views by the name of the engine: `ll.widgets`, and `import limelight.widgets`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import limelight_widgets


def test_the_views_are_imported_by_the_name_that_they_are_known_by():
    import limelight.widgets as views
    from limelight.widgets import VIEWS, graph

    assert VIEWS is limelight_widgets.VIEWS
    assert graph is limelight_widgets.graph is views.graph
    assert dir(views) == dir(limelight_widgets)
    with pytest.raises(AttributeError, match=r"'limelight.widgets' has no attribute 'grph'"):
        views.grph  # noqa: B018  # an attribute that is asked for
    with pytest.raises(ModuleNotFoundError, match=r"'limelight\.widgets' is not a package"):
        import limelight.widgets.views  # noqa: F401  # their own modules have one name


def test_all_names_come_with_a_star_and_the_engine_loads_none_of_it():
    code = (
        "import sys, limelight as ll; assert 'limelight_widgets' not in sys.modules; "
        "from limelight.widgets import *; assert trace_cache is ll.widgets.trace_cache; ll.widgets.TapeView"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
