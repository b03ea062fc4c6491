"""Names of those who act: the product's own in the audit log."""

from __future__ import annotations

LOCAL = "local"  # a caller on loopback without a key
SERVICE = "importer"  # the service itself, such as for its retention
NOBODY = "unknown user"  # at a command line whose user has no name
OWN = frozenset({LOCAL, SERVICE, NOBODY})
