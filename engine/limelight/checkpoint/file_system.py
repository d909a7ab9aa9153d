"""Files that are there whole or not at all: a temporary name, flushed to disk, then renamed.

A file is written under a name of its own, which is locked while its writer lives, flushed (`fsync`), and renamed; the
folder is flushed after that. So a reader sees the file of before or the new one, and a power cut leaves one of the two.
What a killed writer leaves behind is recognised by its name and by the lock, which the system has released, and is
removed when something is next written to the folder (`sweep`).

`files` are the system calls, in a class of their own so that tests can let them fail.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from limelight.errors import CheckpointError, MissingCheckpointError

try:
    import fcntl
except ImportError:  # Windows, which removes no file that is open: that does as a lock
    fcntl = None  # type: ignore[assignment]  # Windows has none

_BLOCK: Final = 1 << 26  # bytes a call: Linux writes 2 GiB at most, and an interrupt waits for less
_GATHERED: Final = 1 << 18  # bytes of small writes that are gathered for one call, and read ahead of small reads
_LONG: Final = 86400.0  # seconds after which nobody writes to a file any more, where no lock can tell
_TEMPORARY: Final = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.tmp")


class Files:
    """The system calls that a checkpoint is written with."""

    def create(self, path: str) -> int:
        """A new file, which must not exist, open for writing."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def flush(self, fd: int) -> None:
        """Has a file, or the names in a folder, on disk."""
        os.fsync(fd)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)


files: Files = Files()


class Writer:
    """A file that is being written under a temporary name.

    Args:
        path: the name that it gets by `commit`.
        final: whether it has that name from the start, since nothing refers to it yet.
    """

    def __init__(self, path: Path, *, final: bool = False) -> None:
        self.path = path
        self._final = final
        self._gathered = bytearray()
        self._size = 0
        while True:
            self.temporary = path if final else path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
            self._fd = files.create(str(self.temporary))
            if _lock(self._fd, unsure=True) and os.fstat(self._fd).st_nlink:
                break  # else somebody took it for one that was left behind, before it was locked
            os.close(self._fd)

    @property
    def has_its_name(self) -> bool:
        """Whether it is the file of its name, whatever has failed since; an open one is asked for.

        What is on disk decides: an interrupt may have come between the renaming and the next statement.
        """
        if self._final or self._fd < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self.path, follow_symlinks=False))
        except FileNotFoundError:
            return False
        except OSError:  # not known: then nothing may be removed that the file would need
            return True

    def write(self, data: Any) -> None:
        """Appends bytes, or a vector of them; small ones are gathered, since each call of the system takes its time."""
        self._size += len(data)
        if len(data) < _GATHERED:
            self._gathered += data
            if len(self._gathered) >= _GATHERED:
                self._write_gathered()
        else:
            self._write_gathered()
            self._write_out(memoryview(data))

    def overwrite(self, offset: int, data: bytes) -> None:
        """Writes anew what was written at `offset`, as the last that is written."""
        if self._size == len(self._gathered):  # nothing has gone to the system yet: no call of it is needed
            self._gathered[offset : offset + len(data)] = data
        else:
            self._write_gathered()
            os.lseek(self._fd, offset, os.SEEK_SET)
            self._write_out(memoryview(data))

    def _write_gathered(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            self._write_out(memoryview(gathered))

    def _write_out(self, rest: memoryview) -> None:
        while rest:
            rest = rest[files.write(self._fd, rest[:_BLOCK]) :]

    def flush(self) -> None:
        self._write_gathered()
        files.flush(self._fd)

    def commit(self) -> None:
        """The file is whole, on disk, and has its name; another one of that name is gone."""
        self.flush()
        files.rename(str(self.temporary), str(self.path))
        self.temporary = self.path
        flush_folder(self.path.parent)

    def close(self) -> None:
        """Lets go of the file; it stays under its name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def discard(self) -> None:
        """Removes what was written unless it was committed."""
        self.close()
        if self._final or self.temporary != self.path:
            with contextlib.suppress(OSError):  # the error that led here says more; `sweep` comes back to it
                files.remove(str(self.temporary))


def cannot_write(path: Path, error: OSError, *, named: bool = False) -> str:
    """What the system said when `path` was written, in words; `named` where the file has its name already."""
    if named:
        return (
            f"{path} is written, but whether it is on disk is not known: {error.strerror or error}; write it once more"
        )
    parent = path.parent
    if isinstance(error, FileNotFoundError) and not os.path.isdir(parent):
        return f"{path} cannot be written: there is no folder {parent}; make it with os.makedirs({str(parent)!r})"
    if error.errno == errno.ENAMETOOLONG:
        return f"{path} cannot be written: its name is too long; give a shorter one"
    before = "what was saved there before is as it was" if os.path.exists(path) else "nothing was left behind"
    return f"{path} cannot be written: {error.strerror or error}; {before}"


def flush_folder(folder: Path) -> None:
    """Has the names in a folder on disk. Windows opens no folders, and keeps names by itself."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        files.flush(fd)
    finally:
        os.close(fd)


def sweep(path: Path, unused: re.Pattern[str], kept: Iterable[str]) -> None:
    """Removes what writers of `path` that died have left in its folder.

    Args:
        path: the file that is written.
        unused: names of files that belong to it, beside temporary ones.
        kept: which of these it refers to.
    """
    keep = set(kept)
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):
            temporary = _TEMPORARY.fullmatch(name)
            if (temporary and temporary["name"] == path.name) or (unused.fullmatch(name) and name not in keep):
                _remove_abandoned(path.with_name(name))


