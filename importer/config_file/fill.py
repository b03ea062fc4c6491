"""Add the values that a hand-written document leaves out to its text; its own values stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from importer.config_file import document_keys
from importer.config_file.document import Document, document_of
from importer.config_file.document_keys import KeyPath, keyed
from importer.config_file.merge import interleaved, remarks
from importer.config_file.yaml_edit.patch import rewrite
from importer.frozen import frozen


class Draft:
    """``plan`` is what an import of the same model would write; ``added`` what was taken of it, by path.

    An option's path is ``("options", key)`` and its value the whole entry.
    """

    def __init__(self, document: Mapping[str, object], plan: Mapping[str, object]) -> None:
        self._document = document
        self._flags = {
            o.key.lstrip("-").replace("-", "_") for o in document_keys.of(document) if o.key.startswith("--")
        }
        self.plan = plan
        self.added: dict[KeyPath, Any] = {}

    def offer(self, *keys: str) -> None:
        """Offer what the plan has under these keys of its top, each value by itself."""
        for key in keys:
            if key in self.plan:
                for path, value in _leaves((key,), self.plan[key]):
                    self.offer_value(path, value)

    def offer_value(self, path: KeyPath, value: Any) -> None:
        """Offer a value of a hook's own."""
        if not self._is_set(path):
            self.added.setdefault(path, value)

    def _is_set(self, path: KeyPath) -> bool:
        """Return whether the document has a value at a path; zero, false, null and empty ones count.

        An engine's flag among the options (``--max-model-len=4096``) is a value of its name.
        """
        if path[0] in ("engine_args", path[-1]) and path[-1] in self._flags:
            return True
        if path[0] == document_keys.KEY and document_keys.KEY in self._document:
            entries = keyed((document_keys.KEY,), self._document.get(document_keys.KEY))
            return not entries or path[1] in entries
        inner: Any = self._document
        for step in path:
            if not isinstance(inner, Mapping) or not (inner or inner is self._document):
                return True
            if step not in inner:
                return False
            inner = inner[step]
        return True


def _leaves(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """Yield values by their paths; maps key by key, options entry by entry, other lists whole."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif path == (document_keys.KEY,):
        yield from (((document_keys.KEY, document_keys.parse(entry).key), entry) for entry in value)
    else:
        yield path, value


def offer_names(draft: Draft) -> None:
    """Offer LocalAI's own keys."""
    draft.offer("name", "description", "known_usecases", "template")


def offer_sampling(draft: Draft) -> None:
    """Offer ``parameters`` and the stop words, which are of the model and not of an engine."""
    draft.offer("parameters", "stopwords")


def offer_origin(draft: Draft) -> None:
    """Offer LocalAI's artifacts and the importer's own block."""
    draft.offer("artifacts", "importer")


def offer_unnamed(draft: Draft) -> None:
    """Offer the backend, where the document lacks the key; an empty one stays."""
    draft.offer("backend")


def offer_parsers(draft: Draft) -> None:
    """Offer the parsers among ``options``, each by its key."""
    draft.offer(document_keys.KEY)


def offer_engine(draft: Draft) -> None:
    """Offer all other values that an import would write for this engine."""
    draft.offer(*draft.plan)


Hook = Callable[[Draft], None]

EVERY = "*"  # every backend, before all others
UNNAMED = ""  # documents that leave the choice of a backend open

# As LocalAI keys its own hooks; several under one key run in this order.
HOOKS: tuple[tuple[str, Hook], ...] = (
    (EVERY, offer_names),
    (EVERY, offer_sampling),
    (EVERY, offer_origin),
    (UNNAMED, offer_unnamed),
    ("vllm", offer_parsers),
    ("vllm", offer_engine),
    ("mlx", offer_parsers),
    ("mlx", offer_engine),
    ("mlx-vlm", offer_parsers),
    ("mlx-vlm", offer_engine),
    ("vllm-mlx", offer_parsers),
    ("vllm-mlx", offer_engine),
    ("sglang", offer_parsers),
    ("sglang", offer_engine),
)


def hooks(backend: str, *, named: bool, among: tuple[tuple[str, Hook], ...] = HOOKS) -> Iterator[Hook]:
    """Yield those for a document: every backend's, then the unnamed one's where it names none, then its
    own.
    """
    for key in (EVERY, *(() if named else (UNNAMED,)), backend):
        yield from (hook for registered, hook in among if registered == key)


@frozen
class Filled:
    """The text and its data after the additions; ``added`` by path, and by path the comments that say why."""

    text: str
    data: Document
    added: Mapping[KeyPath, Any]
    why: Mapping[KeyPath, str]


def fill(
    text: str,
    data: Document,
    plan: str,
    planned: Document,
    backend: str,
    path: object = "It",
) -> Filled:
    """Add to ``text`` what its ``data`` leave out of an import's ``plan``, with the plan's comments.

    ``backend`` is the one that was planned for. Raises DocumentError("cannot-edit").
    """
    draft = Draft(data, planned)
    for hook in hooks(backend, named=bool(data.get("backend"))):
        hook(draft)
    whole = document_of(_with(data, _nested(draft.added), planned))
    comments = remarks(plan)
    why = {place: comments[place] for place in comments if any(place[: len(p)] == p for p in draft.added)}
    return Filled(rewrite(text, whole, why, path), whole, draft.added, why)


def _nested(added: Mapping[KeyPath, Any]) -> dict[str, object]:
    """Return values by path as the maps and the list of options that they make."""
    data: dict[str, Any] = {}
    for path, value in added.items():
        inner = data
        if path[0] == document_keys.KEY:
            data.setdefault(document_keys.KEY, []).append(value)
            continue
        for step in path[:-1]:
            inner = inner.setdefault(str(step), {})
        inner[str(path[-1])] = value
    return data


def _with(mine: Mapping[str, Any], added: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, object]:
    """Return both together: the order of ``mine``, and each addition behind the key it follows in the
    plan.
    """
    whole: dict[str, Any] = {}
    for key in interleaved(mine, [k for k in (*planned, *added) if k in mine or k in added]):
        if key not in added:
            whole[key] = mine[key]
        elif isinstance(mine.get(key), Mapping):
            inner = planned.get(key)
            whole[key] = _with(mine[key], added[key], inner if isinstance(inner, Mapping) else {})
        else:
            whole[key] = [*mine[key], *added[key]] if key in mine else added[key]
    return whole
