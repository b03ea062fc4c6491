"""The chat template of a repository, and the choice from a named set for requests with tools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason, ReasonKind

MAX_CHARACTERS = 1_000_000  # the longest real template known has 70,000
DEFAULT = "default"
TOOL_USE = "tool_use"
SIDECAR = "chat_template.jinja"
FOLDER = "additional_chat_templates"
REPOSITORY = "repository:"  # before the name of a template of the repository's own set
CONFIG = "tokenizer_config.json"
IN_CODE = "chat_template_type"
FILES = (CONFIG, "chat_template.json", "processor_config.json")


class TemplateFault(ReasonKind):
    """What transformers makes of a template that is none."""

    ENTRY = (
        "entry",
        (
            "{file} has a list of chat templates with an entry that lacks its name or its template; no "
            "engine loads this tokenizer"
        ),
    )
    NOT_TEXT = "not-text", "the chat template in {file} is not text; engines refuse every conversation"
    EMPTY = "empty", "the chat template in {file} is empty, and engines use it in place of any other"


@frozen
class Template:
    """A chat template.

    ``text``    of the template for requests with tools.
    ``source``  its file; ``name`` its name in the file.
    ``all``     every name of its set.
    ``plain``   text of the template for requests without tools, where it differs.
    """

    text: str
    source: str
    name: str = DEFAULT
    all: tuple[str, ...] = (DEFAULT,)
    plain: str = ""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the texts, hexadecimal."""
        return hashlib.sha256(f"{self.text}{self.plain}".encode("utf-8", "surrogatepass")).hexdigest()


def named(snapshot: Snapshot) -> dict[str, str]:
    """Return the texts of the repository's set of templates by name."""
    texts: dict[str, str] = {}
    for name, text, _ in _places(snapshot):
        texts.setdefault(name, text)
    return {name: text for name, text in texts.items() if len(text) <= MAX_CHARACTERS}


def find(snapshot: Snapshot) -> Template | None:
    """Return the template for requests with tools: ``tool_use`` of a named set, else ``default``.

    Raises RepositoryError("broken-json") for a file that is not valid JSON, and RepositoryError("too-large")
    past a million characters.
    """
    templates: dict[str, tuple[str, str]] = {}
    for name, text, source in _places(snapshot):
        templates.setdefault(name, (text, source))
    if not templates:
        return None
    name = next((n for n in (TOOL_USE, DEFAULT) if n in templates), next(iter(templates)))
    for text, source in templates.values():
        if len(text) > MAX_CHARACTERS:
            limit = f"{MAX_CHARACTERS:,} characters of a template"
            raise RepositoryError("too-large", file=source, repo=snapshot.label, limit=limit)
    text, source = templates[name]
    plain = templates[DEFAULT][0] if DEFAULT in templates and name != DEFAULT else ""
    return Template(text, source, name, tuple(sorted(templates)), plain)


def others(snapshot: Snapshot, template: Template) -> tuple[str, ...]:
    """Return the files with another text under the names of ``template``; an engine may read them instead.

    mlx-lm 0.32 has templates in code, too, and takes the one that ``chat_template_type`` names.
    """
    served = {t.strip() for t in (template.text, template.plain or template.text)}
    texts = [
        source
        for name, text, source in _places(snapshot)
        if name in (template.name, DEFAULT) and text.strip() not in served
    ]
    return (*texts, *([CONFIG] if snapshot.json(CONFIG).get(IN_CODE) and CONFIG not in texts else ()))


def fault(snapshot: Snapshot) -> Reason | None:
    """Return what is wrong with the template that transformers reads; ``None`` for a sound one, or none.

    ``chat_template.jinja`` replaces the others, also where it is empty (transformers 5.19).
    """
    sidecar = snapshot.texts.get(SIDECAR)
    places = [(path, snapshot.json(path).get("chat_template")) for path in FILES]
    places = [(SIDECAR, sidecar)] if sidecar is not None else places
    file, value = next(((file, value) for file, value in places if value is not None), ("", None))
    kind = _fault(value)
    return None if kind is None else Reason(kind, file=file)


def _fault(value: Any) -> TemplateFault | None:
    if isinstance(value, list):
        if not all(isinstance(item, Mapping) and {"name", "template"} <= item.keys() for item in value):
            return TemplateFault.ENTRY
        texts = [text for item in value for text in (item["name"], item["template"])]
    else:
        texts = [*value.values()] if isinstance(value, Mapping) else [] if value is None else [value]
    if not all(isinstance(text, str) for text in texts):
        return TemplateFault.NOT_TEXT
    return None if value is None or any(text.strip() for text in texts) else TemplateFault.EMPTY


def _places(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and file of every template, in transformers' order of preference."""
    sidecar = snapshot.texts.get(SIDECAR, "")
    if sidecar.strip():
        yield DEFAULT, sidecar, SIDECAR
    for path, text in sorted(snapshot.texts.items()):
        place = PurePosixPath(path)
        if place.parent.name == FOLDER and place.suffix == ".jinja" and text.strip():
            yield place.stem, text, path
    for path in FILES:
        for name, text in _named(snapshot.json(path).get("chat_template")):
            yield name, text, path
    for name, text in _named(snapshot.info.get("chat_template")):
        yield name, text, "the Hub's API"


def _named(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the templates under a ``chat_template`` key: a text, a list of named ones, or a mapping."""
    if isinstance(value, str) and value.strip():
        yield DEFAULT, value
    elif isinstance(value, Mapping):
        yield from (
            (n, t) for n, t in value.items() if isinstance(n, str) and isinstance(t, str) and t.strip()
        )
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                yield from _named({item["name"]: item.get("template")})
