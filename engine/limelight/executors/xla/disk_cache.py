"""Compiled programs on disk: JAX's compilation cache, bounded, in the user's cache folder.

What has been compiled once is then read in a twentieth of the time, by later processes too. The folder is
`limelight/xla` in the user's cache folder (`~/.cache` on Linux), with a part for each kind of processor, since machine
code of one may not run on another. The programs used longest ago give way above `MOST_BYTES`.
`ll.config.compilation_cache` chooses another folder, or none.

A program that has told JAX of a cache of its own keeps that, for our programs as well. Else JAX knows of ours only
while we compile. Files in the folder are machine code: whoever may write to it may run code as who reads it. So it is
made for the user alone, and one that others may write to, or replace, is not used: a warning says so, once.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from limelight import forking
from limelight.errors import ArgumentError, CacheFolderWarning
from limelight.settings import Scoped, SettingScope
from limelight.user_code import source_line
from limelight.user_code.warn_at import warn_at

MOST_BYTES: Final = 512 * 2**20
ENVIRONMENT: Final = "LIMELIGHT_COMPILATION_CACHE"
"""The environment variable: a folder, or 0 for none."""
LEAST_SECONDS: Final = 0.5
"""What is compiled in less is not written."""
_chosen: Final[Scoped[bool | str]] = Scoped("compilation cache", True)
_told: Final[set[str]] = set()
"""Folders that are not used, of which a warning has spoken."""
_turn = threading.RLock()
forking.renew_in_child(__name__, "_turn", threading.RLock)


class compilation_cache(SettingScope[bool | str]):  # noqa: N801  # used as a function
    """Where programs of XLA are kept once they are compiled, for later processes, too.

    As a `with` block it holds for what this thread does in the block. The environment variable
    LIMELIGHT_COMPILATION_CACHE says the same for a whole process: a folder, or 0 for none. A folder that other users
    may write to is not used, since programs are executable code: CacheFolderWarning says so.

    Args:
        where: a folder, which may begin with "~"; True for that in the user's cache folder, the default; False: none.

    Raises:
        ArgumentError: `where` is neither a path nor True or False.

    >>> import limelight as ll
    >>> with ll.config.compilation_cache(False):
    ...     f = ll.function(lambda x: x + 1.0)  # compiled anew in each process
    """

    def __init__(self, where: bool | str | os.PathLike[str]) -> None:
        if not isinstance(where, bool | str | os.PathLike):
            raise ArgumentError(f"ll.config.compilation_cache takes a folder, True or False, got {where!r}")
        value = where if isinstance(where, bool) else os.fspath(where)
        if not isinstance(value, bool) and (named := Path(value).expanduser()).is_dir():
            unsafe = _why_unsafe(str(named.resolve()))
            if unsafe:  # said where the folder is chosen, not where something is compiled
                _warn_of(named, unsafe)
        super().__init__(_chosen, value, sys._getframe(1))

    def __repr__(self) -> str:
        return f"<compilation cache: {folder() or 'none'}>"


def folder() -> Path | None:
    """Where programs are kept; None where they are not."""
    where: bool | str = _chosen.get()
    named = os.environ.get(ENVIRONMENT, "")
    if where is True and named:
        where = False if named == "0" else named
    if where is False or importlib.util.find_spec("filelock") is None:  # without it JAX's cache would have no bound
        return None
    if where is True:
        from platformdirs import user_cache_path  # noqa: PLC0415  # when something is compiled

        return user_cache_path("limelight", appauthor=False) / "xla" / _processor()
    return Path(where).expanduser()


@functools.cache
def _processor() -> str:
    """A short name for what machine code of this processor needs: its kind, and what it can do."""
    import hashlib  # noqa: PLC0415  # when something is compiled
    import platform  # noqa: PLC0415

    can = platform.processor() or platform.node()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        can = next((line for line in lines if line.startswith(("flags", "Features"))), can)
    digest = hashlib.sha256(f"{sys.platform} {platform.machine()} {can}".encode()).hexdigest()
    return f"{platform.machine().lower()}-{digest[:12]}"


@contextlib.contextmanager
def used(where: Path | None, least_seconds: float = LEAST_SECONDS, most_bytes: int = MOST_BYTES) -> Iterator[None]:
    """While JAX compiles in the block, it looks for programs in `where`, and keeps there what took so long.

    Without a bound, which -1 says, it does without the package filelock.
    """
    config: Any = importlib.import_module("jax").config
    if where is None or config.jax_compilation_cache_dir or not is_usable(where):
        yield
        return
    settings = {
        "jax_compilation_cache_dir": str(where),
        "jax_compilation_cache_max_size": most_bytes,
        "jax_persistent_cache_min_compile_time_secs": least_seconds,
    }
    with _turn:
        before = {name: getattr(config, name) for name in settings}
        try:
            for name, value in settings.items():
                config.update(name, value)
            yield
        finally:
            for name, value in before.items():
                config.update(name, value)
            _forget()


def _forget() -> None:
    """Has JAX forget the folder, which it otherwise holds on to whatever its settings say."""
    importlib.import_module("jax.experimental.compilation_cache.compilation_cache").reset_cache()


def is_usable(where: Path) -> bool:
    """Whether there is such a folder, made now if need be, that we can write to, and nobody else; warns of others."""
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        unsafe = _why_unsafe(str(where.resolve()))
    except OSError:
        return False
    if unsafe:
        _warn_of(where, unsafe)
    return not unsafe and os.access(where, os.W_OK)


def _why_unsafe(where: str) -> str:
    """Who else may put files into a folder, or another folder in its place; empty where nobody but the system may.

    As ssh looks at its keys: the folder, and those that it lies in, belong to the user or to root, and others may not
    write there, unless a sticky folder such as /tmp keeps what it holds for its owners. A group of the user's own is
    no other.
    """
    if not hasattr(os, "getuid"):  # Windows, where the folders of a profile are its owner's
        return ""
    path, own = Path(where), {0, os.getuid()}
    for folder in (path, *path.parents):
        stat = folder.stat()
        if stat.st_uid not in own:
            return f"{folder} belongs to another user"
        if folder != path and stat.st_mode & 0o1000:
            continue
        if stat.st_mode & 0o002:
            return f"everybody may write to {folder}"
        if stat.st_mode & 0o020 and not _is_private(stat.st_gid):
            return f"its group may write to {folder}"
    return ""


@functools.cache
def _is_private(group: int) -> bool:
    """Whether root or nobody but this user is in a group."""
    import grp  # noqa: PLC0415  # not on Windows
    import pwd  # noqa: PLC0415

    if group == 0:
        return True
    try:
        name, members = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group).gr_mem
        others = [user for user in pwd.getpwall() if user.pw_gid == group and user.pw_name != name]
    except KeyError:
        return False
    return not others and set(members) <= {name}


def _warn_of(where: Path, unsafe: str) -> None:
    """Says so, once for each folder."""
    if str(where) in _told:
        return
    _told.add(str(where))
    line = source_line.user_line()
    message = (
        f"compiled programs are not kept in {where}: {unsafe}, and whoever can write there could have his code run by "
        "you. Take that right away (chmod go-w), or name a folder of your own: ll.config.compilation_cache(folder)"
    )
    if line is None:  # a thread that compiles
        try:
            warnings.warn(message, CacheFolderWarning, stacklevel=2)
        except CacheFolderWarning as error:  # a filter has made an error of it: nobody is there to catch that
            threading.excepthook(threading.ExceptHookArgs((type(error), error, None, threading.current_thread())))
    else:
        warn_at(line, f"{message}{source_line.at(line)}", CacheFolderWarning)
