"""Run a command; every failure leaves as one sentence, a next step and an exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from importer.cli import arguments as typed
from importer.cli import messages, streams
from importer.errors import ImporterError, InternalError, Interrupted, ValidationError

if TYPE_CHECKING:
    from importer.sandbox import Sandbox


def run(argv: Sequence[str], sandbox: Sandbox | None = None) -> int:
    """The exit code; see ``errors.py`` for what each means.

    ``sandbox``  of a caller that keeps one warm for several imports.
    """
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _guarded(list(argv), sandbox)
    finally:
        signal.signal(signal.SIGTERM, previous)


def _guarded(argv: list[str], sandbox: Sandbox | None) -> int:
    try:
        return _finished(argv, sandbox)
    except ImporterError as error:
        return _tell(argv, error)
    except KeyboardInterrupt:
        return _tell(argv, Interrupted("interrupted"))
    except BrokenPipeError:  # the reader has seen enough
        streams.silence(sys.stdout)
        return 0
    except OSError as error:
        if error.filename is None and error.errno is not None:
            return _tell(argv, InternalError("output-closed", problem=error.strerror))
        return _internal(argv, error)
    except Exception as error:  # the last resort: a sentence instead of a traceback
        return _internal(argv, error)


def _finished(argv: list[str], sandbox: Sandbox | None) -> int:
    code = 0
    try:
        code = _dispatch(typed.parse(argv), sandbox)
    except SystemExit as left:  # how argparse ends after --help and --version
        code = int(left.code or 0)
    sys.stdout.flush()
    return code


def _dispatch(parsed: argparse.Namespace, warm: Sandbox | None) -> int:
    """0, or what a command that found something answers instead."""
    if parsed.command == "import":
        from importer.sandbox.pool import Sandbox

        with Sandbox() if warm is None else nullcontext(warm) as sandbox:
            sandbox.start()  # it wakes while the rest is imported, which takes as long
            if parsed.source is None:
                from importer.cli.importing import run as run_import
            else:
                from importer.cli.bulk import run as run_import
            run_import(parsed, sandbox)
        return 0
    from importer.cli.commands import COMMANDS

    return COMMANDS[parsed.command](parsed) or 0


def _internal(argv: list[str], error: Exception) -> int:
    if os.environ.get("IMPORTER_DEBUG"):
        raise error
    return _tell(argv, InternalError("internal", problem=f"{type(error).__name__}: {error}"))


def _tell(argv: list[str], error: ImporterError) -> int:
    # After a validation the line has been printed already: the report itself.
    if "--json" in argv and not isinstance(error, ValidationError):
        from importer.cli.importing import error_line
        from importer.cli.show import json_line

        try:
            json_line(error_line(typed.reference(argv), error))
            sys.stdout.flush()
        except (OSError, ValueError):
            streams.silence(sys.stdout)
    elif error.kind == "output-closed":
        streams.silence(sys.stdout)
    streams.to_stderr(f"importer: {messages.sentence(error)}\n{messages.hint(error)}")
    return error.exit_code


def _terminate(_signal: int, _frame: Any) -> None:
    raise KeyboardInterrupt
