"""What explains traces to staging: the functions that `staging.explainer.Explainer` asks for.

Staging imports none of this package; `import limelight` registers this module with `staging.explainer`.
"""

from __future__ import annotations

from limelight.explain.retracing.diagnosis import diagnose
from limelight.explain.retracing.prediction import predict
from limelight.explain.retracing.warning import warn_if_retracing
from limelight.explain.tracing.draw_warning import host_draws, warn_of_draws
from limelight.explain.tracing.leak_warning import warn_of_leaks
from limelight.explain.tracing.snapshot import renamed as rebound_name
from limelight.explain.tracing.snapshot import take as take_snapshot

__all__ = [
    "diagnose", "host_draws", "predict", "rebound_name", "take_snapshot", "warn_if_retracing", "warn_of_draws",
    "warn_of_leaks",
]  # fmt: skip
