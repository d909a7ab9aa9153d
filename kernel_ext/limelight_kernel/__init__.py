"""The notebook extension: `%load_ext limelight`, `%%stage`, and the magics that show what the engine does."""

from limelight_kernel.extension import load_ipython_extension as load_ipython_extension
from limelight_kernel.extension import session_of as session_of
from limelight_kernel.extension import unload_ipython_extension as unload_ipython_extension
from limelight_kernel.result import StageResult as StageResult
from limelight_kernel.staged import StagedCell as StagedCell
