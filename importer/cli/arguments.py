"""What can be typed. A first word that is a command is the command; anything else is a reference."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from importer import __version__, config
from importer.cli import service_arguments
from importer.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COMMANDS = (
    "fill",
    "match",
    "list",
    "show",
    "review",
    "approve",
    "recheck",
    "validate",
    "report",
    "export",
    "engine",
    "doctor",
    "serve",
    "worker",
    "keys",
)
NAMING = (
    "fill",
    "show",
    "review",
    "approve",
    "recheck",
    "validate",
    "report",
    "export",
    "doctor",
)  # commands on one document
INSTALLED = "installed"  # what a bare --validate means: the engine the document names

EXAMPLES = """\
examples:
  importer Qwen/Qwen3-8B                        decide, review, write models/qwen3-8b.yaml
  importer Qwen/Qwen3-8B@b968826d --yes         a pinned commit, accepted without asking
  importer ./my-model --backend mlx --validate  a directory, proved on mlx-lm
  importer Qwen/Qwen3-8B --dry-run --json       everything but writing; one line of JSON
  importer Qwen/Qwen3-8B --set temperature=0    your own value, shown as yours
  importer --from models.txt --dry-run          many at a time, one line of JSON for each

commands:
  importer fill FILE            add to a hand-written document what it leaves out
  importer match NAME...        what the tables alone say of a name
  importer list                 the documents, their review and their validation
  importer show NAME            one document with its decisions and probes
  importer review NAME          one document: accept, edit or reject it
  importer approve NAME         approve what it holds now, as 'review NAME --approve' does
  importer recheck [NAME...]    what importing again would change, and why
  importer validate NAME|FILE   run it and probe it
  importer report NAME|FILE     its validations as text, JSON, JUnit XML or a page
  importer export NAME|FILE FORMAT   the document for another consumer; --list shows the formats
  importer engine install|list|remove
  importer doctor [NAME|FILE]   what would stand in the way of a run
  importer serve                the gallery service: REST, jobs, review, a gallery for LocalAI
  importer worker               run the service's jobs on this machine, too
  importer keys create|list|revoke   who may ask a service that others can reach

'importer COMMAND --help' has more. Exit codes: 0 done, 1 a probe failed, a recheck found changes, a
comparison worse outcomes or the doctor what stops a run, 2 usage, 3 Hub, 4 repository, 5 document,
6 engine, 7 service, 75 the machine is too busy, 130 stopped.
"""


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are UsageErrors, so that they look like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing and leaving."""
        said, _, rest = message.partition(": ")
        if said.startswith("argument "):
            raise UsageError("bad-option", option=said.removeprefix("argument "), problem=rest)
        problem = {
            "unrecognized arguments": "this is not expected here",
            "the following arguments are required": "it is required",
        }.get(said, said)
        raise UsageError("bad-option", option=rest or self.prog, problem=problem)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help and version; argparse's own would pass over a standard output that is full."""
        (file or sys.stdout).write(message)


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments as a namespace whose ``command`` names what to do; raises UsageError."""
    if argv and argv[0] in COMMANDS:
        return _commands().parse_args(argv)
    # A bare --validate must not swallow the reference after it.
    parsed = _import().parse_args([f"--validate={INSTALLED}" if a == "--validate" else a for a in argv])
    if (parsed.reference is None) == (parsed.source is None):
        raise UsageError(
            "bad-option", option="REFERENCE", problem="give one reference, or a list with --from"
        )
    if parsed.source is not None:
        alone = {"--name": parsed.name, "--validate": parsed.validate, "--explain": parsed.explain}
        alone["--template"] = parsed.template
        for option, given in alone.items():
            if given:
                raise UsageError(
                    "bad-option", option=option, problem="it is for one reference, not for --from"
                )
    return parsed


def reference(argv: list[str]) -> str | None:
    """What was typed as the reference or the document's name, even where the rest makes no sense."""
    command = argv[0] if argv and argv[0] in COMMANDS else None
    if command not in (None, *NAMING):
        return None
    words = argv if command is None else argv[1:]
    taking = {
        "--output",
        "--name",
        "--backend",
        "--engine-version",
        "--revision",
        "--set",
        "--unset",
        "--take",
        "--from",
    }
    taking |= {"--engine", "--port", "--digest", "--note", "--reject", "--documents", "--device"}
    taking |= {"--memory", "--template", "--report", "--probe", "--prompt", "--tool", "--against"}
    taking |= {"--api-key-env", "--model", "--format"}
    free = [w for before, w in zip(["", *words], words, strict=False) if before not in taking]
    if "--" in free:
        return next(iter(free[free.index("--") + 1 :]), None)
    return next((w for w in free if w == "-" or not w.startswith("-")), None)


