"""Layers: modules whose weights are variables that are made on the first call."""

from __future__ import annotations

from limelight.nn.layers.dense import Dense as Dense
from limelight.nn.layers.dropout import Dropout as Dropout
from limelight.nn.layers.embedding import Embedding as Embedding
from limelight.nn.layers.layer import Layer as Layer
from limelight.nn.layers.sequential import Sequential as Sequential
