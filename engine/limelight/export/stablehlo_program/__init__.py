"""Functions as StableHLO, by `jax.export`: for JAX, and for what else runs its programs. Needs the `xla` extra."""

from limelight.export.stablehlo_program.program_file import stablehlo

__all__ = ["stablehlo"]