def _import() -> Parser:
    p = Parser(
        prog="importer",
        description="From a Hugging Face model id to a serving config that was proved on a real engine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.set_defaults(command="import")
    p.add_argument(
        "reference",
        nargs="?",
        help="owner/name[@revision], hf://…, a Hub URL, or a directory such as ./model",
    )
    p.add_argument(
        "--from",
        metavar="FILE",
        dest="source",
        help="many references, one a line ('-': stdin); one line of JSON for each, errors included",
    )
    _output(p)
    p.add_argument("--name", help="the document's name (default: from the repository)")
    p.add_argument(
        "--backend",
        choices=("auto", *config.NAMES),
        help="the engine to write for (default: the earlier value, else auto)",
    )
    p.add_argument("--engine-version", metavar="VERSION", help="write for this version's parsers")
    p.add_argument("--revision", help="branch, tag or commit (default: main)")
    p.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="values",
        help="a decision's name or a dotted YAML path; wins over everything, later on too; repeatable",
    )
    p.add_argument(
        "--unset",
        metavar="KEY",
        action="append",
        default=[],
        help="remove an earlier value of --set, --backend or --device; repeatable",
    )
    p.add_argument(
        "--take",
        choices=("mine", "theirs"),
        help="where the file and this import changed one value: the file's (mine), or the import's (theirs)",
    )
    _fitting(p)
    p.add_argument(
        "--exact-fit", action="store_true", help="read every tensor's size from the weights' headers"
    )
    p.add_argument(
        "--template",
        metavar="NAME|FILE|none",
        help="tools for a model whose chat template has none, in words of ours (pythonic, json); or a file",
    )
    p.add_argument("--dry-run", action="store_true", help="everything except writing and validating")
    p.add_argument("--json", action="store_true", help="one line of JSON on stdout")
    p.add_argument("--yes", action="store_true", help="accept the decisions without asking")
    group = p.add_mutually_exclusive_group()
    group.add_argument(
        "--validate",
        metavar="ENGINE",
        nargs="?",
        const=INSTALLED,
        help="validate even if weights must be fetched first",
    )
    group.add_argument("--no-validate", action="store_true", help="write only")
    p.add_argument("--offline", action="store_true", help="use what is cached; no request to the Hub")
    p.add_argument("--explain", action="store_true", help="print the chain of evidence")
    p.add_argument("--ignore-name", action="store_true", help="decide without id, folder, card and tags")
    p.add_argument("--version", action="version", version=f"importer {__version__}")
    return p


def _commands() -> Parser:
    top = Parser(prog="importer", allow_abbrev=False)
    sub = top.add_subparsers(dest="command", required=True)

    _fill(sub.add_parser("fill", help="add to a hand-written document what it leaves out"))

    p = sub.add_parser("match", help="what the tables alone say of a name")
    p.add_argument("names", nargs="+", metavar="NAME")
    p.add_argument("--json", action="store_true", help="one line of JSON per name")

    p = sub.add_parser("list", help="the documents")
    _output(p)
    p.add_argument("--json", action="store_true", help="one line of JSON per document")

    p = sub.add_parser("show", help="one document with its decisions and probes")
    p.add_argument("name", metavar="NAME")
    _output(p)
    p.add_argument("--json", action="store_true", help="the document and its receipt as one line of JSON")

    p = sub.add_parser("review", help="one document: accept, edit or reject it")
    group = p.add_mutually_exclusive_group()
    group.add_argument("--approve", action="store_true", help="approve what it holds now")
    group.add_argument("--reject", metavar="NOTE", help="reject it, saying why")
    p.add_argument("--explain", action="store_true", help="print the chain of evidence")
    _review(p)

    p = sub.add_parser("approve", help="approve what a document holds now: review NAME --approve")
    p.set_defaults(approve=True, reject=None, explain=False)
    _review(p)

    p = sub.add_parser("recheck", help="what importing again would change, and why; writes nothing")
    p.add_argument("names", nargs="*", metavar="NAME", help="documents (default: all in the folder)")
    _output(p)
    p.add_argument("--offline", action="store_true", help="use what is cached; no request to the Hub")
    p.add_argument("--json", action="store_true", help="one line of JSON per document")

    _validate(sub.add_parser("validate", help="run a document and probe it"))

    _report(sub.add_parser("report", help="a document's validations, to read, to send on, to compare"))

    p = sub.add_parser("export", help="a document for another consumer")
    p.add_argument("name", metavar="NAME|FILE", nargs="?")
    p.add_argument("format", metavar="FORMAT", nargs="?", help="one of those that --list shows")
    p.add_argument("--list", action="store_true", help="the formats and what reads them")
    p.add_argument("--output", metavar="FILE|DIR", help="where to write it (default: standard output)")
    p.add_argument(
        "--documents", metavar="DIR", default="models", help="the documents' folder (default: models/)"
    )
    p.add_argument(
        "--device", choices=("gpu", "cpu"), help="what vLLM is to run on (default: what was fitted to)"
    )
    p.add_argument("--approved-only", action="store_true", help="refuse a document without approval")
    p.add_argument("--json", action="store_true", help="files and what they lack as one line of JSON")

    _engine(sub.add_parser("engine", help="install, list, remove engines"))

    service_arguments.add(sub)
    p = sub.add_parser("doctor", help="what would stand in the way of a run")
    p.add_argument(
        "name", metavar="NAME|FILE", nargs="?", help="a document (default: this machine, all engines)"
    )
    _output(p)
    p.add_argument("--engine", choices=config.NAMES, help="another engine than the document names")
    p.add_argument("--check-token", action="store_true", help="ask the Hub whether the token is valid")
    p.add_argument("--json", action="store_true", help="one line of JSON per check")
    return top


