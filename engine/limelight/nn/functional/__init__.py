"""Neural networks as functions of tensors: what layers are made of. All of these are names of `ll.nn` too.

They are compositions of ops, checked under their own names, unless one kernel or gradient is much better: windows,
softmax, cross entropies and standard scores are ops (`limelight.ops.nn`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.nn.functional import activations, attention, losses, normalisation, recurrence, resizing
from limelight.nn.functional.activations import *  # noqa: F403  # each module lists its public names in __all__
from limelight.nn.functional.attention import *  # noqa: F403
from limelight.nn.functional.losses import *  # noqa: F403
from limelight.nn.functional.normalisation import *  # noqa: F403
from limelight.nn.functional.recurrence import *  # noqa: F403
from limelight.nn.functional.resizing import *  # noqa: F403
from limelight.ops.elementwise.exponential import sigmoid as sigmoid
from limelight.ops.nn.activations import relu as relu
from limelight.ops.nn.activations import softplus as softplus
from limelight.ops.nn.convolution import conv as conv
from limelight.ops.nn.convolution import conv_transpose as conv_transpose
from limelight.ops.nn.pooling import avg_pool as avg_pool
from limelight.ops.nn.pooling import global_avg_pool as global_avg_pool
from limelight.ops.nn.pooling import global_max_pool as global_max_pool
from limelight.ops.nn.pooling import max_pool as max_pool
from limelight.ops.nn.softmax import log_softmax as log_softmax
from limelight.ops.nn.softmax import softmax as softmax
from limelight.ops.nn.standardise import standardise as standardise
from limelight.user_code import hints

if not TYPE_CHECKING:  # type checkers go by the imports, and are to know of names that are missing
    __all__ = [
        "avg_pool",
        "conv",
        "conv_transpose",
        "global_avg_pool",
        "global_max_pool",
        "log_softmax",
        "max_pool",
        "relu",
        "sigmoid",
        "softmax",
        "softplus",
        "standardise",
    ]
    __all__ += activations.__all__
    __all__ += attention.__all__
    __all__ += losses.__all__
    __all__ += normalisation.__all__
    __all__ += recurrence.__all__
    __all__ += resizing.__all__
    __getattr__ = hints.missing_name_hint("nn.functional")
    __dir__ = hints.listing(__all__)
