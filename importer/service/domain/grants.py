"""Grants beyond the free settings: the scope approve sets them, an approval lets them take effect.

What an edit may bring into a document, by every route: grants, and references as an import checks them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from importer.app.approvals import missing
from importer.app.import_request import ImportRequest
from importer.document.document_keys import KeyPath
from importer.document.grants import Grant, GrantReason, grants, set_values
from importer.document.store import StoredDocument
from importer.errors import ImporterError, ServiceError
from importer.frozen import frozen
from importer.hub.reference import check_whole, parse
from importer.hub.snapshot import mapping
from importer.service.domain.document_text import pointer
from importer.service.domain.import_request import Import, check_place, request_of
from importer.service.settings import Settings


@frozen
class Caller:
    """The client of a request and its scopes."""

    name: str
    scopes: frozenset[str]

    @property
    def has(self) -> str:
        """Return the scopes, for sentences."""
        return ", ".join(sorted(self.scopes)) or "none"

    def may(self, scope: str) -> bool:
        """Return whether the caller has a scope."""
        return scope in self.scopes

    def needs(self, scope: str) -> None:
        """Raise ServiceError("wrong-scope") where the caller has another."""
        if not self.may(scope):
            raise ServiceError("wrong-scope", name=self.name, scope=scope, has=self.has)


SCOPE = "approve"


def admitted(body: Import, who: Caller, settings: Settings) -> ImportRequest:
    """Return the import request, if this caller may make it on this service.

    Raises UsageError and ServiceError: "needs-approver", "no-directories".
    """
    need_approver(who, set_values(body.settings, {"backend": body.options["backend"]}))
    check_reference(str(body.reference), body.options["revision"], who, settings)
    return request_of(body, settings)


def check_reference(reference: str, revision: str | None, who: Caller, settings: Settings) -> None:
    """Raise UsageError or ServiceError for a reference that this caller may not have read here."""
    if parse(reference, revision).directory is not None:
        need_approver(who, [Grant(GrantReason.FOLDER, reference)])
    check_place(reference, revision, settings)


def need_approver(who: Caller, requested: Collection[Grant], present: Collection[Grant] = ()) -> None:
    """Raise ServiceError("needs-approver") where a caller without the scope adds a grant to ``present``."""
    new = sorted(set(requested) - set(present))
    if new and not who.may(SCOPE):
        raise ServiceError("needs-approver", what=new[0].reason, name=who.name, has=who.has)


def need_approval(stored: StoredDocument) -> None:
    """Raise ServiceError("code-not-approved") where a document grants something without an approval."""
    if granted := missing(stored):
        raise ServiceError("code-not-approved", name=stored.name, what=granted[0].reason)


NAMED = (("parameters", "model"), ("importer", "model_id"), ("importer", "reference"))


def admit_edit(
    before: Mapping[str, object], after: Mapping[str, object], who: Caller, settings: Settings
) -> None:
    """Raise ServiceError("needs-approver") for a grant that the caller may not add, and what
    ``check_references`` raises.
    """
    need_approver(who, grants(after), grants(before))
    check_references(before, after, settings)


def check_references(before: Mapping[str, object], after: Mapping[str, object], settings: Settings) -> None:
    """Raise what an import of a reference raises that an edit adds, with the place in the document.

    One that was there stays: it was taken once, perhaps under other settings.
    """
    known = {text for _, text in _references(before)}
    for path, text in _references(after):
        try:
            if text not in known:
                check_place(text, None, settings)
                check_whole(text)
        except ImporterError as error:
            raise error.but(errors=[{"pointer": pointer(path), "detail": error.message}]) from None


def _references(data: Mapping[str, object]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what names the model: to a job here, and in an artifact to LocalAI."""
    for block, key in NAMED:
        if isinstance(text := mapping(data.get(block)).get(key), str):
            yield (block, key), text
    artifacts = data.get("artifacts")
    for place, one in enumerate(artifacts if isinstance(artifacts, list) else ()):
        if isinstance(text := mapping(mapping(one).get("source")).get("repo"), str):
            yield ("artifacts", place, "source", "repo"), text
