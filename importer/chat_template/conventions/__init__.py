"""Names of templates in place of a model's own; a convention is a file of Jinja macros here, with our calls.

CONTRIBUTING.md describes how to add a convention.
"""

from __future__ import annotations

from importer import backends

CONVENTIONS = ("json",)  # calls as JSON between tags; a backend names the parser that reads them
NONE = "none"  # removes the override
FILE = "file"  # name of an override from a file
OWN_CALLS = "own-calls"  # tools of ours before the model's own calls
AS_WRITTEN = "as-written"  # the model's own, with calls spelled as a validation saw the model write them


def offered(backend: str) -> tuple[str, ...]:
    """Return the conventions that an engine can read, the preferred one first."""
    return tuple(backends.of(backend).conventions)
