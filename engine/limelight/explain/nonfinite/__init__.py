"""Where a NaN was made, and what to write instead."""
