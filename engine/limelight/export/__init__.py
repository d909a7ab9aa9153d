"""Functions that travel: traces in files that run where the Python code that made them is not (paper section 4.3)."""

from limelight.export.load import load
from limelight.export.loaded import LoadedFunction, LoadedModule, call_of
from limelight.export.save import save

__all__ = ["LoadedFunction", "LoadedModule", "call_of", "load", "save"]
