"""What is said where no code mends a call: which numbers could not be tensors, and which keys a dictionary lacks."""

from __future__ import annotations

from collections.abc import Sequence

from limelight.explain.retracing.causes import ADVICE, Cause
from limelight.explain.retracing.containers import advice_on_count, advice_on_kind
from limelight.explain.retracing.fix_context import MOST, FixContext
from limelight.explain.retracing.fixes import container_template
from limelight.explain.retracing.key_diff import Change, TextPart, quoted


def advice_on(changes: Sequence[Change], context: FixContext) -> str:
    """Which of the numbers that differ could not be tensors, and why; what containers could be."""
    obstacles = [(c.path, context.obstacles.get(c.path)) for c in changes[:MOST]]
    said = [f"`{path}` cannot simply be a tensor: {one}." for path, one in obstacles if one and one.is_known]
    said += [_more_keys(change, context) for change in changes[:MOST] if change.cause is Cause.KEYS]
    said += [advice_on_kind(change, context) for change in changes[:MOST] if change.cause is Cause.CONTAINER]
    said += [advice_on_count(change, context) for change in changes[:MOST] if change.cause is Cause.COUNT]
    return " ".join(filter(None, said))


def _more_keys(change: Change, context: FixContext) -> str:
    """What to do about a dictionary of other keys, where the function may have read them all."""
    assert isinstance(change.before, TextPart), "a dictionary"
    assert isinstance(change.after, TextPart), "a dictionary"
    old, new = change.before.keys, change.after.keys
    before, after = set(old), set(new)
    come, gone = [key for key in new if key not in before], [key for key in old if key not in after]
    if bool(come) == bool(gone) or change.path == context.signature.keywords_name:
        return ADVICE[Cause.KEYS]
    if container_template(change.path, change.before, change.after, context) is not None:
        return ""
    more = [f"{len(come or gone) - 2} more"] if len(come or gone) > 2 else []
    keys = " and ".join([*map(quoted, (come or gone)[:2]), *more])
    where = f" in the call at {context.elsewhere}" if context.elsewhere else " in the earlier call"
    return f"Give `{change.path}` its {keys}{where if come else ' here'} too, with what stands for no value."
