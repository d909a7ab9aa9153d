"""The warning of a split that is another one in each pass: `skip` behind a `shuffle` that draws a new order each time.

`shuffled.take(n)` and `shuffled.skip(n)` look like elements to validate on and elements to train on. After the first
pass they are not: what was held out is trained on, nothing fails, and the figures are too good.
"""

from __future__ import annotations

from limelight.data.cache import Cache
from limelight.data.combinators import Part, Repeat
from limelight.data.shuffle import Shuffle
from limelight.data.stage import Stage
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at


def warn_of_new_split(part: Part) -> None:
    """Warns at the user's line where the elements that `part` leaves out are others in each pass: UserWarning."""
    shuffle = _reshuffling(part.sources[0])
    line = source_line.user_line()
    if shuffle is None or line is None or not part.start:
        return
    order = f"shuffle({shuffle.settings})"
    fixed = f"shuffle({', '.join(filter(None, [shuffle.settings, 'reshuffle=False']))})"
    message = (
        f"skip({part.start}): {order} draws another order for each pass, so each leaves out other elements, and what "
        f"take({part.start}) gives in one is not left out in the next{source_line.at(line)}. For a split write "
        f"{fixed}, or take and skip before the shuffle"
    )
    warn_at(line, message, UserWarning)


def _reshuffling(stage: Stage) -> Shuffle | None:
    """The last stage that draws a new order for each pass; none behind what keeps one, or joins passes to a stream."""
    if isinstance(stage, Shuffle) and stage.reshuffle:
        return stage
    if isinstance(stage, (Cache, Repeat)):
        return None
    return next(filter(None, map(_reshuffling, stage.sources)), None)
