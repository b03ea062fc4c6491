"""Run a command; a failure is printed as one sentence and a next step, and has an exit code."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer import config
from importer.cli import arguments as typed
from importer.cli import messages, project, streams
from importer.cli.commands import action
from importer.errors import DocumentError, ImporterError, Interrupted, UsageError, ValidationError, described

if TYPE_CHECKING:
    from importer.sandbox import Sandbox


def run(argv: Sequence[str], sandbox: Sandbox | None = None) -> int:
    """Return the exit code; see ``errors.py`` for what each means.

    ``sandbox``  that the caller keeps warm for several imports; a command gets it with its arguments.
    """
    previous = signal.signal(signal.SIGTERM, _terminate)
    argv = typed.command_first(argv)
    messages.RUNNING.set(cache(partial(typed.running, argv)))
    try:
        return _guarded(argv, sandbox)
    finally:
        signal.signal(signal.SIGTERM, previous)


def _guarded(argv: list[str], sandbox: Sandbox | None) -> int:
    try:
        return _finished(argv, sandbox)
    except ImporterError as error:
        return _print_error(argv, error)
    except KeyboardInterrupt:
        return _print_error(argv, Interrupted("interrupted"))
    except OSError as error:
        if error.filename is None and error.errno is not None:
            return _print_error(argv, DocumentError("output-closed", problem=error.strerror))
        if error.filename is None or error.errno is None or isinstance(error, FileNotFoundError):
            return _internal(argv, error)
        unopened = DocumentError("cannot-open", path=error.filename, problem=error.strerror)
        return _print_error(argv, unopened)
    except ModuleNotFoundError as error:
        extra = extra_of(error.name)
        missing = None if extra is None else UsageError("extra-missing", package=error.name, extra=extra)
        return _internal(argv, error) if missing is None else _print_error(argv, missing)
    except Exception as error:  # the last resort: a sentence instead of a traceback
        return _internal(argv, error)


def _finished(argv: list[str], sandbox: Sandbox | None) -> int:
    code, unreadable = 0, None
    try:
        settings = project.read(Path())  # a folder that was removed has no file
    except UsageError as error:
        settings, unreadable = {}, error  # --help and --version need none
    config.PROJECT.set(settings)
    streams.VERBOSITY.set(0)
    try:
        parsed = typed.parse(argv)
        if unreadable is not None:
            raise unreadable
        streams.VERBOSITY.set(getattr(parsed, "verbosity", 0))
        parsed.sandbox = sandbox
        code = action(parsed.command).run(parsed) or 0
    except SystemExit as left:  # how argparse ends after --help and --version
        code = int(left.code or 0)
    sys.stdout.flush()
    return code


def extra_of(module: str | None) -> str | None:
    """Return the extra of this distribution that brings a module; ``None`` for any other module."""
    from importlib.metadata import PackageNotFoundError, requires

    from importer.version import DISTRIBUTION

    package = (module or "").partition(".")[0].replace("_", "-")
    try:
        lines = requires(DISTRIBUTION) or ()
    except PackageNotFoundError:
        return None
    pattern = re.compile(rf"{re.escape(package)}(?![\w.-]).*extra == ['\"]([\w-]+)")
    found = (pattern.match(line.replace("_", "-")) for line in lines)
    return next((match[1] for match in found if match is not None), None)


def _internal(argv: list[str], error: Exception) -> int:
    if streams.VERBOSITY.get() > 0:
        import traceback

        traceback.print_exception(error)
    return _print_error(argv, described(error))


def _print_error(argv: list[str], error: ImporterError) -> int:
    # After a validation the line has been printed already: the report itself.
    if "--json" in argv and not isinstance(error, ValidationError):
        from importer.cli.importing import error_line
        from importer.cli.output import printed_json

        try:
            printed_json(error_line(typed.reference(argv), error))
            sys.stdout.flush()
        except (OSError, ValueError):
            streams.silence(sys.stdout)
    elif error.kind == "output-closed":
        streams.silence(sys.stdout)
    streams.to_stderr(f"importer: {messages.sentence(error)}\n{messages.hint(error, typed.reference(argv))}")
    return error.exit_code


def _terminate(_signal: int, _frame: Any) -> None:
    raise KeyboardInterrupt
