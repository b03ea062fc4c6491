"""The check of a whole document against its engine's version: arguments, variables, values together.

``schema.faults`` calls it for every document, so that an edit, an import and a file by hand meet one check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from importer import backends
from importer.document import argument_check, argument_conflicts, document_keys, engine_data, environment
from importer.document.document import Document, document_of
from importer.document.engine_arguments import load, version_of, versions
from importer.hub.snapshot import mapping
from importer.reasons import Reason, ReasonKind

WORD = re.compile(r"[A-Za-z0-9][\w.+:-]*")
NAMES = ("dtype", "load_format", "quantization")  # keys with the name of something of the engine
AT_WILL = -1  # vLLM's other spelling of auto
CONTEXT: Final = "max_model_len"
AUTO = "auto"  # vLLM measures its memory, and takes the longest context that fits
LIMITS: Final = "limit_mm_per_prompt"
MODALITIES = ("image", "video", "audio")
VARIABLES: Final = "chat_template_kwargs"
UNKNOWN = argument_check.ArgumentReason.UNKNOWN


class ValueReason(ReasonKind):
    """Why an engine is not started with a value of the document's own keys."""

    NO_MODEL = "it begins like an option, or holds characters that cannot be seen"
    NOT_A_NAME = "{value!r} is not a name"
    FLAG = "{flag} is a flag; write its name and value under engine_args"
    NO_AUTO = "only vLLM measures its memory for the longest context; {engine} needs a number of tokens"
    NO_LENGTH = "{value!r} is no number of tokens; on vLLM auto is the longest context that fits"
    OTHER_ENGINE = "the document is for {engine}, by its backend"
    RESERVED = (
        "{name} is an argument of the function that renders chat templates, and no variable of a template"
    )
    VARIABLE_LOST = "mlx-vlm has an option for no variable of the chat template but {only}"


Fault = tuple[tuple[str | int, ...], Reason]


def faults(document: Document) -> Iterator[Fault]:
    """Yield what the engine of a document has against it, each with its path in the document.

    Nothing for a document without an engine that is known here, and for parts of another type: those are the
    schema's.
    """
    engine, version = document.get("backend"), version_of(document)
    if not isinstance(engine, str) or load(engine, version) is None:
        return
    if mapping(mapping(document.get("importer")).get("engine")).get("name", engine) != engine:
        yield ("importer", "engine", "name"), Reason(ValueReason.OTHER_ENGINE, engine=engine)
    written = document.get(argument_check.KEY)
    for path, reason in argument_check.faults(
        engine, version, written if isinstance(written, Mapping) else {}
    ):
        yield (argument_check.KEY, *path), reason
    yield from _values(document)
    variables = document.get(environment.KEY)
    if isinstance(variables, Mapping):
        for path, reason in environment.faults(engine, version, variables):
            yield (environment.KEY, *path), reason
    yield from argument_conflicts.conflicts(document)


def _values(document: Document) -> Iterator[Fault]:
    """Yield values of the document's own keys that the engine's command line does not carry."""
    sampling, variables = document.get("parameters"), document.get(VARIABLES)
    model = sampling.get("model") if isinstance(sampling, Mapping) else None
    if isinstance(model, str) and model.startswith("-"):
        yield ("parameters", "model"), Reason(ValueReason.NO_MODEL)
    yield from _length(document)
    yield from _limits(document)
    for key in NAMES:
        value = document.get(key)
        if isinstance(value, str) and not WORD.fullmatch(value):
            yield (key,), Reason(ValueReason.NOT_A_NAME, value=value)
        elif isinstance(value, str):
            known = argument_check.of_value(str(document.get("backend")), version_of(document), key, value)
            yield from (((key,), reason) for _, reason in known)
    yield from _options(document)
    by_flag = backends.of(document.get("backend")).by_flag
    for place, option in enumerate(document_keys.of(document) if by_flag else ()):
        named = option.key in document_keys.OPTIONS and (option.value or "").lower() not in document_keys.NONE
        if named and not WORD.fullmatch(option.value or ""):
            yield (document_keys.KEY, place), Reason(ValueReason.NOT_A_NAME, value=option.value)
    reserved = engine_data.every().renderer
    chosen = {*variables} if isinstance(variables, Mapping) else set()
    for key in sorted(chosen & reserved):
        yield (VARIABLES, key), Reason(ValueReason.RESERVED, name=key)
    if (only := backends.of(document.get("backend")).variable) is not None:
        for key in sorted(chosen - {only} - reserved):
            yield (VARIABLES, key), Reason(ValueReason.VARIABLE_LOST, only=only)


