"""Parts of a document in files of their own or as data: a chat template, and a parser's response template."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from importer.decisions.decision import Decision
from importer.decisions.frontends import HF, REASONING, TOOL
from importer.document import document_keys
from importer.document.document import Document
from importer.document.document_keys import KeyPath
from importer.errors import DocumentError
from importer.frozen import frozen
from importer.hub.folders import read_plain
from importer.hub.snapshot import UnreadReason
from importer.reasons import Reason, ReasonKind

KEY: Final = "chat_template"  # under ``importer``
LONGEST = 4 * 1024 * 1024  # bytes; a template that is rendered has a million characters at most
ENDING = ".chat_template.jinja"
FILE = re.compile(r"[a-z0-9][a-z0-9._-]*\.chat_template\.jinja")


class ChatTemplateReason(ReasonKind):
    """Why the template that a document names cannot be used."""

    NAME = "{file!r} is no name of a file beside the document that ends in {ending}"
    CHANGED = "{file} was changed since it was written"
    UNREADABLE = "{file} cannot be read ({problem})"


class PatternReason(ReasonKind):
    """What is wrong with a pattern of a response template."""

    FREE = "it is no text with white space between its words: others could hold up the engine"


@frozen
class ChatTemplate:
    """A template as it lies there, ``text`` being what was hashed."""

    path: Path
    text: str


def entry(name: str, document: str, text: str) -> dict[str, str]:
    """Return the document's entry on the template: ``name`` is the convention's, or ``file``."""
    return {"name": name, "file": document + ENDING, "sha256": _hash(text)}


def place(document: Path) -> Path:
    """Return where the template of the document at that path lies."""
    return document.with_name(document.stem + ENDING)


def beside(data: Document, document: Path) -> str | None:
    """Return the text that lies there as the document's template, changed or not; ``None`` without one."""
    block = data.get("importer")
    entry_ = block.get(KEY) if isinstance(block, Mapping) else None
    file = entry_.get("file") if isinstance(entry_, Mapping) else None
    path = document.with_name(file) if isinstance(file, str) and FILE.fullmatch(file) else place(document)
    with suppress(OSError):
        return None if path.is_symlink() else read_plain(path, LONGEST).decode(errors="backslashreplace")
    return None


def named(data: Document) -> bool:
    """Return whether a document names a template."""
    block = data.get("importer")
    return isinstance(block, Mapping) and block.get(KEY) is not None


def of(data: Document, document: Path) -> ChatTemplate | None:
    """Return the template that the document at that path names; raises DocumentError("chat-template")."""
    if not named(data):
        return None
    named_entry = data["importer"][KEY]
    file = named_entry.get("file") if isinstance(named_entry, Mapping) else None
    if not isinstance(file, str) or not FILE.fullmatch(file):
        problem = Reason(ChatTemplateReason.NAME, file=file, ending=ENDING)
        raise DocumentError("chat-template", path=document, problem=problem)
    text = _read(document, document.with_name(file))
    if _hash(text) != named_entry.get("sha256"):
        problem = Reason(ChatTemplateReason.CHANGED, file=file)
        raise DocumentError("chat-template", path=document, problem=problem)
    return ChatTemplate(document.with_name(file), text)


def named_template(data: Document, text: str | None) -> str | None:
    """Return the text, if it is the template that the document names; a person may have named another."""
    named_entry: Mapping[str, object] = data["importer"][KEY] if named(data) else {}
    same = text is not None and isinstance(named_entry, Mapping) and named_entry.get("sha256") == _hash(text)
    return text if same else None


def check_free(data: Document | None, document: Path, text: str) -> None:
    """Raise DocumentError("exists") where a file lies that is neither ``text`` nor what ``data`` names."""
    path = place(document)
    try:
        present = read_plain(path, LONGEST).decode()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        raise DocumentError("exists", path=path) from None
    named_entry: Mapping[str, object] = data["importer"][KEY] if data is not None and named(data) else {}
    if present != text and (
        not isinstance(named_entry, Mapping) or named_entry.get("sha256") != _hash(present)
    ):
        raise DocumentError("exists", path=path)


def holds(document: Path, text: str) -> bool:
    """Return whether the template's file has this text."""
    try:
        return read_plain(place(document), LONGEST) == text.encode()
    except OSError:
        return False


def forget(data: Document, document: Path) -> None:
    """Remove the template of a document that no longer names it, unless a person has changed the file."""
    with suppress(DocumentError, OSError):
        old = of(data, document)
        if old is not None and old.path == place(document):
            old.path.unlink()


def _read(document: Path, path: Path) -> str:
    problem: object = Reason(UnreadReason.NO_FILE)
    if not path.is_symlink() and path.is_file():
        try:
            return read_plain(path, LONGEST).decode()
        except UnicodeDecodeError:
            problem = Reason(UnreadReason.NOT_TEXT)
        except OSError as error:
            problem = error.strerror
    reason = Reason(ChatTemplateReason.UNREADABLE, file=path.name, problem=problem)
    raise DocumentError("chat-template", path=document, problem=reason)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


RESPONSE_TEMPLATE_KEY = "response_template"  # under ``importer``, and in a tokenizer's configuration
RESPONSE_TEMPLATE_FILE = "tokenizer_config.json"
PATTERN = "_pattern"  # how the keys of regular expressions end, at every depth
# What an import derives: words whose signs are escaped, and any white space between and behind them.
WORD = r"(?:[^\\.+*?()|\[\]{}^$\s]|\\[\\.+*?()|\[\]{}^$])+"
DERIVED = re.compile(rf"{WORD}(?:\\s\*{WORD})*(?:\\s\*)?")


def parser_entry(
    decisions: Mapping[str, Decision], template: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the document's entry, where a decided parser reads with the template; else none."""
    used = any(decisions[key].value == HF for key in (TOOL, REASONING))
    return {RESPONSE_TEMPLATE_KEY: dict(template)} if used and template is not None else {}


def derived_parser_of(document: Document) -> Mapping[str, object] | None:
    """Return the document's template, where one of its parsers reads with it."""
    block = document.get("importer")
    template = block.get(RESPONSE_TEMPLATE_KEY) if isinstance(block, Mapping) else None
    used = any(document_keys.parser(document, key) == HF for key in (TOOL, REASONING))
    return template if used and isinstance(template, Mapping) and template else None


def faults(document: Document) -> Iterator[tuple[KeyPath, Reason]]:
    """Yield the patterns of the template that are not of the form that an import derives.

    Also where no parser reads with the template: another edit may turn one on.
    """
    block = document.get("importer")
    template = block.get(RESPONSE_TEMPLATE_KEY) if isinstance(block, Mapping) else None
    for path, text in _patterns(template, ("importer", RESPONSE_TEMPLATE_KEY)):
        if not DERIVED.fullmatch(text):
            yield path, Reason(PatternReason.FREE)


def _patterns(value: object, path: KeyPath, of_pattern: bool = False) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts under keys of patterns, with their places."""
    if isinstance(value, str):
        if of_pattern:
            yield path, value
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            named = of_pattern or (isinstance(key, str) and key.endswith(PATTERN))
            yield from _patterns(inner, (*path, key), named)