def sweep_temporary(folder: Path) -> None:
    """Removes all that writers which died have left in `folder` under temporary names."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if _TEMPORARY.fullmatch(name):
                _remove_abandoned(folder / name)


def _remove_abandoned(path: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            if _lock(fd, unsure=time.time() - os.fstat(fd).st_mtime > _LONG) and fcntl is not None:
                files.remove(str(path))
        finally:
            os.close(fd)
        if fcntl is None:
            files.remove(str(path))


def _lock(fd: int, *, unsure: bool) -> bool:
    """Locks a file for as long as it is open; False where somebody else has, `unsure` on file systems without locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return unsure
    return True


class Reader:
    """A file that is open for reading. Its content stays what it is, even if another one takes its name.

    Args:
        path: its name.
        within: whether it must be a file itself, no link to one: the file of a set that somebody else has named.

    Raises:
        MissingCheckpointError: there is none.
        CheckpointError: it is a folder, a device, a pipe or, if `within`, a link.
    """

    def __init__(self, path: Path, *, within: bool = False) -> None:
        self.path = path
        self._fd = -1
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            self._fd = os.open(path, flags | (getattr(os, "O_NOFOLLOW", 0) if within else 0))
        except FileNotFoundError:
            raise MissingCheckpointError(_missing(path)) from None
        except (OSError, ValueError) as error:
            if not os.path.isdir(path):
                raise CheckpointError(f"{path} cannot be read: {error}") from None
            self._refuse_folder()
        mode = os.fstat(self._fd)
        if stat.S_ISDIR(mode.st_mode):
            self._refuse_folder()
        if not stat.S_ISREG(mode.st_mode):
            self.close()
            raise CheckpointError(f"{path} is no file but a pipe or a device: give the file that was written")
        self.size = mode.st_size

    def _refuse_folder(self) -> None:
        self.close()
        raise CheckpointError(
            f"{self.path} is a folder; a checkpoint is a file{_inside(self.path)}. For the newest of a folder that "
            "a manager keeps, write ll.CheckpointManager(objects, folder).restore()"
        )

    def read(self, offset: int, count: int) -> bytes:
        """So many bytes. Raises CheckpointError where the file ends before."""
        data = bytearray(count)
        self.read_into(memoryview(data), offset)
        return bytes(data)

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fills `target` with what is at `offset`. Raises CheckpointError where the file ends before."""
        while target:
            try:
                count = _read_at(self._fd, target[:_BLOCK], offset)
            except OSError as error:
                raise CheckpointError(f"{self.path} cannot be read: {error}") from None
            if not count:
                raise CheckpointError(f"{self.path} ends too early: it was cut off, or is being copied")
            target, offset = target[count:], offset + count

    def close(self, close: Callable[[int], None] = os.close) -> None:  # kept: globals may be gone before a reader is
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


def _read_at(fd: int, target: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(fd, [target], offset)
    os.lseek(fd, offset, os.SEEK_SET)
    data = os.read(fd, len(target))
    target[: len(data)] = data
    return len(data)


def _missing(path: Path) -> str:
    folder = path.parent
    if not os.path.isdir(folder):
        return f"there is no file {path}: the folder {folder} does not exist"
    return f"there is no file {path}{_numbered(path) or _inside(folder)}"


def _numbered(path: Path) -> str:
    """The newest file that `Checkpoint.save` has made of that name, to which it adds a number; "" for none."""
    form = re.compile(rf"{re.escape(path.stem)}-(\d+){re.escape(path.suffix)}")
    with contextlib.suppress(OSError):
        numbers = [int(match[1]) for name in os.listdir(path.parent) if (match := form.fullmatch(name))]
        if numbers:
            newest = path.with_name(f"{path.stem}-{max(numbers)}{path.suffix}")
            return f"; `save` adds a number to the name, and returns the path: the newest is {newest}"
    return ""


def _inside(folder: Path) -> str:
    with contextlib.suppress(OSError):
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".safetensors")
        if names:
            return f"; {folder} has {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    return ""
