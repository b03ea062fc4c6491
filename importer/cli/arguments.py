"""Parse the command line: a first word that is a command is the command, any other is a reference to
import.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from importer.cli import options
from importer.cli.commands import COMMANDS, GROUPS, MEANT, action, described
from importer.cli.messages import Command
from importer.cli.options import INSTALLED
from importer.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

IMPORT = "import"
ANYWHERE = ("-q", "--quiet", "-v", "--verbose")
UNKNOWN, CHOICE = "unrecognized arguments", "invalid choice: '"  # of argparse's messages
WORD = re.compile("[a-z][a-z-]*")  # no reference: one has a slash
DESCRIPTION = "From a Hugging Face model id to a serving config that was proved on a real engine."
EXAMPLES = """\
examples:
  importer Qwen/Qwen3-8B                        decide, review, write models/qwen3-8b.yaml
  importer Qwen/Qwen3-8B@b968826d --yes         a pinned commit, accepted without asking
  importer ./my-model --backend mlx --validate  a directory, proved on mlx-lm
  importer Qwen/Qwen3-8B --dry-run --json       everything but writing; one line of JSON
  importer Qwen/Qwen3-8B --set temperature=0    your own value, shown as yours
  importer --from models.txt --dry-run          many at a time, one line of JSON for each
"""
COMMON = frozenset((
    "--name", "--dir", "--backend", "--set", "--device", "--dry-run", "--json", "--yes", "--validate",
    "--help-all",
))  # fmt: skip
OTHERS = "'importer COMMAND --help' has a command's options, 'importer --help-all' every option and command."
EXITS = """\

Exit codes: 0 done, 1 a probe failed, a recheck found changes, a comparison got worse, or the doctor found a
blocker, 2 usage, 3 Hub, 4 repository, 5 document, 6 engine, 7 service, 8 a cluster or another machine,
70 a fault of the importer, 75 the machine is too busy, 130 stopped. Of many, the first failure's.
A pipe that is closed early changes nothing.
"""


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are UsageErrors, so that they look like all others; each has -q and -v."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        how_much = self.add_mutually_exclusive_group()
        for short, name, verbosity, text in (
            ("-q", "--quiet", -1, "print errors and results alone"),
            ("-v", "--verbose", 1, "print each step, and the traceback of a fault of importer itself"),
        ):
            how_much.add_argument(
                short, name, dest="verbosity", action="store_const", const=verbosity,
                default=argparse.SUPPRESS, help=text,
            )  # fmt: skip

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and leaving."""
        start, _, rest = message.partition(": ")
        near = None
        if start.startswith("argument "):
            option, problem = start.removeprefix("argument "), rest
            if rest.startswith(CHOICE):
                near = _nearest(rest.split("'")[1], self.actions)
        elif start == UNKNOWN:
            option, problem = rest, "is not expected here"
            near = _nearest(rest.split()[0], self.options)
        else:
            required = start == "the following arguments are required"
            option, problem = rest or self.prog, "is required" if required else start
        raise UsageError(
            "bad-option", option=option, problem=problem, **({} if near is None else {"near": near})
        )

    @property
    def options(self) -> frozenset[str]:
        """Return every option."""
        return frozenset(text for action in self._actions for text in action.option_strings)

    @property
    def actions(self) -> Mapping[str, Parser]:
        """Return the parser of each action, such as 'list' of 'engine'."""
        found = (action.choices for action in self._actions if isinstance(action.choices, dict))
        return {name: sub for choices in found for name, sub in choices.items()}

    @property
    def valued(self) -> frozenset[str]:
        """Return the options that take a value."""
        options = (a for a in self._actions if a.nargs not in (0, "?"))
        return frozenset(text for action in options for text in action.option_strings)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help and version; argparse's own would pass over a standard output that is full."""
        (file or sys.stdout).write(message)


