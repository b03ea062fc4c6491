"""What an edit may bring into a document, by every route: grants, and references as an import checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.config_file.diff import KeyPath
from importer.config_file.grants import grants
from importer.errors import ImporterError
from importer.service.domain.document_text import pointer
from importer.service.domain.grants import Caller, need_approver
from importer.service.domain.import_request import check_place
from importer.service.settings import Settings

NAMED = (("parameters", "model"), ("importer", "model_id"), ("importer", "reference"))


def admit_edit(before: Mapping[str, Any], after: Mapping[str, Any], who: Caller, settings: Settings) -> None:
    """Raise ServiceError("needs-approver") for a grant that the caller may not add, and what
    ``check_references`` raises.
    """
    need_approver(who, grants(after), grants(before))
    check_references(before, after, settings)


def check_references(before: Mapping[str, Any], after: Mapping[str, Any], settings: Settings) -> None:
    """Raise what an import of a reference raises that an edit adds, with the place in the document.

    One that was there stays: it was taken once, perhaps under other settings.
    """
    known = {text for _, text in _references(before)}
    for path, text in _references(after):
        try:
            if text not in known:
                check_place(text, None, settings)
        except ImporterError as error:
            raise error.but(errors=[{"pointer": pointer(path), "detail": error.message}]) from None


def _references(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what names the model: to a job here, and in an artifact to LocalAI."""
    for block, key in NAMED:
        if isinstance(text := _map(data.get(block)).get(key), str):
            yield (block, key), text
    artifacts = data.get("artifacts")
    for place, one in enumerate(artifacts if isinstance(artifacts, list) else ()):
        if isinstance(text := _map(_map(one).get("source")).get("repo"), str):
            yield ("artifacts", place, "source", "repo"), text


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
