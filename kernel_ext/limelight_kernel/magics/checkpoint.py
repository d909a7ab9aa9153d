"""`%checkpoint` shows what is in a file, how it is matched with an object, and how two files differ."""

from __future__ import annotations

import os
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import checkpoint as checkpoints
from limelight.errors import ArgumentError, CheckpointError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import LimelightMagic
from limelight_widgets.views.checkpoint import matched


@magics_class
class CheckpointMagic(LimelightMagic):
    """`%checkpoint`."""

    @magic_arguments()
    @argument("path", nargs="?", metavar="PATH", help="a file, or a name of the notebook that means one or a status")
    @argument("other", nargs="?", metavar="OBJECT", help="a checkpoint or a module to match it with; or a second file")
    @argument("--check", action="store_true", help="hold all bytes of the file against its checksums, too")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def checkpoint(self, line: str) -> Any:
        """Show what is in a checkpoint, how it would be matched with an object, or how two differ; nothing is restored.

            %checkpoint run/model.safetensors
            %checkpoint run/model.safetensors model
            %checkpoint run/model-1.safetensors run/model-2.safetensors
            %checkpoint status
            %checkpoint run/model.safetensors --check

        From Python: limelight_widgets.checkpoint(path, object), limelight.checkpoint.contents(path, check=True),
        .preview(path, object), .compare(path, path), status.tree(); checkpoint.restore(path, verify=True)
        """
        given = arguments.parse(self.checkpoint, line)
        if given.path is None:
            return self._nothing(given, _WHICH_FILE)
        try:
            view = self._view(
                arguments.unquoted(given.path), arguments.unquoted(given.other or "") or None, given.check
            )
        except (CheckpointError, ArgumentError) as error:
            raise UsageError(f"%checkpoint: {error.bare}") from None
        return self._show(given, view)

    def _view(self, path: str, other: str | None, check: bool) -> views.CheckpointView:
        named = self._named(path)
        if check and (other is not None or not (named is None or isinstance(named, (str, os.PathLike)))):
            raise UsageError("%checkpoint: --check is for one file: %checkpoint run/model.safetensors --check")
        if isinstance(named, checkpoints.RestoreStatus):
            return views.checkpoint(named)
        if isinstance(named, checkpoints.CheckpointManager):
            raise UsageError(f"%checkpoint: {path} is a manager of many files: name one, such as {_newest(named)}")
        if not (named is None or isinstance(named, (str, os.PathLike))):
            raise UsageError(
                f"%checkpoint: {path} is a {type(named).__name__}; a file's name, or a status, comes first"
            )
        file = path if named is None else named
        if other is None:
            return views.checkpoint(file, check=check)
        target = self._named(other)
        if target is None and not os.path.exists(other):
            target = self.session.value(other)
        if target is None or isinstance(target, (str, os.PathLike)):
            return views.checkpoint(file, other if target is None else target)
        return matched(file, target, lambda x: _checkpoint_of(file, other, x))

    def _named(self, word: str) -> Any:
        """The object of the notebook that a word means, where it is not a file's name."""
        return None if os.path.exists(word) else self.shell.user_ns.get(word)


_WHICH_FILE: Final = (
    "Which file? Write %checkpoint run/model.safetensors; with an object behind it, %checkpoint "
    "run/model.safetensors model, what restoring would do to that."
)


def _newest(manager: checkpoints.CheckpointManager) -> str:
    newest = manager.newest
    return "checkpoint-1.safetensors, once there is one" if newest is None else str(newest.path)


def _checkpoint_of(file: Any, word: str, target: Any) -> checkpoints.Checkpoint:
    """What is to be matched with the root of a file: an object by the name that it has there, if that can be told."""
    if isinstance(target, checkpoints.CheckpointManager):
        return target.checkpoint
    if isinstance(target, checkpoints.Checkpoint):
        return target
    if not checkpoints.has_state(target):
        raise UsageError(
            f"%checkpoint: {word} is a {type(target).__name__}, which has no state to restore: name a checkpoint, a "
            "module or a variable"
        )
    name, saved = word.rpartition(".")[2], checkpoints.root_names(file)
    if name not in saved:
        fitting = saved if len(saved) == 1 else checkpoints.saved_as(file, target)
        if len(fitting) != 1:
            raise UsageError(_which(file, word, fitting or saved, fits=bool(fitting)))
        name = fitting[0]
    return checkpoints.Checkpoint(**{name: target})


def _which(file: Any, word: str, names: list[str], *, fits: bool) -> str:
    """What to write where it cannot be told what of a file an object is to be matched with."""
    listed = ", ".join(f"`{name}`" for name in names)
    why = f"{word} fits {listed} of it alike" if fits else f"it has {listed or 'nothing'}, and {word} fits none of them"
    first = names[0] if names else "model"
    return (
        f"%checkpoint: nothing in {file} is called {word}; {why}. Say which is meant: "
        f"c = ll.Checkpoint({first}={word}), then %checkpoint {file} c"
    )
