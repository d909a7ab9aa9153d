"""Print the path of a Chromium, after installing one if need be: `python scripts/browser.py`."""

from __future__ import annotations

import sys

from harness.chromium import NoBrowserError, ensure


def main() -> None:
    """Print the path, or say why there is none."""
    try:
        print(ensure())
    except NoBrowserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
