"""Which lines copy tensors between devices, how often, and how many bytes?"""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Final, NamedTuple

from limelight import events
from limelight.explain.story import Contrast, Place, Story
from limelight.user_code.source_line import Source

_ASKED: Final = ".to()"


class Copy(NamedTuple):
    """The copies from one device to another that one line made for one `cause`: how many, and their bytes in all."""

    source: str
    target: str
    cause: str
    line: Source | None
    times: int
    nbytes: int

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
            places=Place.of("line", self.line),
            remedy="" if self.cause == _ASKED and self.times == 1 else f"{moved}; or {made}",
        )


class Copies:
    """Within its block, notes what is copied between devices. `records` are `Copy` records, the most bytes first.

    >>> import limelight as ll
    >>> with ll.explain.Copies() as copies:
    ...     y = ll.ones((2,)) + 1.0
    >>> print(copies)
    nothing was copied between devices
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, Source | None]] = Counter()
        self._bytes: Counter[tuple[str, str, str, Source | None]] = Counter()
        self._subscription: events.Subscription | None = None

    def __enter__(self) -> Copies:
        self._subscription = events.listen(self._note, events.Copied)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._subscription is not None:
            self._subscription.close()

    def _note(self, event: events.Event) -> None:
        assert isinstance(event, events.Copied), "nothing else was asked for"
        key = (event.source_device, event.target_device, event.cause, event.source)
        self._counts[key] += 1
        self._bytes[key] += event.nbytes

    @property
    def records(self) -> tuple[Copy, ...]:
        """One for each line, cause and pair of devices."""
        return tuple([Copy(*key, self._counts[key], nbytes) for key, nbytes in self._bytes.most_common()])

    @property
    def stories(self) -> tuple[Story, ...]:
        """One for each record."""
        return tuple([record.to_story() for record in self.records])

    def __str__(self) -> str:
        return "\n".join(map(str, self.records)) or "nothing was copied between devices"

    __repr__ = __str__
