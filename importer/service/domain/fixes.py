"""The fix of a failed probe: its remedy as a merge patch of the document, or as a command to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importer.app.request import again_of
from importer.document import document_keys
from importer.document.records import OutcomeRecord
from importer.document.store import StoredDocument
from importer.hub.snapshot import mapping
from importer.reasons import key_of
from importer.validation.remedy import Remedy

Fix = dict[str, object]


def fix_of(outcome: OutcomeRecord, stored: StoredDocument) -> Fix | None:
    """Return ``{"change": patch}`` (RFC 7396) or ``{"command": text}``; ``None`` where a person has to act.

    A remedy that was tried and failed has no fix.
    """
    remedy, tried = outcome.get("remedy") or {}, outcome.get("tried")
    fields: Mapping[str, Any] = mapping(remedy.get("fields"))
    if tried is not None and not tried.get("right"):
        return None
    match next((one for one in Remedy if key_of(one) == remedy.get("kind")), None):
        case Remedy.SET_PARSER:
            return _changed(stored, _options(stored.data, str(fields["key"]), str(fields["parser"])))
        case Remedy.LEAVE_OUT_PARSER:
            return _changed(stored, _options(stored.data, str(fields["key"]), None))
        case Remedy.OFFER_NO_TOOLS:
            return _changed(stored, _options(stored.data, "tool_parser", None))
        case Remedy.TAKE_OUT_SETTING:
            return _changed(stored, _without(stored.data, str(fields["key"])))
        case Remedy.TAKE_OUT_VARIABLE:
            gone = dict.fromkeys(map(str, fields["variables"]))
            return _changed(stored, {"chat_template_kwargs": gone})
        case Remedy.TAKE_OUT_STOPWORD:
            words = [one for one in stored.data.get("stopwords") or () if one != fields["word"]]
            return _changed(stored, {"stopwords": words or None})
        case Remedy.SERVE_TEMPLATE:
            return {"command": again_of(stored, template=str(fields["template"]))}
        case Remedy.IMPORT_AGAIN:
            return {"command": again_of(stored)}
    return None


def _changed(stored: StoredDocument, patch: dict[str, object]) -> Fix | None:
    """Return the patch where it changes the document."""
    return {"change": patch} if patch and not _holds(stored.data, patch) else None


def _holds(data: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Return whether the data have what the patch would write."""
    return all(
        _holds(data[key], value)
        if isinstance(value, Mapping) and isinstance(data.get(key), Mapping)
        else data.get(key) == value
        for key, value in patch.items()
    )


def _options(data: Mapping[str, object], key: str, value: str | None) -> dict[str, object]:
    """Return the patch that names another parser, at the place of the present one, or none."""
    entries = [one.text for one in document_keys.of(data)]
    place = next((at for at, one in enumerate(document_keys.of(data)) if one.key == key), len(entries))
    others = [one.text for one in document_keys.of(data) if one.key != key]
    if value is not None:
        others.insert(place, document_keys.write(key, value))
    return {document_keys.KEY: others or None}


def _without(data: Mapping[str, Any], key: str) -> dict[str, object]:
    """Return the patch that removes the setting at a dotted path; empty where the document has none."""
    first, _, rest = key.partition(".")
    if not rest:
        return {first: None} if data.get(first) is not None else {}
    inner = data.get(first)
    patch = _without(inner, rest) if isinstance(inner, Mapping) else {}
    return {first: patch} if patch else {}
