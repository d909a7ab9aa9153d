"""Forward mode and batching rules of the ops of control flow: importing it registers them."""

from __future__ import annotations

from limelight.staging import batching, custom_batching, forward, scan_rules

__all__ = ["batching", "custom_batching", "forward", "scan_rules"]
