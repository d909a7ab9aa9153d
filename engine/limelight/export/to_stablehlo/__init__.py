"""Functions as StableHLO, by `jax.export`: for JAX, and for what else runs its programs. Needs the `xla` extra."""

from limelight.export.to_stablehlo.program_file import stablehlo

__all__ = ["stablehlo"]