def command_first(argv: Sequence[str]) -> list[str]:
    """Return the arguments with a -q or -v before the command behind it."""
    at = next((at for at, word in enumerate(argv) if word not in ANYWHERE), 0)
    return [argv[at], *argv[:at], *argv[at + 1 :]] if argv and argv[at] in COMMANDS else list(argv)


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the arguments as a namespace whose ``command`` names what to do; none are those of ``--help``.

    Raises UsageError.
    """
    argv = argv or ["--help"]
    command, words = _split(argv)
    bare = argv[:1] != [command]
    if bare and (near := _meant(argv)):
        raise _no_command(argv[0], near=f"'importer {near}'")
    if command == IMPORT:  # a bare --validate must not swallow the reference after it
        words = [f"--validate={INSTALLED}" if w == "--validate" else w for w in words]
    made = parser(command, bare=bare)
    try:
        parsed, unknown = made.parse_known_args(words)
        if unknown:
            _innermost(made, words).error(f"{UNKNOWN}: {' '.join(unknown)}")
    except UsageError:
        if bare and argv and WORD.fullmatch(argv[0]):
            raise _no_command(argv[0]) from None
        raise
    parsed.command = command
    return parsed


def _no_command(word: str, **near: str) -> UsageError:
    return UsageError("bad-option", option=word, problem="is no command", command="importer", **near)


def _meant(argv: list[str]) -> str | None:
    """Return the command that a first word is near to; a word that names a folder here is a reference."""
    if not argv or not WORD.fullmatch(argv[0]):
        return None
    from pathlib import Path

    if Path(argv[0]).is_dir():
        return None
    meant = {word: f"{name} {word}" for name in COMMANDS for word in parser(name).actions}
    meant |= MEANT | {name: name for name in COMMANDS}
    found = _nearest(argv[0], meant)
    return None if found is None else meant[found]


def _nearest(word: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, 1, 0.7)), None)


def running(argv: list[str]) -> Command:
    """Return the command that is run, for its next steps."""
    command, words = _split(argv)
    made = _innermost(parser(command), words)
    return Command(made.prog, made.options, _dir(words))


def _dir(words: list[str]) -> str:
    """Return the option with the documents' folder, with a space before it; nothing for the usual one."""
    import shlex

    made = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    options.folder(made)
    try:
        folder = made.parse_known_args(words)[0].folder
    except argparse.ArgumentError:  # no value, of which the command itself complains
        return ""
    return "".join(f" {shlex.quote(word)}" for word in options.in_folder(folder))


def _innermost(made: Parser, words: Iterable[str]) -> Parser:
    """Return the parser of the action that the words name, such as that of 'keys' of 'info'."""
    for word in words:
        made = made.actions.get(word, made)
    return made


def reference(argv: list[str]) -> str | None:
    """Return what was typed as the reference or the document's name, even where the rest makes no sense."""
    command, words = _split(argv)
    if not COMMANDS[command].names_one:
        return None
    valued = parser(command).valued
    free = [w for before, w in zip(["", *words], words, strict=False) if before not in valued]
    if "--" in free:
        return next(iter(free[free.index("--") + 1 :]), None)
    return next((w for w in free if w == "-" or not w.startswith("-")), None)


def parser(command: str, *, bare: bool = False) -> Parser:
    """Return a command's own parser; ``bare`` is that of an import without its command word."""
    if bare and command == IMPORT:
        made = _bare()
    else:
        about = described(COMMANDS[command].help)
        made = Parser(prog=f"importer {command}", description=about, allow_abbrev=False)
    action(command).add_arguments(made)
    return made


def _split(argv: list[str]) -> tuple[str, list[str]]:
    """Return the command and its arguments."""
    return (argv[0], argv[1:]) if argv and argv[0] in COMMANDS else (IMPORT, list(argv))


class _Bare(Parser):
    """The parser of an import without its command word: its help has what an ordinary day needs."""

    def format_help(self) -> str:
        """Return the common options, and the names of the commands."""
        common = [action for action in self._actions if COMMON & {*action.option_strings}]
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        formatter.start_section("options")
        formatter.add_arguments(common)
        formatter.end_section()
        rest = [name for name in COMMANDS if name != IMPORT and name not in sum(GROUPS.values(), ())]
        groups = {**GROUPS, "more": rest}
        commands = [f"  {group + ':':<11}{' '.join(names)}" for group, names in groups.items()]
        usage = "usage: importer REFERENCE [OPTION...]\n       importer COMMAND ..."
        return "\n".join(
            [usage, "", formatter.format_help(), EXAMPLES, "commands:", *commands, "", OTHERS, ""]
        )


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print every option and every command."""
        sys.stdout.write(Parser.format_help(cast("Parser", parser)))
        parser.exit()


def _bare() -> Parser:
    lines = [f"  importer {f'{name} {c.usage}'.strip():<34} {c.help}" for name, c in COMMANDS.items()]
    made = _Bare(
        prog="importer",
        description=DESCRIPTION,
        epilog="\n".join([EXAMPLES, "commands:", *lines]) + "\n" + EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--help-all", action=_HelpAll, nargs=0, help="every option and every command")
    return made
