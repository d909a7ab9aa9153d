"""Reads the words of a graph's text, one line at a time. See `limelight.graph.tokens` for the grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from limelight.core import devices, dtypes
from limelight.core.spec import GENERATOR, ObjectSpec, Spec, TensorSpec, VariableSpec, known
from limelight.errors import GraphError
from limelight.graph.ir import Literal
from limelight.graph.tokens import read_number

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|inf|nan)")
_WORD: Final = re.compile(r"[A-Za-z_<][\w.<>]*")
_ELEMENT: Final = re.compile(r"\([^)]*\)|[^\s,\[\](){}]+")
_DTYPES: Final = {name for dtype in dtypes.ALL for name in (dtype.name, dtypes.short(dtype))}
_CONSTANTS: Final = {"None": None, "True": True, "False": False, "nan": float("nan"), "inf": float("inf")}


MOST_NESTED: Final = 100
"""Parentheses and brackets of a parameter may be nested so deeply: reading, and what follows, is recursive."""


class Lexer:
    """A place in one line of text. `function` finds the staged function of a name."""

    def __init__(self, line: str, function: Callable[[str], Any]) -> None:
        self.line = line
        self.at = 0
        self._function = function
        self._depth = 0

    # Small pieces

    def skip(self) -> None:
        while self.line[self.at : self.at + 1] == " ":
            self.at += 1

    def peek(self, text: str) -> bool:
        self.skip()
        return self.line.startswith(text, self.at)

    def take(self, text: str) -> bool:
        """Moves past `text` if it stands here."""
        is_here = self.peek(text)
        if is_here:
            self.at += len(text)
        return is_here

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise GraphError(f"expected {text!r} at {self.rest()!r}")

    def match(self, pattern: re.Pattern[str]) -> str | None:
        self.skip()
        match = pattern.match(self.line, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def rest(self) -> str:
        return self.line[self.at :]

    def done(self) -> bool:
        self.skip()
        return self.at >= len(self.line)

    def listed(self, item: Callable[[], Any], end: str) -> list[Any]:
        """Items separated by commas up to `end`, which is consumed."""
        if self._depth == MOST_NESTED:
            raise GraphError(f"parentheses are nested more than {MOST_NESTED} levels deep")
        self._depth += 1
        items: list[Any] = []
        while not self.take(end):
            items.append(item())
            if not self.take(","):
                self.expect(end)
                break
        self._depth -= 1
        return items

    # Words

    def name(self) -> str:
        """A plain word or a quoted string."""
        name = self.string() if self.peek('"') else self.match(_WORD)
        if name is None:
            raise GraphError(f"expected a name at {self.rest()!r}")
        return name

    def string(self) -> str:
        quoted = self.match(_STRING)
        if quoted is None:
            raise GraphError(f"expected a string at {self.rest()!r}")
        text: str = json.loads(quoted)
        return text

    def value(self) -> Any:
        """One static parameter."""
        if self.take("("):
            return tuple(self.listed(self.value, ")"))
        if self.take("..."):
            return Ellipsis
        if self.take("["):
            return self.listed(self.value, "]")
        if self.take("@"):
            return self._function(self.name())
        if self.peek('"'):
            return self.string()
        if self.peek("<"):
            raise GraphError(f"{self.rest()!r} stands for a Python object that text cannot hold")
        return self._number_or_word()

    def _number_or_word(self) -> Any:
        number = self.match(_NUMBER)
        if number is not None:
            return int(number) if number.lstrip("+-").isdigit() else float(number)
        start = self.at
        word = self.match(_WORD)
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if word in _CALLS:
            return _CALLS[word](self)
        self.at = start
        return self._typed_value()

    def _typed_value(self) -> Any:
        """A dtype, a NumPy scalar, a spec or a literal: all begin with a type."""
        start = self.at
        word = self.match(_WORD)
        if word in ("var", "frozen", "object") or self.line[self.at : self.at + 1] == "[":
            self.at = start
            spec = self.spec()
            return self._literal(spec) if isinstance(spec, TensorSpec) and not self._at_end() else spec
        dtype = _dtype(word or self.rest())
        if self.take("("):
            number = read_number(self.match(_ELEMENT) or "", dtype)
            self.expect(")")
            return dtype.type(number)
        return dtype

    def _at_end(self) -> bool:
        return self.done() or self.line[self.at] in ",})]"

    # Specs and literals

    def spec(self) -> Spec:
        """The type of a value."""
        word = self.match(_WORD)
        if word == "object":
            return ObjectSpec(self.name())
        if word == "generator":
            return GENERATOR
        if word in ("var", "frozen"):
            if word == "frozen":
                self.expect("var")
            inner = self._tensor_spec(self.match(_WORD))
            return VariableSpec(inner.shape, inner.dtype, word == "var")
        return self._tensor_spec(word)

    def _tensor_spec(self, word: str | None) -> TensorSpec:
        """The rest of a tensor's type, which begins with the dtype `word`."""
        dtype = _dtype(word or self.rest())
        self.expect("[")
        return known(tuple(self.listed(self._size, "]")), dtype)

    def _size(self) -> int | None:
        if self.take("?"):
            return None
        digits = self.match(_NUMBER) or ""
        if not digits.isdigit():
            raise GraphError(f"expected a size or '?' at {digits + self.rest()!r}")
        return int(digits)

    def _literal(self, spec: TensorSpec) -> Literal:
        if self.peek("<"):
            raise GraphError(f"the literal {spec} was left out of the text; print it with show(graph, literals='full')")
        elements: list[Any] = []
        try:
            self._elements(spec, elements)
            array = np.array(elements, dtype=spec.dtype).reshape([-1 if n is None else n for n in spec.shape])
        except (ValueError, OverflowError) as error:
            raise GraphError(f"the elements do not make a literal {spec}: {error}") from None
        return Literal(array)

    def _elements(self, spec: TensorSpec, into: list[Any]) -> None:
        depth = 0
        while True:
            if self.take("["):
                depth += 1
            elif self.take("]"):
                depth -= 1
            elif not self.take(","):
                token = self.match(_ELEMENT)
                if token is None:
                    raise GraphError(f"expected elements of {spec} at {self.rest()!r}")
                into.append(read_number(token, spec.dtype))
            if depth == 0:
                return


def _dtype(word: str) -> dtypes.DType:
    if word not in _DTYPES:  # NumPy would take other names, too
        names = ", ".join([dtypes.short(dtype) for dtype in dtypes.ALL])
        raise GraphError(f"{word!r} is not a dtype; write one of {names}")
    return dtypes.dtype(word)


def _arguments(lexer: Lexer) -> list[Any]:
    lexer.expect("(")
    return lexer.listed(lexer.value, ")")


_CALLS: Final[dict[str, Callable[[Lexer], Any]]] = {
    "complex": lambda lexer: complex(*_arguments(lexer)),
    "slice": lambda lexer: slice(*_arguments(lexer)),
    "bytes": lambda lexer: bytes.fromhex(*_arguments(lexer)),
    "device": lambda lexer: devices.find(*_arguments(lexer)),
}
