"""Graphs as programs of XLA, by JAX: the executor `xla`, and its lowering, which `ll.export.stablehlo` shares."""
