"""Compiles a program that JAX has exported. Run as a script it is the process that compiles for another one.

    python exported_program.py FOLDER MOST_BYTES < PROGRAM

The script puts the compiled program into JAX's cache in FOLDER, from where the other process takes it: compiling may
last for minutes, cannot be stopped from within a process, and would compete with Python for its lock. It imports
nothing of limelight.
"""

import contextlib
import importlib
import os
import sys
import threading
import time
from typing import Any


def compiled(program: bytes) -> Any:
    """The program, compiled or taken from JAX's cache."""
    jax: Any = importlib.import_module("jax")
    exported = importlib.import_module("jax.export").deserialize(bytearray(program))
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in exported.in_avals]
    with _wide(jax):
        return jax.jit(exported.call).lower(*types).compile()


def _wide(jax: Any) -> Any:
    """With dtypes of 64 bits, as `core.backends.jax` has it."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)


def end_with_parent(seconds: float = 1.0) -> None:
    """Has this process end soon after the one that started it, however that one ends. On Windows it does not."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Compiles what comes in, at a low priority: whoever waits for it has other work meanwhile."""
    end_with_parent()
    program = sys.stdin.buffer.read()
    with contextlib.suppress(AttributeError, OSError):  # Windows has none
        os.nice(10)
    config: Any = importlib.import_module("jax").config
    config.update("jax_compilation_cache_dir", sys.argv[1])
    config.update("jax_compilation_cache_max_size", int(sys.argv[2]))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    compiled(program)


if __name__ == "__main__":
    main()
