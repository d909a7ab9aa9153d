"""Why a staged function traced again: the difference from the closest trace, in words, and the fix."""
