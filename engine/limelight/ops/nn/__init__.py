"""Ops of neural networks, with kernels or gradients of their own; `limelight.nn.functional` is made of them."""
