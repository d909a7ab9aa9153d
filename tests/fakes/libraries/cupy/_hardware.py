"""A pretended GPU: streams whose work is done when somebody has waited for it, and memory that is handed out in blocks.

Work is computed when it is launched, but nobody may look at it before it is done: each block of memory knows the work
that wrote it and read it last, and streams, events and the host know (by vector clocks) what is done for them. Who
touches memory too early gets a `RaceError`, which real hardware would answer by wrong numbers, now and then.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import Counter, defaultdict

import numpy as np

UNIT = 512
"""Blocks are multiples of so many bytes, as CuPy's are."""
DEVICES = 2
counts = Counter()
"""How often what happened since `counts.clear()`: "launches", "waits" of the host, copies "to device", "to host", and
through how many "staging" buffers of pinned memory."""


def words(text):
    return text.split()


class RaceError(AssertionError):
    """Memory was touched by somebody who does not know the work on it to be done."""


class _Local(threading.local):
    def __init__(self):
        self.device = 0
        self.streams = {}
        self.linalg = "ignore"


local = _Local()
host_clock: Counter = Counter()
"""What the host knows to be done: by stream, how much of its work."""
_copying = []  # copies that read or fill the host's own memory, until they are known to be done
_numbers = itertools.count(2)
_streams = {}


def merge(clock, other):
    for key, value in other.items():
        clock[key] = max(clock[key], value)


class Stream:
    """A queue of work. Work of the null stream, and of any but "non-blocking" ones, waits for each other's."""

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None, _device=None):
        self.device_id = local.device if _device is None else _device
        self.ptr = 0 if null else next(_numbers)
        self.blocking = not non_blocking
        self.clock = Counter()
        self.key = (self.device_id, self.ptr)
        self._outer = []
        _streams[self.key] = self

    def begin(self):
        """Launches a piece of work; returns its number."""
        merge(self.clock, host_clock)
        if self.blocking:
            for other in _streams.values():
                if other.device_id == self.device_id and other.blocking and (self.ptr == 0 or other.ptr == 0):
                    merge(self.clock, other.clock)
        counts["launches"] += 1
        self.clock[self.key] += 1
        return self.key, self.clock[self.key]

    def synchronize(self):
        counts["waits"] += 1
        learn(self.clock)

    @property
    def done(self):
        return all(host_clock[key] >= value for key, value in self.clock.items())

    def record(self, event=None):
        event = Event() if event is None else event
        event.clock = Counter(self.clock)
        return event

    def wait_event(self, event):
        merge(self.clock, event.clock)

    def use(self):
        local.streams[self.device_id] = self
        return self

    def __enter__(self):
        self._outer.append(get_current_stream(self.device_id))
        return self.use()

    def __exit__(self, *exc):
        self._outer.pop().use()

    def __eq__(self, other):
        return isinstance(other, Stream) and self.key == other.key

    def __hash__(self):
        return hash(self.key)


class Event:
    """A place in a stream's queue."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.clock = Counter()

    def record(self, stream=None):
        (stream or get_current_stream()).record(self)

    def synchronize(self):
        counts["waits"] += 1
        learn(self.clock)

    @property
    def done(self):
        return all(host_clock[key] >= value for key, value in self.clock.items())


_null = [Stream(null=True, _device=device) for device in range(DEVICES)]


def get_current_stream(device_id=None):
    device = local.device if device_id is None else device_id
    return local.streams.get(device, _null[device])


def learn(clock):
    """The host has waited: copies that are done by now have filled its memory, and need it no longer."""
    merge(host_clock, clock)
    done = [copy for copy in _copying if host_clock[copy.token[0]] >= copy.token[1]]
    _copying[:] = [copy for copy in _copying if copy not in done]
    for copy in done:
        copy.finish()


class CopyFromHost:
    """Reads pinned memory at some time before it is done: until then nobody may write there."""

    def __init__(self, token, array):
        self.token, self.array, self.bytes = token, array, array.tobytes()

    def finish(self):
        if self.array.tobytes() != self.bytes:
            raise RaceError("pinned memory was written to while it was copied to the device")


class CopyToHost:
    """Fills the host's memory at some time before it is done: until then there is rubbish."""

    def __init__(self, token, target, value):
        self.token, self.target, self.value = token, target, np.array(value)
        target.reshape(-1).view(np.uint8)[:] = 0xA5

    def finish(self):
        self.target[...] = self.value


