"""Staging: signatures, the trace cache, graph functions and their gradients, control flow, ways out of a trace."""

from __future__ import annotations

from limelight.staging import batching as batching
from limelight.staging import custom_batching as custom_batching
from limelight.staging import forward as forward
from limelight.staging import scan_rules as scan_rules
