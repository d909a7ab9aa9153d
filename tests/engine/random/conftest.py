"""The ops' tests have helpers that these use, too; this makes them importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
