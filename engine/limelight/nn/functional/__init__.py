"""Neural networks as functions of tensors: what layers are made of. All of these are names of `ll.nn` too."""

from __future__ import annotations

from limelight.nn.functional.recurrence import gru_cell, lstm_cell
from limelight.ops.activations import gelu, relu, sigmoid_cross_entropy, softplus
from limelight.ops.convolution import conv, conv_transpose
from limelight.ops.pooling import avg_pool, global_avg_pool, global_max_pool, max_pool
from limelight.ops.softmaxes import log_softmax, softmax, softmax_cross_entropy

__all__ = [
    # convolutions and pools
    "avg_pool",
    "conv",
    "conv_transpose",
    "global_avg_pool",
    "global_max_pool",
    "max_pool",
    # activations
    "gelu",
    "log_softmax",
    "relu",
    "softmax",
    "softplus",
    # steps in time
    "gru_cell",
    "lstm_cell",
    # losses
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
]
