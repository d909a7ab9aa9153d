"""Limelight: a multi-stage, Python-embedded engine for differentiable programs, with live views of what it does.

The public names. Submodules `ll.nn`, `ll.optim`, `ll.random`, `ll.events`, `ll.explain`, `ll.errors` and `ll.config`
hold the rest; `ll.widgets` and `%load_ext limelight` load the notebook packages when they are first asked for.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Submodules that are public as a whole.
from limelight import config as config
from limelight import data as data
from limelight import debug as debug
from limelight import errors as errors
from limelight import events as events
from limelight import explain as explain
from limelight import export as export
from limelight import fft as fft
from limelight import linalg as linalg
from limelight import lookup as lookup
from limelight import nn as nn
from limelight import optim as optim
from limelight import random as random
from limelight import tree as tree

# isort: split
# Tensors, variables, dtypes, devices and ops.
from limelight.core import nest as nest
from limelight.core.device_scopes import colocate_with as colocate_with
from limelight.core.device_scopes import device as device
from limelight.core.devices import DeviceName as DeviceName
from limelight.core.devices import list_devices as list_devices
from limelight.core.dtypes import bfloat16 as bfloat16
from limelight.core.dtypes import bool_ as bool_
from limelight.core.dtypes import complex64 as complex64
from limelight.core.dtypes import complex128 as complex128
from limelight.core.dtypes import float16 as float16
from limelight.core.dtypes import float32 as float32
from limelight.core.dtypes import float64 as float64
from limelight.core.dtypes import int8 as int8
from limelight.core.dtypes import int16 as int16
from limelight.core.dtypes import int32 as int32
from limelight.core.dtypes import int64 as int64
from limelight.core.dtypes import uint8 as uint8
from limelight.core.dtypes import uint16 as uint16
from limelight.core.dtypes import uint32 as uint32
from limelight.core.dtypes import uint64 as uint64
from limelight.core.name_scopes import name_scope as name_scope
from limelight.core.op import defop as defop
from limelight.core.sparse_gradient import SparseGradient as SparseGradient
from limelight.core.spec import TensorSpec as TensorSpec
from limelight.core.tensor import API_VERSIONS
from limelight.core.tensor import Tensor as Tensor
from limelight.core.tensor import constant as constant
from limelight.core.variable import Variable as Variable
from limelight.export import load as load
from limelight.export import save as save
from limelight.functional_call import functional_call as functional_call
from limelight.functional_call import stack_modules as stack_modules
from limelight.memory import memory_info as memory_info
from limelight.module import Module as Module
from limelight.ops import *  # noqa: F403  # the Array API names: each family lists its own in __all__
from limelight.ops.create.dtype_queries import __array_namespace_info__ as __array_namespace_info__
from limelight.progress_bar import progress as progress

# isort: split
# Derivatives and batching.
from limelight.autodiff import ForwardAccumulator as ForwardAccumulator
from limelight.autodiff import GradientTape as GradientTape
from limelight.autodiff.functional import grad as grad
from limelight.autodiff.functional import hessian as hessian
from limelight.autodiff.functional import jacobian as jacobian
from limelight.autodiff.functional import jvp as jvp
from limelight.autodiff.functional import value_and_grad as value_and_grad
from limelight.autodiff.functional import vjp as vjp
from limelight.autodiff.gradcheck import gradcheck as gradcheck
from limelight.batching import vectorize as vectorize

# isort: split
# Staging and control flow.
from limelight.control_flow.cond import cond as cond
from limelight.control_flow.custom_gradient import custom_gradient as custom_gradient
from limelight.control_flow.fori_loop import fori_loop as fori_loop
from limelight.control_flow.py_func import py_func as py_func
from limelight.control_flow.recompute import recompute_grad as recompute_grad
from limelight.control_flow.scan import map_fn as map_fn
from limelight.control_flow.scan import scan as scan
from limelight.control_flow.switch import switch as switch
from limelight.control_flow.tensor_array import TensorArray as TensorArray
from limelight.control_flow.while_loop import while_loop as while_loop
from limelight.staging.decorator import function as function
from limelight.staging.deferred import deferred as deferred
from limelight.staging.init_scope import init_scope as init_scope

# isort: split
# State that outlives the process.
from limelight.checkpoint import Checkpoint as Checkpoint
from limelight.checkpoint import CheckpointManager as CheckpointManager
from limelight.checkpoint import State as State

# isort: split
# What the facade itself uses.
from limelight import autograph
from limelight.core import autograph_hook
from limelight.explain import hook
from limelight.staging import explainer
from limelight.user_code import hints, tracebacks

__version__ = "0.1.0"
__array_api_version__ = API_VERSIONS[-1]
bool = bool_  # the Array API's name
newaxis = None
_PARTS = (
    "config",
    "data",
    "debug",
    "errors",
    "events",
    "explain",
    "export",
    "fft",
    "linalg",
    "lookup",
    "nn",
    "optim",
    "random",
    "tree",
)
_HIDDEN = ("API_VERSIONS", "Any", "ModuleType", "TYPE_CHECKING", "annotations")

# What importing limelight sets up. Staging imports neither explanations nor autograph, which lie above it: they are
# registered here. An error that ends a script or a thread is shown without the library's frames.
explainer.register(hook)
autograph_hook.register_converter(autograph.Converted)
tracebacks.hide_at_exit()

if TYPE_CHECKING:
    import limelight_widgets as widgets  # noqa: F401  # what `ll.widgets` is, to type checkers


def __getattr__(name: str) -> Any:
    """`ll.widgets`, loaded when first asked for (the engine itself needs no notebook); and what missing names are here.

    `__all__` leaves out what Python has by the same name (sum, abs, ...), since `from limelight import *` must not
    shadow it. As an attribute that is computed it is no news to type checkers, which go by the imports above.
    """
    if name == "widgets":
        return _notebook_package("limelight_widgets")
    if name == "__all__":
        return [public for public in __dir__() if public[0] != "_" and not hasattr(builtins, public)]
    hint = "" if name.startswith("__") else hints.suggested(name)
    hints.refuse_import(name, sys._getframe(1), hint)
    missing = AttributeError(f"module 'limelight' has no attribute {name!r}{hint}", name=name)
    errors.mark_user_error(missing)
    raise missing


def __dir__() -> list[str]:
    """The public names, without the engine's own modules: these stay attributes, since imports must find them."""
    names = [
        name
        for name, value in globals().items()
        if name not in _HIDDEN and name[0] != "_" and (name in _PARTS or not isinstance(value, ModuleType))
    ]
    return sorted({*names, "widgets", "__version__", "__array_api_version__", "__array_namespace_info__"})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext limelight`: adds the magics to an IPython shell."""
    _notebook_package("limelight_kernel").load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext limelight`: leaves the shell as it was before."""
    _notebook_package("limelight_kernel").unload_ipython_extension(shell)


def _notebook_package(name: str) -> ModuleType:
    return importlib.import_module(name)
