"""Graphs as programs of XLA, by way of JAX: the lowering, which `ll.export.stablehlo` shares, and the executor `xla`."""
