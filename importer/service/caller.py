"""Who makes a request, and with which scopes."""

from __future__ import annotations

from dataclasses import dataclass

from importer.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks; ``scopes`` is what they may."""

    name: str
    scopes: frozenset[str]

    @property
    def has(self) -> str:
        """The scopes, for sentences."""
        return ", ".join(sorted(self.scopes)) or "none"

    def may(self, scope: str) -> bool:
        """Whether the caller has a scope; admin may do everything."""
        return bool(self.scopes & {scope, "admin"})

    def needs(self, scope: str) -> None:
        """Raise ServiceError("wrong-scope") where the caller has another."""
        if not self.may(scope):
            raise ServiceError("wrong-scope", name=self.name, scope=scope, has=self.has)
