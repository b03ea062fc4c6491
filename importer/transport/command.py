"""The command of ``--on`` as an argv list: a command line such as ``ssh gpu1 --``, or a preset and its place.

No shell reads the text here. ``presets.toml`` has the presets, as in ``ssh:gpu1 -p 2222``.
"""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from importer.errors import RemoteError, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

LONGEST = 10_000  # characters
FAR_END = ("importer", "admin", "run-task")
NAMED = re.compile(r"(?P<preset>[a-z0-9]+):(?P<place>.*)", re.DOTALL)
OPTIONS, BEHIND = "{options}", "--"


class CommandReason(ReasonKind):
    """Why a text is no command."""

    EMPTY = "it is empty"
    QUOTES = "a quotation mark or a backslash at its end is left open"
    UNPRINTABLE = "it is too long, or has characters that cannot be printed"
    NO_PRESET = "{name} is no preset; presets are {presets}"
    NO_PLACE = "the preset {name} needs a place behind its colon that begins with no dash"


@frozen
class RemoteCommand:
    """A command that runs the words behind it elsewhere.

    ``where`` is shown and kept: the preset with its place, or the program. Other words may hold secrets.
    """

    where: str
    words: tuple[str, ...]

    def argv(self) -> list[str]:
        """Return the whole command for one run; raises RemoteError("program-missing")."""
        program = shutil.which(self.words[0])
        if program is None:
            raise RemoteError("program-missing", where=self.where, program=self.words[0])
        run = secrets.token_hex(5)
        named = (word.replace("{id}", run) for word in self.words[1:])
        return [str(Path(program).absolute()), *named, *FAR_END]


def parse_command(text: str) -> RemoteCommand:
    """Return the command of a text; raises UsageError("bad-target")."""
    if not text.isprintable() or len(text) > LONGEST:
        raise _bad(text, CommandReason.UNPRINTABLE)
    try:
        first, *others = shlex.split(text) or [""]
    except ValueError:
        raise _bad(text, CommandReason.QUOTES) from None
    if not first:
        raise _bad(text, CommandReason.EMPTY)
    named = NAMED.fullmatch(first)
    if named is None:
        return RemoteCommand(Path(first).name or first, (first, *others))
    name, place = named["preset"], named["place"]
    if name not in presets():
        raise _bad(text, CommandReason.NO_PRESET, name=name, presets=(*presets(),))
    if not place or place.startswith("-"):
        raise _bad(text, CommandReason.NO_PLACE, name=name)
    return RemoteCommand(first, (*_filled(presets()[name], place, others),))


def _filled(words: Sequence[str], place: str, others: Sequence[str]) -> Iterator[str]:
    """Yield a preset's words with its place and the options; what stands behind a ``--`` comes last."""
    at = others.index(BEHIND) if BEHIND in others else len(others)
    for word in words:
        yield from others[:at] if word == OPTIONS else [word.replace("{place}", place)]
    yield from others[at + 1 :]


@cache
def presets() -> dict[str, list[str]]:
    """Return the words of each preset by its name."""
    text = files("importer.transport").joinpath("presets.toml").read_text("utf-8")
    return {name: shlex.split(line) for name, line in tomllib.loads(text).items()}


def _bad(text: str, reason: CommandReason, **fields: object) -> UsageError:
    return UsageError("bad-target", target=text[:200], problem=Reason(reason, **fields))
