"""Which lines copy tensors between devices, how often, and how many bytes?"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from types import TracebackType
from typing import Final, NamedTuple, TypeAlias

from limelight import events
from limelight.core import device_copies
from limelight.explain.retracing.sentence import duration
from limelight.explain.story import Contrast, Place, Story, by_cost
from limelight.user_code.source_line import Source

_Key: TypeAlias = "tuple[str, str, str, Source | None, str]"
_DECISIONS: Final = frozenset(["bool()", "int()", "float()", "complex()", "use as a Python index"])


class Copy(NamedTuple):
    """The copies of one tensor between two devices that one line made for one `cause`; bytes, seconds are those of all.

    `tensor` is what the line calls it, or the variable's name; empty where neither says.

    >>> import limelight as ll
    >>> ll.config.set_virtual_devices(CPU=2)
    >>> x = ll.ones((2, 3))
    >>> with ll.explain.Copies() as copies:
    ...     y = x.to("cpu:1")
    >>> copies.records[0].target, copies.records[0].nbytes
    ('CPU:1', 24)
    """

    source: str
    target: str
    cause: str
    line: Source | None
    times: int
    nbytes: int
    seconds: float = 0.0
    tensor: str = ""

    def __str__(self) -> str:
        return str(self.to_story())

    @property
    def fix(self) -> str:
        """What to write instead; empty where there is nothing better."""
        x = self.tensor if self.tensor.isidentifier() else "x"
        if self.cause == device_copies.PRINTED or (self.cause in device_copies.EXPLICIT and self.times == 1):
            return ""
        if self.cause == device_copies.READ:
            return f"read it once, after the loop: values.append({x}), then ll.stack(values).numpy()"
        if self.cause == device_copies.CONSTANT:
            return "make it once, before the loop"
        if self.cause in _DECISIONS:
            return f"decide where {x} is: ll.where(condition, a, b), or ll.cond in a staged function"
        if self.cause.startswith(device_copies.HOST_ARGUMENT):
            return f"compute sizes and positions on the host, from {x}.shape"
        moved = f'move it once, before the loop, with .to("{self.target}")'
        return f'{moved}; or make it within `with ll.device("{self.target}"):`'

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        many = "a copy" if self.times == 1 else f"{self.times:,} copies"
        of = f" of {self.tensor if self.tensor.startswith('the ') else f'`{self.tensor}`'}" if self.tensor else ""
        return Story(
            "copy",
            f"{many}{of} from {self.source} to {self.target}, {self.nbytes:,} bytes",
            (self.cause,),
            contrasts=(Contrast("device", self.source, self.target),),
            cost=duration(self.seconds) if self.seconds else "",
            seconds=self.seconds,
            count=self.times,
            places=Place.of("line", self.line),
            remedy=self.fix,
        )


class Copies:
    """Within its block, notes what is copied between devices. `records` are `Copy` records, the most bytes first.

    Args:
        forbid: whether a copy that nobody asked for is an error, a DeviceError at its line, on this thread, as with
            `ll.config.copies("error")`. False.

    >>> import limelight as ll
    >>> with ll.explain.Copies() as copies:
    ...     y = ll.ones((2,)) + 1.0
    >>> print(copies)
    nothing was copied between devices
    """

    def __init__(self, forbid: bool = False) -> None:
        self._forbid = forbid
        self._rule = device_copies.rules.override(device_copies.Rules(device_copies.ERROR))
        self._counts: Counter[_Key] = Counter()
        self._bytes: Counter[_Key] = Counter()
        self._seconds: defaultdict[_Key, float] = defaultdict(float)
        self._subscription: events.Subscription | None = None

    @classmethod
    def of(cls, made: Iterable[events.Copied]) -> Copies:
        """What these events tell, as of those that `ll.memory.recent_copies` keeps."""
        copies = cls()
        for event in made:
            copies._note(event)
        return copies

    def __enter__(self) -> Copies:
        self._subscription = events.listen(self._note, events.Copied)
        if self._forbid:
            self._rule.begin(sys._getframe(1))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._forbid:
            self._rule.__exit__(None, None, None)
        if self._subscription is not None:
            self._subscription.close()

    def _note(self, event: events.Event) -> None:
        assert isinstance(event, events.Copied), "nothing else was asked for"
        key = (event.source_device, event.target_device, event.cause, event.source, event.tensor)
        self._counts[key] += 1
        self._bytes[key] += event.nbytes
        self._seconds[key] += event.seconds

    @classmethod
    def recent(cls) -> Copies:
        """Those that the engine remembers: the last of all since the import, whether anybody listened or not."""
        return cls.of(device_copies.recent_copies())

    @property
    def records(self) -> tuple[Copy, ...]:
        """One for each line, tensor, cause and pair of devices."""
        return tuple(
            [
                Copy(*key[:4], self._counts[key], nbytes, self._seconds[key], key[4])
                for key, nbytes in self._bytes.most_common()
            ]
        )

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each record, those that took longest first."""
        return by_cost([record.to_story() for record in self.records])

    def __str__(self) -> str:
        return "\n".join(map(str, self.records)) or "nothing was copied between devices"

    __repr__ = __str__


def copies() -> Copies:
    """The newest copies between devices, at most 512, whether anybody listened or not: by line, with the fix.

    >>> import limelight as ll
    >>> ll.memory.reset()
    >>> ll.explain.copies()
    nothing was copied between devices
    """
    return Copies.recent()
