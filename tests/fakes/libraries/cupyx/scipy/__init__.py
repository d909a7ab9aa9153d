"""What `cupyx.scipy` has, of the pretended library."""

from __future__ import annotations

from cupyx.scipy import special as special
