"""What explains traces to staging: the functions that `staging.explainer.Explainer` asks for.

Staging imports none of this package; `import limelight` registers this module with `staging.explainer`.
"""

from __future__ import annotations

from limelight.explain.retracing.diagnosis import diagnose
from limelight.explain.retracing.prediction import predict
from limelight.explain.retracing.warning import warn_if_retracing
from limelight.explain.tracing.snapshot import renamed, take

__all__ = ["diagnose", "predict", "renamed", "take", "warn_if_retracing"]
