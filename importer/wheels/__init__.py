"""Released files in the package index that pip is configured with: found, and read by ranges."""

import hashlib
import sys
from collections.abc import Iterable

# The caller's pip may lie among the caller's own packages, invisible with ``-I``.
PIP = (sys.executable, "-P", "-m", "pip")


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """Return one SHA-256 over the paths and contents of files, in the order of their paths."""
    total = hashlib.sha256()
    for path, content in sorted(files):
        total.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()
