"""Options of several commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Self

from importer import config

FOLDER = "models"  # the documents' folder where none is named
MOST = 100_000_000  # sequences, or tokens of one
MOST_ANSWERS = 20  # to each question of a score
INSTALLED = "installed"  # the value of a bare --validate: the engine that the document names


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
        default=FOLDER,
        help="the documents' folder (default: models/)",
    )


def fitting(parser: argparse.ArgumentParser) -> None:
    """Add the device to write for, and its memory."""
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="fit the settings to this device, 8xNAME for eight; 'importer devices' lists all "
        "(default: IMPORTER_DEVICE, else no limits of any device)",
    )
    parser.add_argument("--memory", metavar="SIZE", help="with so much memory, such as 48GiB (of each card)")
    parser.add_argument(
        "--goal",
        choices=("latency", "throughput", "context"),
        help="lay the model out for fast answers, for many, or for long ones",
    )
    parser.add_argument("--concurrency", metavar="N", type=count, help="hold N sequences at the same time")
    parser.add_argument("--context", metavar="N", type=count, help="of N tokens each, prompt and answer")


def engine_version(parser: argparse.ArgumentParser) -> None:
    """Add the version whose parsers are written."""
    parser.add_argument("--engine-version", metavar="VERSION", help="write for this version's parsers")


def frontend(parser: argparse.ArgumentParser) -> None:
    """Add the frontend of vLLM."""
    parser.add_argument(
        "--frontend",
        choices=("python", "rust"),
        help="the server of vLLM 0.33 and later to write for (default: as at the last import, else python)",
    )


def offline(parser: argparse.ArgumentParser) -> None:
    """Add ``--offline``."""
    parser.add_argument("--offline", action="store_true", help="use what is cached; no request to the Hub")


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


def answers(text: str) -> int:
    """Return the number of answers to each question of the score, for argparse."""
    return _number(text, MOST_ANSWERS)


def port(text: str) -> int:
    """Return a port's number, for argparse."""
    return _number(text, 65535)


def _number(text: str, most: int, form: str = "") -> int:
    found = config.number(text, most)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {most:{form}}")
    return found