def begin_copy(copy):
    _copying.append(copy)


# Memory


class Chunk:
    """A piece of the device's memory, with the work that touched it last."""

    def __init__(self, device, stream, nbytes, address):
        self.device, self.stream, self.nbytes, self.address = device, stream, nbytes, address
        self.written = None
        self.read = []


class PooledMemory:
    """A block that is in use. As CuPy's it takes no weak reference."""

    __slots__ = ("chunk", "device_id", "pool", "ptr", "size")

    def __init__(self, pool, chunk):
        self.pool, self.chunk = pool, chunk
        self.size, self.device_id, self.ptr = chunk.nbytes, chunk.device, chunk.address

    def __del__(self):
        self.pool.take_back(self.chunk)


class MemoryPointer:
    __slots__ = ("device_id", "mem", "ptr")

    def __init__(self, mem, offset=0):
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


class MemoryPool:
    """Hands out blocks, and keeps those that come back for the stream on which they were made."""

    def __init__(self):
        self.used, self.peak = Counter(), Counter()
        self.free = defaultdict(list)
        self._next = itertools.count(1)

    def malloc(self, nbytes):
        size = -(-nbytes // UNIT) * UNIT
        device, stream = local.device, get_current_stream()
        kept = self.free[device, stream.ptr, size]
        chunk = kept.pop() if kept else Chunk(device, stream.ptr, size, next(self._next) << 40)
        self.used[device] += size
        self.peak[device] = max(self.peak[device], self.used[device])
        return MemoryPointer(PooledMemory(self, chunk))

    def take_back(self, chunk):
        self.used[chunk.device] -= chunk.nbytes
        self.free[chunk.device, chunk.stream, chunk.nbytes].append(chunk)

    def used_bytes(self):
        return self.used[local.device]

    def free_bytes(self):
        return sum(size * len(kept) for (device, _, size), kept in self.free.items() if device == local.device)

    def total_bytes(self):
        return self.used_bytes() + self.free_bytes()

    def n_free_blocks(self):
        return sum(len(kept) for (device, _, _), kept in self.free.items() if device == local.device)

    def free_all_blocks(self, stream=None):
        for key in [key for key in self.free if key[0] == local.device]:
            del self.free[key]


pool = MemoryPool()
asked_for = weakref.WeakValueDictionary()
"""Arrays by their addresses, for libraries that take an address."""


class PinnedArray(np.ndarray):
    """Memory of the host that does not move, so that the device can copy it by itself."""


class PinnedMemoryPool:
    def n_free_blocks(self):
        return 0

    def free_all_blocks(self):
        pass


pinned_pool = PinnedMemoryPool()


def is_pinned(array):
    while array is not None:
        if isinstance(array, PinnedArray):
            return True
        array = getattr(array, "base", None)
    return False


# Who may touch what


_launching = threading.RLock()  # a driver takes one launch after the other, from whatever threads


def launch(reads, writes, stream=None, peer=False):
    """A piece of work of the current stream that reads chunks and writes others; as `peer` those of another device."""
    with _launching:
        return _launched(reads, writes, stream or get_current_stream(), peer)


def _launched(reads, writes, stream, peer):
    token = stream.begin()
    for chunk in (*reads, *writes):
        if chunk.device != stream.device_id and not peer:
            raise ValueError(
                f"Array device must be same as the current device: array device = {chunk.device} while current = "
                f"{stream.device_id}"
            )
        _need(stream, chunk.written)
    for chunk in writes:
        for earlier in chunk.read:
            _need(stream, earlier)
    for chunk in reads:
        chunk.read.append(token)
    for chunk in writes:
        chunk.written, chunk.read = token, []
    return token


def _need(stream, token):
    if token is not None and stream.clock[token[0]] < token[1]:
        raise RaceError(f"work of the stream {token[0]} is not known to be done on the stream {stream.key}")


def reset():
    """All work is done, no free block is kept, and nothing has happened so far."""
    _copying.clear()
    for stream in list(_streams.values()):
        merge(host_clock, stream.clock)
    pool.free.clear()
    counts.clear()
