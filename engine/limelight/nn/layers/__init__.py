"""Layers: modules whose weights are variables that are made on the first call. A file for each kind of layer.

`layer` has the base class, `dense` Dense, `convolution` Conv and ConvTranspose, `pooling` MaxPool and AvgPool,
`normalisation` BatchNorm, LayerNorm, RMSNorm and GroupNorm, `recurrent` LSTM, GRU and RNN and their cells, `attention`
MultiHeadAttention, `activation` LeakyReLU, `lambda_layer` Lambda, and `bidirectional`, `embedding`, `dropout`,
`flatten`, `identity`, `reshape`, `sequential` and `upsample` the layer of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.nn.layers.activation import LeakyReLU
from limelight.nn.layers.attention import MultiHeadAttention
from limelight.nn.layers.bidirectional import Bidirectional
from limelight.nn.layers.convolution import Conv, ConvTranspose
from limelight.nn.layers.dense import Dense
from limelight.nn.layers.dropout import Dropout
from limelight.nn.layers.embedding import Embedding
from limelight.nn.layers.flatten import Flatten
from limelight.nn.layers.identity import Identity
from limelight.nn.layers.lambda_layer import Lambda
from limelight.nn.layers.layer import Layer
from limelight.nn.layers.normalisation import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from limelight.nn.layers.pooling import AvgPool, MaxPool
from limelight.nn.layers.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from limelight.nn.layers.reshape import Reshape
from limelight.nn.layers.sequential import Sequential
from limelight.nn.layers.upsample import Upsample
from limelight.user_code import hints

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "AvgPool",
    "BatchNorm",
    "Bidirectional",
    "Conv",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "LSTMCell",
    "Lambda",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool",
    "MultiHeadAttention",
    "RMSNorm",
    "RNNCell",
    "Reshape",
    "Sequential",
    "Upsample",
]
if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("nn.layers")
__dir__ = hints.listing(__all__)
