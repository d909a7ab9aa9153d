"""Arrays in files of the safetensors format, read strictly and written as a stream.

A file is eight bytes (the header's length), a JSON header (name, dtype, shape and place of each array, and metadata, a
dictionary of strings), and the arrays' bytes without gaps. The library `safetensors` reads every header that is read
here, too, and both must accept it. Arrays are then read into memory of their own, a third of the time of the library's
way over a mapped file, which a process would also die of if somebody cut the file off meanwhile.

The header of a stranger's file is held to what the file can hold before anything is made of it.
"""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from limelight.checkpoint import header_limits
from limelight.checkpoint.file_system import Reader, Writer
from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.errors import CheckpointError

Array = np.ndarray[Any, Any]
MOST_HEADER: Final = 100_000_000  # bytes, as in the library
DTYPES: Final[dict[str, DType]] = {
    "BOOL": dtypes.bool_, "I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64,
    "U8": dtypes.uint8, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
}  # fmt: skip
_CODES: Final = {dtype: code for code, dtype in DTYPES.items()}
MOST_PADDING: Final = 1 << 30  # bytes: of half a million scalars
PADDING: Final = "~padding"
"""The name of bytes that make a file as large as its description asks for (`header_limits`); no reader has them."""
_METADATA: Final = "__metadata__"
CHECKSUMS: Final = "limelight.crc32"
"""The key of the metadata that has eight hexadecimal digits for the header, and for each array in order."""
_NO_SUMS: Final = f'"{CHECKSUMS}":"00000000'.encode()
_LONGEST: Final = 1300  # bytes that the description of an array of a short name takes
_DENSEST: Final = 135  # bytes that a character of JSON takes at most, about
_SMALL: Final = 1 << 12  # bytes: reading such an array takes less time than asking the system for it
_AHEAD: Final = 1 << 18  # bytes that are read at a time for arrays that are small
_SUMMED: Final = 1 << 20  # bytes that are summed up at a time: they stay in the processor's cache
_HUGE: Final = 1 << 22  # bytes, from which on NumPy asks for huge pages
_FIRST: Final = re.compile(rf'\{{"{_METADATA}":\{{"([a-z_.]+)":"')  # how our files begin: with a string of JSON


