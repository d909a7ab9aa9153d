"""Inputs that are named on the line of `%%stage`: their specs, and whether the cell reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from limelight.core.spec import TensorSpec
from limelight_kernel.line.arguments import did_you_mean, unquoted


def specs_from(shell: InteractiveShell, texts: Iterable[str]) -> tuple[tuple[str, TensorSpec], ...]:
    """The specs in "x=ll.TensorSpec([None, 64])", evaluated in the notebook.

    Raises UsageError, one line, for what is no such expression.
    """
    specs: dict[str, TensorSpec] = {}
    for text in map(unquoted, texts):
        if "=" not in text and "**" not in text:
            raise UsageError(
                f"%%stage --spec: {text!r} names no input and spec: write {_example(text)}=ll.TensorSpec([None, 64])"
            )
        try:
            written = eval(f"dict({text})", shell.user_global_ns, shell.user_ns)
        except Exception as error:  # noqa: BLE001  # whatever the expression raises is the user's to read
            problem = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise UsageError(f"%%stage --spec {text!r}: {problem}; write x=ll.TensorSpec([None, 64])") from None
        for name, spec in written.items():
            if not isinstance(spec, TensorSpec):
                kind = type(spec).__name__
                raise UsageError(
                    f"%%stage --spec: {name} is a {kind}, not a spec; write {name}=ll.TensorSpec([None, 64])"
                )
            if not spec.has_rank:
                raise UsageError(f"%%stage --spec: {name} has no rank; write {name}=ll.TensorSpec([None, 64])")
            specs[name] = spec
    return tuple(specs.items())


def nameable(values: Mapping[str, object]) -> list[str]:
    """The inputs that a call may well give: modules are what the code is written with."""
    return [name for name, value in values.items() if not isinstance(value, ModuleType)]


def _example(text: str) -> str:
    return text if text.isidentifier() else "x"


def check_known(names: Iterable[str], values: Mapping[str, object], flag: str) -> None:
    """Raises UsageError for names that are no inputs of the cell."""
    for name in names:
        if name not in values:
            known = sorted(nameable(values))
            hint = did_you_mean(name, known) or f"; its inputs are {', '.join(known) or 'none'}"
            raise UsageError(f"%%stage {flag}: the cell reads no {name!r}{hint}")
