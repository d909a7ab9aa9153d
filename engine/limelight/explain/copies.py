"""Which lines copy tensors between devices, how often, and how many bytes?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from contextvars import Token
from types import TracebackType
from typing import NamedTuple

from limelight import events
from limelight.core import device_copies
from limelight.explain.retracing.sentence import duration
from limelight.explain.story import Contrast, Place, Story, by_cost
from limelight.user_code.source_line import Source


class Copy(NamedTuple):
    """The copies from one device to another that one line made for one `cause`; bytes and seconds are those of all."""

    source: str
    target: str
    cause: str
    line: Source | None
    times: int
    nbytes: int
    seconds: float = 0.0

    def __str__(self) -> str:
        return str(self.to_story())

    def to_story(self) -> Story:
        """The parts of the sentence, and of the card."""
        many = "a copy" if self.times == 1 else f"{self.times:,} copies"
        moved = f'move it once, before the loop, with .to("{self.target}")'
        made = f'make it within `with ll.device("{self.target}"):`'
        return Story(
            "copy",
            f"{many} from {self.source} to {self.target}, {self.nbytes:,} bytes",
            (self.cause,),
            contrasts=(Contrast("device", self.source, self.target),),
            cost=duration(self.seconds) if self.seconds else "",
            seconds=self.seconds,
            count=self.times,
            places=Place.of("line", self.line),
            remedy="" if self.cause == device_copies.ASKED and self.times == 1 else f"{moved}; or {made}",
        )


class Copies:
    """Within its block, notes what is copied between devices. `records` are `Copy` records, the most bytes first.

    Args:
        forbid: whether a copy that nobody asked for (by `.to(...)`) is an error, a DeviceError at its line, on this
            thread. False.

    >>> import limelight as ll
    >>> with ll.explain.Copies() as copies:
    ...     y = ll.ones((2,)) + 1.0
    >>> print(copies)
    nothing was copied between devices
    """

    def __init__(self, forbid: bool = False) -> None:
        self._forbid = forbid
        self._before: Token[bool] | None = None
        self._counts: Counter[tuple[str, str, str, Source | None]] = Counter()
        self._bytes: Counter[tuple[str, str, str, Source | None]] = Counter()
        self._seconds: defaultdict[tuple[str, str, str, Source | None], float] = defaultdict(float)
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
        self._before = device_copies.forbidden.set(self._forbid)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._before is not None:
            device_copies.forbidden.reset(self._before)
            self._before = None
        if self._subscription is not None:
            self._subscription.close()

    def _note(self, event: events.Event) -> None:
        assert isinstance(event, events.Copied), "nothing else was asked for"
        key = (event.source_device, event.target_device, event.cause, event.source)
        self._counts[key] += 1
        self._bytes[key] += event.nbytes
        self._seconds[key] += event.seconds

    @classmethod
    def recent(cls) -> Copies:
        """Those that the engine remembers: the last of all since the import, whether anybody listened or not."""
        return cls.of(device_copies.recent_copies())

    @property
    def records(self) -> tuple[Copy, ...]:
        """One for each line, cause and pair of devices."""
        return tuple(
            [Copy(*key, self._counts[key], nbytes, self._seconds[key]) for key, nbytes in self._bytes.most_common()]
        )

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each record, those that took longest first."""
        return by_cost([record.to_story() for record in self.records])

    def __str__(self) -> str:
        return "\n".join(map(str, self.records)) or "nothing was copied between devices"

    __repr__ = __str__
