"""What explains traces to staging: the functions that `staging.explainer.Explainer` asks for."""

from __future__ import annotations

from limelight.explain.retracing.miss import diagnose, warn_if_retracing
from limelight.explain.retracing.prediction import predict
from limelight.explain.tracing.snapshot import renamed as rebound_name
from limelight.explain.tracing.snapshot import take as take_snapshot

__all__ = ["diagnose", "predict", "rebound_name", "take_snapshot", "warn_if_retracing"]
