"""Forward mode and batching rules of the ops of control flow: importing it registers them."""

from __future__ import annotations

from limelight.control_flow import body_batching, body_tangents, custom_gradient_batching, scan_rules

__all__ = ["body_batching", "body_tangents", "custom_gradient_batching", "scan_rules"]