def _validate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|FILE", nargs="?")
    _output(parser)
    parser.add_argument("--engine", choices=config.NAMES, help="another engine than the document names")
    parser.add_argument("--port", type=_port, help="the engine's port (default: a free one)")
    parser.add_argument("--fetch", action="store_true", help="fetch the weights if they are not on this disk")
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON")
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="write a report, too: .html, .xml (JUnit), .json or .txt; repeatable",
    )
    some = parser.add_argument_group("a part of it", "Kept apart: it is not the document's validation.")
    some.add_argument(
        "--probe",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="these probes only; --list-probes shows all",
    )
    some.add_argument("--list-probes", action="store_true", help="the probes, what they need, their lessons")
    some.add_argument("--prompt", metavar="TEXT|FILE", help="a question of your own, shown with its answer")
    some.add_argument(
        "--tool",
        metavar="FILE",
        action="append",
        default=[],
        help="a tool as OpenAI's JSON that --prompt has to call; repeatable",
    )
    some.add_argument("--against", metavar="URL", help="a server that runs already, such as http://host:8000")
    some.add_argument("--api-key-env", metavar="VARIABLE", help="the environment variable with its key")
    some.add_argument("--model", metavar="ID", help="its name for the model (default: the document's name)")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|FILE", nargs="?")
    parser.add_argument(
        "--format",
        choices=("terminal", "json", "junit", "html"),
        help="default: by FILE's ending, else terminal",
    )
    parser.add_argument("--output", metavar="FILE", help="where to write it (default: standard output)")
    parser.add_argument(
        "--documents", metavar="DIR", default="models", help="the documents' folder (default: models/)"
    )
    parser.add_argument(
        "--compare",
        metavar=("A", "B"),
        nargs=2,
        help="what changed between two: names, documents or receipts; exit code 1 where something got worse",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json, on one line")


def _engine(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="install|list|remove", required=True)
    for action, text in (
        ("install", "install an engine (pinned; does nothing when it is there)"),
        ("remove", "remove an engine's environment"),
    ):
        a = actions.add_parser(action, help=text)
        a.add_argument("engine", metavar="ENGINE")
    a = actions.add_parser("list", help="engines, versions, places")
    a.add_argument("--json", action="store_true", help="one line of JSON per engine")


def _fill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--dry-run", action="store_true", help="show the difference, write nothing")
    parser.add_argument("--engine-version", metavar="VERSION", help="write for this version's parsers")
    _fitting(parser)
    parser.add_argument("--offline", action="store_true", help="use what is cached; no request to the Hub")
    parser.add_argument("--json", action="store_true", help="what was added as one line of JSON")


def _fitting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="fit the settings to this device instead of this machine: rtx4090, 8xh100-80g, m3-max-64g …",
    )
    parser.add_argument("--memory", metavar="SIZE", help="with so much memory, such as 48GiB (of each card)")


def _port(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and 0 < int(text[:9]) < 65536):
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def _review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    _output(parser)
    parser.add_argument("--note", help="what there is to say of the approval")
    parser.add_argument("--digest", help="refuse where the document no longer has this digest")
    parser.add_argument("--json", action="store_true", help="what a reviewer is shown as one line of JSON")


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", metavar="DIR", default="models", help="the documents' folder (default: models/)"
    )
