"""Numbers on the lines of magics: what only looks like one is refused in words."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%trace_cache f --why \u00b2", "'\u00b2' is no number of a trace"),
        ("%graph f --pass \u00b2", "no such pass has changed the graph"),
        ("%graph f --depth -1", "--depth -1: groups are open"),
        ("%steps f(x) --break line:\u00b2", "a step to stop at is"),
        ("%stageconfig theme=pink", "theme is auto, light or dark, not 'pink'$"),
        ("%stageconfig them=dark", "did you mean 'theme'"),
    ],
)
def test_what_is_no_number_and_no_setting(run, line, said):
    run("%load_ext limelight")
    run("import limelight as ll\nf = ll.function(lambda x: x * 2)\nx = ll.ones(3)\nf(x);")
    with pytest.raises(UsageError, match=said):
        raise run(line, fails=True).error
