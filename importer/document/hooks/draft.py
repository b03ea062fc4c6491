"""A hand-written document while hooks offer it what it leaves out; nothing that it sets can be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importer.document import options
from importer.document.diff import Path, keyed


class Draft:
    """``plan`` is what an import of the same model would write; ``added`` what was taken of it, by path.

    An option's path is ``("options", key)`` and its value the whole entry.
    """

    def __init__(self, document: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        self._document = document
        self._flags = {
            o.key.lstrip("-").replace("-", "_") for o in options.of(document) if o.key.startswith("--")
        }
        self.plan = plan
        self.added: dict[Path, Any] = {}

    def offer(self, *keys: str) -> None:
        """Offer what the plan has under these keys of its top, each value by itself."""
        for key in keys:
            if key in self.plan:
                for path, value in _leaves((key,), self.plan[key]):
                    self.offer_value(path, value)

    def offer_value(self, path: Path, value: Any) -> None:
        """Offer a value of a hook's own."""
        if not self._is_set(path):
            self.added.setdefault(path, value)

    def _is_set(self, path: Path) -> bool:
        """Whether the document says something at a path: zero, false, null and empty ones are said, too.

        An engine's flag among the options (``--max-model-len=4096``) says the value of its name.
        """
        if path[0] in ("engine_args", path[-1]) and path[-1] in self._flags:
            return True
        if path[0] == options.KEY and options.KEY in self._document:
            entries = keyed((options.KEY,), self._document[options.KEY])
            return not entries or path[1] in entries
        inner: Any = self._document
        for step in path:
            if not isinstance(inner, Mapping) or not (inner or inner is self._document):
                return True
            if step not in inner:
                return False
            inner = inner[step]
        return True


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    """Values by their paths; maps key by key, options entry by entry, other lists whole."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif path == (options.KEY,):
        yield from (((options.KEY, options.parse(entry).key), entry) for entry in value)
    else:
        yield path, value