def _limits(document: Document) -> Iterator[Fault]:
    """Yield a slip of a kind of input, and sizes for an engine that takes numbers alone."""
    limits = document.get(LIMITS)
    for kind, value in limits.items() if isinstance(limits, Mapping) else ():
        near = argument_check.near(str(kind).lower(), MODALITIES)
        if near and kind not in MODALITIES:
            yield (LIMITS, kind), Reason(UNKNOWN, of=LIMITS, near=near)
        if isinstance(value, Mapping) and not backends.of(document.get("backend")).limits_inputs:
            wrong = Reason(argument_check.ArgumentReason.WRONG_TYPE, value="a map", kind="a whole number")
            yield (LIMITS, kind), wrong


def _length(document: Document) -> Iterator[Fault]:
    """Yield a context that is neither a number of tokens nor, on vLLM, left to the engine's memory."""
    length = document.get(CONTEXT)
    if length == AUTO and not backends.of(document.get("backend")).auto_context:
        yield (CONTEXT,), Reason(ValueReason.NO_AUTO, engine=document.get("backend"))
    elif (isinstance(length, str) and length != AUTO) or length == AT_WILL:
        yield (CONTEXT,), Reason(ValueReason.NO_LENGTH, value=length)


def _options(document: Document) -> Iterator[Fault]:
    """Yield entries that no engine here reads as they are meant: a slip of a key, and a flag.

    Other entries are LocalAI's.
    """
    entries = document.get(document_keys.KEY)
    for place, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        if not isinstance(entry, str):
            continue  # the schema's
        option = document_keys.parse(entry)
        near = argument_check.near(option.key.replace("-", "_").lower(), document_keys.OPTIONS)
        if option.key.startswith("--"):
            yield (document_keys.KEY, place), Reason(ValueReason.FLAG, flag=option.key)
        elif near and option.key not in document_keys.OPTIONS:
            reason = Reason(UNKNOWN, of=document_keys.KEY, near=near)
            yield (document_keys.KEY, place), reason


def of_settings(values: Mapping[str, object], backend: str | None = None) -> Fault | None:
    """Return what is wrong with settings by dotted paths; ``None`` where a version of the engine takes them.

    Without a backend one engine that takes them is enough; where none knows a name, the near names are those
    of all of them.
    """
    if not values:
        return None
    document: dict[str, object] = {}
    for key, value in values.items():
        place, *steps = (document, *key.split("."))
        for step in steps[:-1]:
            inner = place.get(step)
            place[step] = place = dict(inner) if isinstance(inner, Mapping) else {}
        place[steps[-1]] = value
    first: Fault | None = None
    unknown: list[Fault] = []
    for engine in (backend,) if backend in backends.NAMES else backends.NAMES:
        for version in reversed(versions(str(engine))):
            named = {"backend": engine, "importer": {"engine": {"version": version}}}
            found = next(faults(document_of({**document, **named})), None)
            if found is None:
                return None
            if first is None or first[1].kind is UNKNOWN:
                unknown = [*unknown, found] if found[1].kind is UNKNOWN else unknown
                first = found
    if first is None or first[1].kind is not UNKNOWN:
        return first
    return _nearest(unknown)


def _nearest(found: list[Fault]) -> Fault:
    """Return one fault for a name that no engine has, with the nearest names of all engines."""
    path, reason = found[-1]
    names = [name for p, r in found if p == path for name in _texts(r.fields.get("near"))]
    return path, Reason(UNKNOWN, of=reason.fields["of"], near=argument_check.near(str(path[-1]), names))


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
