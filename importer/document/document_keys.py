"""Keys of a document: their paths, ``options``, the digest of its data, and differences by path."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from importer.decisions.decision import FRONTENDS, Frontend
from importer.document.document import Document
from importer.frozen import frozen

# Decisions that become ``options: ["key:value"]``, as LocalAI's vLLM backend reads them.
OPTIONS = ("tool_parser", "reasoning_parser")

# Decisions about the model that only our own block records.
FACTS = (
    "kind", "family", "quantization", "quantization_scheme", "modalities", "end_tokens", "sampling_modes",
    "outputs",
)  # fmt: skip

# Decisions that only the receipt records.
REMARKS = (
    "code", "prompts", "request_coverage", "template_variables", "token_numbers",
    "begin_token", "weights", "sisters",
)  # fmt: skip

# Defaults of the engine: shown with their reasons, written only where a person set them.
UNWRITTEN = (
    "engine_args.enable_prefix_caching", "engine_args.kv_cache_dtype",
)  # fmt: skip

# Top-level keys a person or --set may use: LocalAI's, as its loader reads them, and our one block.
TOP_LEVEL = tuple(Document.__annotations__)
SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
    "max_tokens", "seed",
)  # fmt: skip

# What a person looks for first.
IMPORTANT = (*OPTIONS, "max_model_len", *(f"parameters.{key}" for key in SAMPLING))

# Everything LocalAI reads under ``parameters``, for --set.
PARAMETERS = (
    *SAMPLING, "typical_p", "tfz", "n", "n_keep", "batch", "echo", "ignore_eos", "logit_bias",
    "repeat_last_n", "rope_freq_base", "rope_freq_scale", "negative_prompt_scale",
)  # fmt: skip


KEY: Final = "options"  # where they stand in a document


def place(key: str) -> tuple[str, ...] | None:
    """Return the path of a decision's value in a document; ``None`` for one that only the receipt has."""
    if key in REMARKS:
        return None
    if key in OPTIONS:
        return (KEY, key)
    return ("importer", key) if key in FACTS else tuple(key.split("."))


NONE = {"", "none", "null"}  # what a person writes for a parser that there is to be none of


@frozen
class Option:
    """One entry; ``text`` is written back as it stands, ``key`` and ``value`` are what it means.

    ``value`` is ``None`` for a bare word and may hold colons or be empty.
    """

    text: str
    key: str
    value: str | None


def parse(text: str) -> Option:
    """Read one entry; white space around key and value means nothing."""
    key, separator, value = text.partition(":")
    return Option(text, key.strip(), value.strip() if separator else None)


def of(document: Mapping[str, object]) -> tuple[Option, ...]:
    """Return every entry of a document in its order, repeated keys included."""
    entries = document.get(KEY)
    return tuple(parse(str(e)) for e in entries) if isinstance(entries, list | tuple) else ()


def grouped(entries: Iterable[Option]) -> dict[str, tuple[Option, ...]]:
    """Return the entries by key, both in their order."""
    groups: dict[str, list[Option]] = {}
    for option in entries:
        groups.setdefault(option.key, []).append(option)
    return {key: tuple(options) for key, options in groups.items()}


def parser(document: Mapping[str, object], key: str) -> str | None:
    """Return the parser named under ``key``: the last entry counts, and ``none`` or nothing is none."""
    named = [o.value or "" for o in of(document) if o.key == key]
    return named[-1] if named and named[-1].lower() not in NONE else None


def write(key: str, value: object) -> str:
    """Return an entry with ``value``; ``None`` makes a bare word."""
    if value is None:
        return key
    return f"{key}:{str(value).lower() if isinstance(value, bool) else value}"


def engine_of(document: Mapping[str, object]) -> str:
    """Return the engine that serves a document; where the file leaves it open, the engine of its fill."""
    block = document.get("importer")
    filled = block.get("engine") if isinstance(block, Mapping) else None
    return str(document.get("backend") or (filled.get("name") if isinstance(filled, Mapping) else "") or "")


