"""The digest of a document's data, and the differences between the data of two documents, by path."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from importer.config_file import document_keys


def canonical(data: object) -> str:
    """Return data as canonical JSON: sorted keys, no white space, only the required escapes."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(document: Mapping[str, Any]) -> str:
    """Return ``sha256:…`` over the data in canonical JSON; comments, key order and layout do not count."""
    return "sha256:" + hashlib.sha256(canonical(document).encode()).hexdigest()


KeyPath = tuple[str | int, ...]
PLAIN_KEY = re.compile(r"[\w-]+")
LONGEST = 100  # characters of a value in a line


class Absent(Enum):
    """The value of a path that is not there; null is a value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
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


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
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
    return ".".join(s if PLAIN_KEY.fullmatch(s) else _json(s) for s in map(str, path))


def shown(value: object) -> str:
    """Return a value in one line."""
    if value is ABSENT:
        return "absent"
    text = _json(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _json(value: object) -> str:
    """Return JSON, escaped where a character would break the line or steer a terminal."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _maps(path: KeyPath, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
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


def keyed(path: KeyPath, value: Any) -> dict[str, Any] | None:
    """Return a list whose entries have keys as a map: ``options``, and maps that each have their own name."""
    if path == (document_keys.KEY,) and (value is ABSENT or _all(value, str)):
        entries = () if value is ABSENT else map(document_keys.parse, value)
        return {key: _option_value(options) for key, options in document_keys.grouped(entries).items()}
    if _all(value, dict) and value:
        names = [item.get("name") for item in value]
        if _all(names, str) and len(set(names)) == len(names):
            return dict(zip(names, value, strict=True))
    return None


def _all(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(v, kind) for v in value)


def _option_value(entries: tuple[document_keys.Option, ...]) -> Any:
    values = [o.value for o in entries]
    return values[0] if len(values) == 1 else values
