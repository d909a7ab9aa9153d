"""Tables and sums of columns under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.slow  # the module is compiled, and another Python runs tests
def test_no_access_is_wrong_and_nothing_undefined() -> None:
    tests = ["tests/engine/executors/loops/test_table.py", "tests/engine/ops/test_native_columns.py"]
    command = [sys.executable, "scripts/native.py", "sanitize", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
