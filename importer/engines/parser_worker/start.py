"""Runs in an engine's own environment: gives a command line to the engine's own parser and validators.

The server's module is run until its command line is parsed; nothing behind that is reached. vLLM then
makes its configuration, which runs its validators; no weight is read. The answer is the output's last line.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Iterator
from typing import Any

PARSE = argparse.ArgumentParser.parse_args
OURS = (ValueError, TypeError, AssertionError, KeyError)  # what validators raise
CHECK = "validate_parsed_serve_args"
MOST = 1000  # characters of an answer


class Parsed(BaseException):
    """Carries the parsed command line out of the server's module."""


class Refused(BaseException):
    """Carries the parser's words."""


def main(request: Any) -> dict[str, Any]:
    """Return what the engine has against a command line: ``refused``, ``unsure`` or nothing."""

    def parse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise Parsed(PARSE(self, *args, **kwargs))

    def error(_self: Any, message: str) -> None:
        raise Refused(message)

    patched: Any = argparse.ArgumentParser
    patched.parse_args, patched.error = parse, error
    words = request["words"]
    sys.argv = [*words]
    try:
        runpy.run_module(words[0], run_name="__main__")
    except Parsed as parsed:
        patched.parse_args = PARSE
        return _configured(parsed.args[0], request) if request["validators"] else {}
    except Refused as refused:
        return {"refused": refused.args[0]}
    return {"unsure": "its server parses no command line"}


def _configured(arguments: Any, request: Any) -> dict[str, Any]:
    """Return what vLLM's validators have against parsed arguments."""
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.platforms import current_platform

        if not request["card"]:  # what a machine without a card lacks is no fault of the document
            platform: Any = type(current_platform)
            platform.check_and_update_config = classmethod(lambda _cls, _config: None)
        for module in [*sys.modules.values()]:  # the server's own check, wherever the version has it
            check = vars(module).get(CHECK)
            if callable(check):
                check(arguments)
                break
        engine_args = AsyncEngineArgs.from_cli_args(arguments)
        if request["model"]:
            engine_args.create_engine_config()
    except Exception as error:
        chain = [*_chain(error)]
        mine = isinstance(error, OURS) and not any(isinstance(one, OSError | ImportError) for one in chain)
        return {"refused" if mine else "unsure": _words(error)}
    return {}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it."""
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _words(error: Exception) -> str:
    """Return the words of an error in one line; of pydantic's, those of its first entry."""
    entries = getattr(error, "errors", None)
    if not callable(entries):
        return f"{error}" or type(error).__name__
    first: Any = next(iter(entries()), {})
    place = ".".join(map(str, first.get("loc", ())))
    text = str(first.get("msg", error)).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"{place}: {text}" if place else text


if __name__ == "__main__":
    answer = main(json.loads(sys.stdin.read()))
    short = {key: " ".join(str(text).split())[:MOST] for key, text in answer.items()}
    sys.stdout.write(f"\nRESULT {json.dumps(short)}\n")
