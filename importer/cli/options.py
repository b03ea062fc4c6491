"""Options of several commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, cast

from importer import config
from importer.app.request import MOST, OPTIONS, ImportOptions, Option

# The command line's own words for options of an import.
HELP = {
    "backend": "the engine to write for (default: as in the last import, else IMPORTER_BACKEND, else auto)",
    "frontend": "the server of vLLM 0.33 and later to write for (default: as in the last import, "
    "else python)",
    "settings": "your own value, now and at later imports; repeatable; 'importer info keys' lists the keys",
    "unset": "forget an earlier --set, --backend or --device; repeatable",
    "device": "fit the settings to this device, 8xNAME for eight; 'importer info devices' lists all "
    "(default: IMPORTER_DEVICE, else no device limits)",
    "memory": "memory limit of each card, such as 48GiB",
    "goal": "optimise for fast answers, many answers, or long contexts",
    "concurrency": "concurrent requests that must fit in memory",
    "context": "tokens of each request, prompt and answer",
    "template": "a chat template with tools for a model without: json, own-calls, repository:NAME, "
    "or a file; as-written, as a validation saw the model write its calls",
}
INSTALLED = "installed"  # the value of a bare --validate: the engine that the document names


FIRST = "models"  # the folder that a first import makes


def documents() -> str:
    """Return the documents' folder where none is named."""
    return config.default("dir") or FIRST


def in_folder(folder: str) -> list[str]:
    """Return the options that name the documents' folder in a command; none for the usual one."""
    return [] if folder == documents() else ["--dir", folder]


class Names(tuple[str, ...]):
    """The choices that ``--help`` shows; an entry point of a package in ``importer.GROUP`` is valid, too."""

    group: str

    def __new__(cls, group: str, names: Iterable[str]) -> Self:
        made = super().__new__(cls, names)
        made.group = f"importer.{group}"
        return made

    def __contains__(self, name: object, /) -> bool:
        from importlib.metadata import entry_points

        return super().__contains__(name) or name in entry_points(group=self.group).names


def folder(parser: argparse.ArgumentParser) -> None:
    """Add ``-d/--dir``, the documents' folder."""
    parser.add_argument(
        "-d",
        "--dir",
        metavar="DIR",
        dest="folder",
        default=documents(),
        type=filled,
        help="the documents' folder (default: IMPORTER_DIR, else models/)",
    )


def of_import(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add declared options of an import, in this order."""
    for name in names:
        option = OPTIONS[name]
        parser.add_argument(option.flag, dest=name, help=HELP.get(name, option.about), **_form(option))


def _form(option: Option) -> dict[str, Any]:
    """Return how argparse reads an option."""
    if bool in option.kinds:
        return {"action": "store_true"}
    if option.words:
        return {"choices": option.words}
    form = {"metavar": option.metavar}
    if str in option.kinds:
        return form | {"type": filled}
    return form | ({"type": count} if int in option.kinds else {"action": "append", "default": []})


def chosen(arguments: argparse.Namespace) -> ImportOptions:
    """Return the options of an import that a command has; argparse has read them."""
    return cast("ImportOptions", {n: getattr(arguments, n) for n in OPTIONS if hasattr(arguments, n)})


def json(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=text)


def explain(parser: argparse.ArgumentParser) -> None:
    """Add ``--explain``."""
    parser.add_argument(
        "--explain", action="store_true", help="print every reason, the evidence, the fit and the proof"
    )


def count(text: str) -> int:
    """Return a whole number above zero, for argparse."""
    return _number(text, MOST, ",")


def days(text: str) -> int:
    """Return a number of days for argparse."""
    return _number(text, 10_000)


def port(text: str) -> int:
    """Return a port's number, for argparse."""
    return _number(text, 65535)


def filled(text: str) -> str:
    """Return a text as typed, for argparse; an empty one names nothing."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def place(text: str) -> str | None:
    """Return the place of an output as typed, for argparse; ``None`` for ``-``, that is standard output."""
    return None if text == "-" else filled(text)


def document(text: str) -> str:
    """Return NAME|FILE as typed, for argparse; a path that ends in no name is none of a document."""
    if not Path(text).name:
        raise argparse.ArgumentTypeError("must name a document")
    return text


def makers(text: str) -> list[str]:
    """Return the kinds of devices of these makers, for argparse."""
    from importer.memory.devices import BY_MAKER

    if unknown := [name for name in filled(text).split(",") if name not in BY_MAKER]:
        known = ", ".join(BY_MAKER)
        raise argparse.ArgumentTypeError(f"invalid maker: {', '.join(unknown)} (choose from {known})")
    return [kind for name, kind in BY_MAKER.items() if name in text.split(",")]


def _number(text: str, most: int, form: str = "") -> int:
    found = config.number(text, most)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {most:{form}}")
    return found
