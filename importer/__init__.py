"""From a Hugging Face model id to a serving config that was proved on a real engine."""

import sys

# ``python -m`` searches the working directory first, where a model's files may lie. Nothing may be imported
# above these lines; a checkout that is run from its own folder stays on the path.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    _HERE = __file__.rpartition("/")[0].rpartition("/")[0]
    sys.path[:] = [p for p in sys.path if p == _HERE or p not in {sys.path[0], "", "."}]

from importer.version import __version__

__all__ = [
    "ImportSession",
    "Imported",
    "Validated",
    "__version__",
    "export",
    "import_model",
    "recheck",
    "validate",
    "why",
]

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.app.api import (
        Imported,
        ImportSession,
        Validated,
        export,
        import_model,
        recheck,
        validate,
        why,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return a name of the public API; it is imported when it is used, so that ``--help`` stays fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("importer.app.api"), name)