def frontend_of(document: Mapping[str, object]) -> Frontend | None:
    """Return vLLM's frontend of a document; ``None`` where it names none, or none that there is."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    named = engine.get("frontend") if isinstance(engine, Mapping) else None
    return next((known for known in FRONTENDS if known == named), None)


def canonical(data: object) -> str:
    """Return data as canonical JSON: sorted keys, no white space, only the required escapes."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(data: object) -> str:
    """Return ``sha256:…`` over data in canonical JSON; comments, key order and layout do not count."""
    return "sha256:" + hashlib.sha256(canonical(data).encode()).hexdigest()


KeyPath = tuple[str | int, ...]
PLAIN_KEY = re.compile(r"[\w-]+")
LONGEST = 100  # characters of a value in a line


class Absent(Enum):
    """The value of a path that is not there; null is a value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


@frozen
class Change:
    """One path with its value on either side, ``ABSENT`` where it is not there; never both.

    Under ``options`` the path is ``("options", key)`` and a value is the text behind the colon, ``None`` for
    a bare word, and a list where the key is repeated. Lists of maps that have a ``name`` each are compared by
    it, as ``("artifacts", "model", …)``; all other lists whole.
    """

    path: KeyPath
    before: Any
    after: Any

    def line(self) -> str:
        """Return ``parameters.temperature: 0.6 → 0.7``."""
        return f"{dotted(self.path)}: {shown(self.before)} → {shown(self.after)}"


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[Change, ...]:
    """Return every change, in the order of the keys; empty exactly when both have one digest."""
    return tuple(_maps((), before, after))


def same(one: object, other: object) -> bool:
    """Return whether digests of two values are equal: 1, 1.0 and true differ, the order of keys does not
    count.
    """
    if one is ABSENT or other is ABSENT:
        return one is other
    return canonical(one) == canonical(other)


def dotted(path: KeyPath) -> str:
    """Return a path as a person types it; a step that needs quotes has them."""
    return ".".join(s if PLAIN_KEY.fullmatch(s) else json_text(s) for s in map(str, path))


def shown(value: object) -> str:
    """Return a value in one line."""
    if value is ABSENT:
        return "absent"
    text = json_text(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def json_text(value: object) -> str:
    """Return JSON, escaped where a character would break the line or steer a terminal."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _maps(path: KeyPath, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        yield from _values((*path, key), before.get(key, ABSENT), after.get(key, ABSENT))


def _values(path: KeyPath, before: Any, after: Any) -> Iterator[Change]:
    if same(before, after):
        return
    sides = keyed(path, before), keyed(path, after)
    if sides[0] is not None and sides[1] is not None:
        # Where only an order or white space differs, the keys show nothing: the whole value is the change.
        yield from list(_maps(path, sides[0], sides[1])) or [Change(path, before, after)]
    elif _is_map(before, after) and _is_map(after, before):
        yield from _maps(path, {} if before is ABSENT else before, {} if after is ABSENT else after)
    else:
        yield Change(path, before, after)


def _is_map(value: object, other: object) -> bool:
    """Return whether both are compared key by key: two maps, or nothing beside a map with keys."""
    return isinstance(value, Mapping) or (value is ABSENT and isinstance(other, Mapping) and bool(other))


def keyed(path: KeyPath, value: Any) -> dict[str, object] | None:
    """Return a list whose entries have keys as a map: ``options``, and maps that each have their own name."""
    if path == (KEY,) and (value is ABSENT or _all(value, str)):
        entries = () if value is ABSENT else map(parse, value)
        return {key: _option_value(options) for key, options in grouped(entries).items()}
    if _all(value, dict) and value:
        names = [item.get("name") for item in value]
        if _all(names, str) and len(set(names)) == len(names):
            return dict(zip(names, value, strict=True))
    return None


def _all(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(v, kind) for v in value)


def _option_value(entries: tuple[Option, ...]) -> Any:
    values = [o.value for o in entries]
    return values[0] if len(values) == 1 else values
