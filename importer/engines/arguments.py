"""``engine_args`` as words of a command line, by the arguments of the engine's version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from importer.config_file import argument_check, document_keys, schema
from importer.config_file.document import Document
from importer.config_file.engine_arguments import Argument, version_of
from importer.engines.base import Unstartable, invalid
from importer.reasons import Reason

Words = tuple[str, list[str]]  # a flag, and the words behind it


def checked(document: Document, engine: str) -> None:
    """Raise DocumentError("invalid") for arguments and variables that the engine's version refuses."""
    version = version_of(document)
    arguments = document.get(argument_check.KEY) or {}
    for path, reason in argument_check.faults(engine, version, arguments):
        raise invalid(document, schema.at((argument_check.KEY, *path), reason))
    for path, reason in argument_check.environment_faults(
        engine, version, document.get(argument_check.ENVIRONMENT_KEY) or {}
    ):
        raise invalid(document, schema.at((argument_check.ENVIRONMENT_KEY, *path), reason))


def without_flags(document: Document, server: str) -> None:
    """Raise DocumentError("invalid") for flags among ``options``: they are for vLLM alone."""
    flag = next((o.key for o in document_keys.of(document) if o.key.startswith("--")), None)
    if flag is not None:
        raise invalid(document, Reason(Unstartable.FLAG_FOR_VLLM, flag=flag, server=server))


def written(document: Document, engine: str, leave: tuple[str, ...] = ()) -> Iterator[Words]:
    """Yield each argument with its words, without ``leave``; raises what ``checked`` raises."""
    checked(document, engine)
    for name, value in (document.get(argument_check.KEY) or {}).items():
        argument = argument_check.known(engine, version_of(document), name)
        if value is not None and argument is not None and argument.name not in leave:
            yield from _words(argument, value)


def joined(pairs: Iterator[Words]) -> Iterator[str]:
    """Yield ``--flag=value`` for one value, else the flag and its values as words of their own."""
    for flag, values in pairs:
        yield from [f"{flag}={values[0]}"] if len(values) == 1 else [flag, *values]


def apart(pairs: Iterator[Words]) -> Iterator[str]:
    """Yield every flag and value as a word of its own."""
    for flag, values in pairs:
        yield from (flag, *values)


def grouped(words: list[str]) -> Iterator[Words]:
    """Yield the flags of a command line, each with its values; the reverse of ``joined``."""
    flag, values = "", list[str]()
    for word in [*words, "--"]:
        if not word.startswith("--"):
            values.append(word)
            continue
        if flag:
            yield flag, values
        flag, equals, text = word.partition("=")
        values = [text] if equals else []


def _words(argument: Argument, value: Any) -> Iterator[Words]:
    value = [value] if argument.many and not isinstance(value, list) else value
    flag = argument.flag or f"--{argument.name.replace('_', '-')}"
    if isinstance(value, bool):
        chosen = argument.flag if value else argument.off
        yield from [(chosen, [])] if chosen else []
    elif isinstance(value, list) and argument.repeats:
        yield from ((flag, [_text(one)]) for one in value)
    elif isinstance(value, list) and argument.many:
        yield from [(flag, [_text(one) for one in value])] if value else []
    elif isinstance(value, list) and argument.commas:
        yield flag, [",".join(map(_text, value))]
    else:
        yield flag, [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, Mapping | list | bool):
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
