"""Why a gradient is None: the op that cuts the path from the target to the source."""