def _unwritten(shape: tuple[int, ...], dtype: DType) -> Array:
    """An array to be read into, without values.

    A large one is made of ordinary pages of memory, where NumPy would ask for huge ones: a virtual machine may give
    these back to its host as soon as they are free, and having them again took four times as long as reading the file.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _HUGE or not sys.platform.startswith("linux"):
        return np.empty(shape, dtype)
    mmap = importlib.import_module("mmap")  # when first needed: importing limelight does not take it
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError(f"no memory for an array of {size:,} bytes") from None
    return np.ndarray(shape, dtype, pages)


class Entry(NamedTuple):
    """An array in a file: `begin` and `end` count from the end of the header."""

    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int


class Unwritten(NamedTuple):
    """An array to be written; `get` has it in memory when its turn comes."""

    dtype: DType
    shape: tuple[int, ...]
    get: Callable[[], Array]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def stored(dtype: DType, shape: tuple[int, ...]) -> tuple[DType, tuple[int, ...]]:
    """As what an array lies in a file: complex128, which the format does not have, as pairs of float64."""
    return (dtypes.float64, (*shape, 2)) if dtype == dtypes.complex128 else (dtype, shape)


def as_bytes(array: Array) -> memoryview:
    """The bytes of an array in C order, little end first; copied only where they do not lie so."""
    flat = np.ascontiguousarray(array.reshape(-1), array.dtype.newbyteorder("<"))  # complex ones are pairs as they are
    return memoryview(flat.view(np.uint8).data)


def padding_of(arrays: Mapping[str, Unwritten], metadata: Mapping[str, str]) -> int:
    """How many bytes of nothing a file needs beside its arrays, lest its description take far more memory than it has.

    Of 40,000 arrays and more there is more to say than there is in them, if they are scalars.
    """
    if len(arrays) * _LONGEST + sum(map(len, metadata.values())) * _DENSEST < header_limits.ALLOWANCE:
        return 0
    return _header_of(arrays, metadata).lacks


class _Header(NamedTuple):
    """The header of a file to be written, the names of its arrays in order, and how many bytes it lacks to be read."""

    text: bytes
    ordered: list[str]
    lacks: int

    def with_checksums(self, sums: Sequence[int]) -> bytes:
        """The header with the checksums of the arrays, in order, and with its own, which is that of it with zeros."""
        digits = "".join([f"{x:08x}" for x in (zlib.crc32(self.text), *sums)]).encode("ascii")
        at = self.text.index(_NO_SUMS) + len(_NO_SUMS) - 8
        return self.text[:at] + digits + self.text[at + len(digits) :]


def _header_of(arrays: Mapping[str, Unwritten], metadata: Mapping[str, str]) -> _Header:
    """The header, with arrays of the widest elements first, so that all are aligned, and with zeros as checksums."""
    as_stored = {name: stored(*array[:2]) for name, array in arrays.items()}
    ordered = sorted(arrays, key=lambda name: -as_stored[name][0].itemsize)
    header: dict[str, Any] = {}
    end = 0
    for name in ordered:
        dtype, shape = as_stored[name]
        begin, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": (begin, end)}
    said = {**metadata, CHECKSUMS: "0" * (8 + 8 * len(ordered))}
    text = _dumped({_METADATA: said, **header}).encode("ascii")
    text += b" " * (-len(text) % 8)
    read = _dumped({_METADATA: {**said, next(iter(said)): ""}, **header})  # without its first string (`_apart`)
    needed = max(header_limits.size_for_header(text), *map(header_limits.size_for, (read, *metadata.values())))
    return _Header(text, ordered, max(0, needed - 8 - len(text) - end))


def write_arrays(writer: Writer, arrays: Mapping[str, Unwritten], metadata: Mapping[str, str]) -> None:
    """Writes a whole file, as large as reading its description asks for."""
    header = _header_of(arrays, metadata)
    if 0 < header.lacks <= MOST_PADDING:
        nothing = np.zeros(header.lacks + 2 * _LONGEST, np.uint8)  # which is described in the header, too
        arrays = {**arrays, PADDING: Unwritten(nothing.dtype, nothing.shape, lambda: nothing)}
        header = _header_of(arrays, metadata)
    text = header.text
    if len(text) > MOST_HEADER:
        raise CheckpointError(
            f"{writer.path.name}: the description of {len(arrays)} arrays takes {len(text) / 1e6:.0f} MB, and a file "
            "may have 100 MB of it: save parts of the program in checkpoints of their own"
        )
    if header.lacks:
        raise CheckpointError(
            f"{writer.path.name}: the description of {len(arrays)} arrays and of what belongs to them would take far "
            "more memory than the file, and no reader would accept it: join small arrays and long lists to a few "
            "large arrays, or save parts of the program in checkpoints of their own"
        )
    writer.write(len(text).to_bytes(8, "little") + text)
    writer.overwrite(8, header.with_checksums([_write_summed(writer, arrays[name]) for name in header.ordered]))


def _write_summed(writer: Writer, array: Unwritten) -> int:
    """Writes an array, and returns its checksum: block by block, so that each is read from memory once."""
    data = as_bytes(array.get()) if array.nbytes else memoryview(b"")
    total = 0
    for at in range(0, len(data), _SUMMED):
        block = data[at : at + _SUMMED]
        total = zlib.crc32(block, total)
        writer.write(block)
    return total


def _dumped(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


class ArrayFile:
    """The arrays of an open file, by name: `entries`, and `metadata`.

    Raises:
        CheckpointError: it is no such file.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._name = reader.path.name
        self._ahead: Array = np.empty(0, np.uint8)
        self._ahead_from = 0
        try:
            self.metadata, self.entries, self._start = self._header()
        except CheckpointError:
            reader.close()
            raise

    def array(self, name: str) -> Array:
        """A new array with what the file has by that name."""
        entry = self.entries[name]
        array = _unwritten(entry.shape, entry.dtype)
        if array.size:
            flat = array.reshape(-1).view(np.uint8)
            self._read_into(flat, entry.begin)
            if entry.dtype == dtypes.bool_ and flat.max() > 1:
                self._refuse(f"{name!r} is boolean and has other bytes than 0 and 1")
        return array

    def changed(self) -> list[str] | None:
        """The names of the arrays whose bytes are others than were written; "" for the header.

        None where nobody can tell: files of others, and of ours before there were any, have no checksums.
        """
        said = self.metadata.get(CHECKSUMS)
        if said is None:
            return None
        names = ["", *self._places]
        sums = [said[i : i + 8] for i in range(0, len(said), 8)]
        if len(sums) != len(names):
            return [""]
        header = self.reader.read(8, self._start - 8)
        at = header.find(_NO_SUMS[:-8]) + len(_NO_SUMS) - 8
        zeros = header[:at] + b"0" * len(said) + header[at + len(said) :]
        actual = [zlib.crc32(zeros), *[self._sum(entry) for entry in self._places.values()]]
        return [name for name, one, other in zip(names, sums, actual, strict=True) if one != f"{other:08x}"]

    def _sum(self, entry: Entry) -> int:
        total, block = 0, memoryview(bytearray(min(_SUMMED, entry.end - entry.begin)))
        for at in range(entry.begin, entry.end, _SUMMED):
            part = block[: entry.end - at]
            self.reader.read_into(part, self._start + at)
            total = zlib.crc32(part, total)
        return total

    def _read_into(self, flat: Array, begin: int) -> None:
        """Fills `flat` with what is at `begin` among the arrays; of small ones many are read at a time."""
        if flat.size > _SMALL:
            self.reader.read_into(flat.data, self._start + begin)
            return
        at = begin - self._ahead_from
        if not 0 <= at <= self._ahead.size - flat.size:
            rest = self.reader.size - self._start - begin  # may be less than the header told, where it was cut off
            self._ahead = np.empty(max(flat.size, min(_AHEAD, rest)), np.uint8)
            self._ahead_from, at = begin, 0
            self.reader.read_into(self._ahead.data, self._start + begin)
        flat[:] = self._ahead[at : at + flat.size]

    def _header(self) -> tuple[dict[str, str], dict[str, Entry], int]:
        size = self.reader.size
        length = int.from_bytes(self.reader.read(0, 8), "little") if size >= 8 else -1
        if size < 8 or (size - 8 < length <= MOST_HEADER and self.reader.read(8, min(1, size - 8)) in (b"", b"{")):
            self._refuse(f"only {size} bytes are there, fewer than its header takes: it was cut off, or never was one")
        if not 2 <= length <= min(size - 8, MOST_HEADER):
            self._refuse("its first eight bytes are not the length of a header")
        text, first = self._apart(self.reader.read(8, length))
        if not header_limits.fits(text, size):
            self._refuse("its header would take far more memory than the file")
        header = parse_json(text, self._refuse, _entry)
        if not isinstance(header, dict):
            self._refuse("its header is not a dictionary")
        metadata = header.pop(_METADATA, {})
        if isinstance(metadata, dict):
            metadata |= first
        if not isinstance(metadata, dict) or not all(type(x) is str for x in metadata.values()):
            self._refuse("its metadata is not a dictionary of strings")
        entries = {name: self._checked(name, pairs) for name, pairs in header.items()}
        self._check_places(entries, size - 8 - length)
        self._places = dict(entries)
        entries.pop(PADDING, None)
        self._ask_library()
        return metadata, entries, 8 + length

    def _apart(self, header: bytes) -> tuple[str, dict[str, str]]:
        """The text of a header, without the string that one of ours begins with, and that string by its name.

        It is JSON in itself, and is held to its own bound when it is parsed.
        """
        if not header_limits.fits_as_text(header, self.reader.size):
            self._refuse("its header would take far more memory than the file")
        try:
            text = header.decode("utf-8")
            match = _FIRST.match(text)
            if match is None:
                return text, {}
            string, end = json.JSONDecoder().raw_decode(text, match.end() - 1)
        except ValueError as error:
            self._refuse(f"its JSON is wrong: {error}"[:200])
        return f'{text[: match.end()]}"{text[end:]}', {match[1]: string}

    def _checked(self, name: str, entry: Any) -> Entry:
        if not isinstance(entry, Entry):
            self._refuse(f"{name!r} has no dtype, shape and data_offsets")
        if entry.dtype is None:
            self._refuse(f"{name!r} is of a dtype that limelight does not have")
        count = 1
        for n in entry.shape:
            count *= n
            if count > 1 << 62:
                self._refuse(f"{name!r} is larger than any file")
        if entry.end - entry.begin != count * entry.dtype.itemsize:
            self._refuse(f"{name!r} has a place of {entry.end - entry.begin} bytes and needs {count} elements")
        return entry

    def _check_places(self, entries: Mapping[str, Entry], size: int) -> None:
        at = 0
        for entry in sorted(entries.values(), key=lambda entry: (entry.begin, entry.end)):
            if entry.begin != at:
                self._refuse("its arrays overlap, or leave gaps")
            at = entry.end
        if at != size:
            self._refuse(f"its arrays end at byte {at} of {size}: it was cut off, or has something behind them")

    def _ask_library(self) -> None:
        library = importlib.import_module("safetensors")  # when first needed: importing limelight does not take it
        try:
            with library.safe_open(str(self.reader.path), framework="np"):
                pass
        except (library.SafetensorError, OSError, ValueError, OverflowError, MemoryError) as error:
            self._refuse(str(error))
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of the library's Rust
                raise
            self._refuse(str(error))

    def _refuse(self, why: str) -> NoReturn:
        raise CheckpointError(f"{self.reader.path} is no safetensors file: {why}")


