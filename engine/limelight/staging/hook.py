"""What explains traces to staging: the functions that `staging.explainer.Explainer` asks for."""

from __future__ import annotations

from limelight.staging.baked import renamed, take
from limelight.staging.miss import diagnose, warn_if_retracing
from limelight.staging.prediction import predict

__all__ = ["diagnose", "predict", "renamed", "take", "warn_if_retracing"]
