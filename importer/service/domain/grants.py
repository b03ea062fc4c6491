"""Grants beyond the positive list: the scope approve sets them, an approval lets them take effect."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from importer.app.decide import ImportRequest
from importer.config_file.grants import Grant, GrantReason, runs, set_values
from importer.config_file.store import StoredDocument
from importer.errors import ServiceError
from importer.hub import parse
from importer.service.domain.import_request import Import, check_place, request_of
from importer.service.settings import Settings


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a request and its scopes."""

    name: str
    scopes: frozenset[str]

    @property
    def has(self) -> str:
        """Return the scopes, for sentences."""
        return ", ".join(sorted(self.scopes)) or "none"

    def may(self, scope: str) -> bool:
        """Return whether the caller has a scope; admin may do everything."""
        return bool(self.scopes & {scope, "admin"})

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
    granted = runs(stored.data)
    if granted and not stored.approved:
        raise ServiceError("code-not-approved", name=stored.name, what=granted[0].reason)