def _entry(pairs: list[tuple[str, Any]]) -> Any:
    """A dictionary of a header: an array's as an `Entry`, which is smaller; dtype None where limelight has none."""
    made = unique(pairs)
    if made.keys() != {"dtype", "shape", "data_offsets"} or not isinstance(made["dtype"], str):
        return made
    shape, offsets = made["shape"], made["data_offsets"]
    if not _sizes(shape) or not _sizes(offsets) or len(offsets) != 2:
        raise ValueError("a shape or an offset is not made of whole numbers")
    return Entry(DTYPES.get(made["dtype"]), tuple(shape), *offsets)  # type: ignore[arg-type]  # checked by name later


def _sizes(x: Any) -> bool:
    return isinstance(x, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in x)


def unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dictionary of JSON; raises ValueError for a key that occurs twice."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key {key!r} occurs twice")
        made[key] = value
    return made


def parse_json(text: bytes | str, refuse: Callable[[str], NoReturn], pairs: Callable[[Any], Any] = unique) -> Any:
    """JSON, strictly: no NaN, no key twice. What is wrong with it is told to `refuse`, which raises."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(decoded, object_pairs_hook=pairs, parse_constant=_no_constant)
    except RecursionError:
        refuse("its JSON is nested too deeply")
    except ValueError as error:
        refuse(f"its JSON is wrong: {error}"[:200])


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
