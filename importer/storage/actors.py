"""Names of those who act: the product's own in the audit log, and the form in which names are compared."""

from __future__ import annotations

import re
import unicodedata

LOCAL = "local"  # a caller on loopback without a key
SCHEDULER = "schedule"  # the caller of a job that the schedule begins
SERVICE = "importer"  # the service itself, such as for its retention
NOBODY = "unknown user"  # at a command line whose user has no name
OWN = frozenset({LOCAL, SCHEDULER, SERVICE, NOBODY})  # each in its folded form
# Unicode's Default_Ignorable_Code_Point, as far as it counts as printable: no reader sees them.
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def folded(name: str) -> str:
    """Return the form in which two names that look alike are one: Unicode's NFKC_Casefold, spaces joined."""
    form = unicodedata.normalize("NFD", UNSEEN.sub("", name))
    for _ in range(2):  # as Unicode defines it: the first normal form may have capitals of its own
        form = unicodedata.normalize("NFKC", form.casefold())
    return " ".join(UNSEEN.sub("", form).split())
