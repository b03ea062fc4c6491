"""Names of those who act: the product's own in the audit log."""

from __future__ import annotations

LOCAL = "local"  # a caller on loopback without a key
NOBODY = "unknown user"  # at a command line whose user has no name
OWN = frozenset({LOCAL, "importer", NOBODY})
