"""The three-way merge of a re-import with a person's edits, of data and of comments.

``base`` is the importer's last text or data, ``edited`` the file's, ``imported`` those of the new import.
Conflicts and ``--on-conflict`` name the last two "mine" and "theirs". tests/merge_cases.py has the cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

from importer.document import build, document_keys
from importer.document.attention import Attention, AttentionReason
from importer.document.document import document_of
from importer.document.document_keys import ABSENT, KeyPath, dotted, keyed, same, shown
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

Take = Literal["mine", "theirs"]
TAKES: tuple[Take, ...] = ("mine", "theirs")
NO_KEYS: Mapping[str, Take] = {}
# Values that follow from others: edits of them do not count, and the importer derives them again.
DERIVED: tuple[KeyPath, ...] = (("importer", "client_sampling"),)
BOOKKEEPING = ("importer", "artifacts")  # what every new commit changes


class MergeReason(ReasonKind):
    """What a merge meets."""

    CONFLICT = "{path}: it was {was}, the file says {mine}, this import says {theirs}"


@frozen
class Conflict:
    """A path that both sides changed, each to another value; ``ABSENT`` where a side has none."""

    path: KeyPath
    base: Any
    mine: Any
    theirs: Any

    @property
    def reason(self) -> Reason:
        """Return ``parameters.temperature: it was 0.6, the file says 0.5, this import says 0.7``."""
        base, edited, imported = map(shown, (self.base, self.mine, self.theirs))
        path = dotted(self.path)
        return Reason(MergeReason.CONFLICT, path=path, was=base, mine=edited, theirs=imported)

    def to_json(self) -> dict[str, object]:
        """Return the path and its values; a side that is not there is left out, for null is a value."""
        sides = {"base": self.base, "mine": self.mine, "theirs": self.theirs}
        return {"path": dotted(self.path)} | {k: v for k, v in sides.items() if v is not ABSENT}


def of_conflicts(conflicts: Iterable[Conflict]) -> tuple[Attention, ...]:
    """Return the values that a person and an import changed differently, also where it was settled."""
    return tuple(Attention(AttentionReason.CONFLICT, dotted(c.path), c.reason) for c in conflicts)


class Merge:
    """The data of three sides: ``base``, ``edited`` (take "mine") and ``imported`` (take "theirs").

    At ``conflicts`` the ``data`` hold the edited values, unless the choice is "theirs": that of ``keys`` for
    the path, else ``take``. ``unsettled`` are the conflicts without a choice.
    """

    def __init__(
        self,
        base: Mapping[str, object],
        edited: Mapping[str, object],
        imported: Mapping[str, object],
        take: Take | None = None,
        keys: Mapping[str, Take] = NO_KEYS,
    ) -> None:
        self._take, self._keys = take, keys
        self.conflicts: list[Conflict] = []
        self.data = document_of(self._maps((), base, edited, imported))

    def _value(self, path: KeyPath, base: Any, edited: Any, imported: Any) -> Any:
        if path in DERIVED or same(base, edited):
            return imported
        if same(edited, imported) or same(base, imported) or (edited is ABSENT and path[0] in BOOKKEEPING):
            return edited
        sides = _as_maps(path, base, edited, imported)
        if sides is None:
            self.conflicts.append(Conflict(path, base, edited, imported))
            return imported if self._choice(path) == "theirs" else edited
        merged = self._maps(path, *sides)
        if not merged and ABSENT in (edited, imported):
            return ABSENT
        if isinstance(edited, Mapping) or isinstance(imported, Mapping):
            return merged
        return _entries(merged, edited, imported) if path == (document_keys.KEY,) else list(merged.values())

    @property
    def unsettled(self) -> list[Conflict]:
        """Return the conflicts that nothing decides."""
        return [one for one in self.conflicts if self._choice(one.path) is None]

    def _choice(self, path: KeyPath) -> Take | None:
        return self._keys.get(dotted(path), self._take)

    def _maps(self, path: KeyPath, *sides: Mapping[str, object]) -> dict[str, object]:
        """Return the merged map of the sides base, edited and imported."""
        merged = {
            key: self._value((*path, key), *(side.get(key, ABSENT) for side in sides))
            for key in interleaved(*sides[1:])
        }
        return {key: value for key, value in merged.items() if value is not ABSENT}


def _as_maps(path: KeyPath, *sides: Any) -> list[Mapping[str, object]] | None:
    """Return sides that are all maps, or all lists whose entries have keys, as maps; an absent one is empty.

    ``None`` for any other sides.
    """
    present = [side for side in sides if side is not ABSENT]
    maps = (
        present
        if all(isinstance(side, Mapping) for side in present)
        else [keyed(path, side) for side in present]
    )
    if None in maps:
        return None
    remaining = iter(maps)
    return [{} if side is ABSENT else next(remaining) for side in sides]


def interleaved(edited: Iterable[str], imported: Iterable[str]) -> list[str]:
    """Return all keys in the order of ``edited``; new ones behind their neighbours in ``imported``."""
    keys = list(edited)
    after: dict[str | None, str | None] = dict(zip([None, *keys], [*keys, None], strict=True))
    before: str | None = None
    for key in imported:
        if key not in after:
            after[before], after[key] = key, after[before]
        before = key
    order: list[str] = []
    while (following := after[order[-1] if order else None]) is not None:
        order.append(following)
    return order


def _entries(merged: Mapping[str, object], edited: Any, imported: Any) -> list[str]:
    """Return ``options`` in the order of ``edited``, each entry as its own side writes it."""
    options, others = (
        [] if side is ABSENT else [document_keys.parse(entry) for entry in side]
        for side in (edited, imported)
    )
    own, offered = keyed((document_keys.KEY,), edited) or {}, document_keys.grouped(others)
    unchanged = {key for key in own if key in merged and same(own[key], merged[key])}
    last = {o.key: at for at, o in enumerate(options)}
    behind: dict[str | None, list[document_keys.Option]] = {}  # new, by the ``edited`` key before them
    before: str | None = None
    for key in merged:
        if key in last:
            before = key
        else:
            behind.setdefault(before, []).extend(offered.get(key, ()))
    done, met = [*behind.get(None, ())], set[str]()
    for at, option in enumerate(options):
        key = option.key
        if key in unchanged:
            done += [option, *(behind.get(key, ()) if at == last[key] else ())]
        elif key in merged and key not in met:
            done += [*offered.get(key, ()), *behind.get(key, ())]
            met.add(key)
    return [o.text for o in done]


def write(
    edited: str, data: Mapping[str, object], base: str | None, imported: str, path: object = "It"
) -> str:
    """Return ``edited`` with merged data; the importer's comments are renewed, also at a person's values.

    A person's comment is never touched. The importer's are those of ``base``, and those of their form at a
    person's values. Raises DocumentError("cannot-edit").
    """
    from importer.document.yaml_edit.patch import rewrite
    from importer.document.yaml_edit.source_map import read

    base_remarks, old_remarks, new_remarks = (
        {} if text is None else remarks(text) for text in (base, edited, imported)
    )
    values, planned = (dict(labelled(one)) for one in (data, read(imported, path)))
    notes: dict[KeyPath, str | None] = {}
    for place in {**old_remarks, **new_remarks}:
        old, new = old_remarks.get(place), new_remarks.get(place)
        if old is None and place in base_remarks:
            continue  # the person took it away
        if old is None or old in (base_remarks.get(place), new) or build.is_edit(old):
            note = _note(place, old, new, values, planned)
            if note != old:
                notes[place] = note
    return rewrite(_headed(edited, base, imported), data, notes, path)


def _headed(edited: str, base: str | None, imported: str) -> str:
    """Return the text under the head that the importer writes now, where a person left its last one alone."""
    last, now = ("" if text is None else head(text) for text in (base, imported))
    return now + edited.removeprefix(last) if last and edited.startswith(last) else edited


def head(text: str) -> str:
    """Return the comments in front of the first key."""
    return "".join(takewhile(lambda line: line.startswith("#"), text.splitlines(keepends=True)))


def _note(
    place: KeyPath,
    old: str | None,
    new: str | None,
    values: Mapping[KeyPath, Any],
    planned: Mapping[KeyPath, Any],
) -> str | None:
    """Return the importer's new comment at a place; ``None`` for none."""
    if place not in values:
        return None
    imported = _commented(planned, place)
    if same(_commented(values, place), imported):
        return new
    return None if old is None else build.edited(None if imported is ABSENT else shown(imported))


def _commented(values: Mapping[KeyPath, Any], place: KeyPath) -> Any:
    """Return the value that a comment at a place is of: at the first entry of a list it is of the list."""
    above = values.get(place[:-1])
    return above if isinstance(above, list) and isinstance(place[-1], int) else values.get(place, ABSENT)


@lru_cache(maxsize=64)
def remarks(text: str) -> Mapping[KeyPath, str]:
    """Return the comments on the lines of values, without their signs."""
    from importer.document.yaml_edit.cst import Layout

    return {path: comment.text.lstrip("#").strip() for path, comment in Layout(text).remarks().items()}


def labelled(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value with its path; entries of lists under their labels, as comments are found."""
    from importer.document.yaml_edit.cst import labels

    yield path, data
    entries: Iterable[tuple[KeyPath, Any]] = ()
    if isinstance(data, Mapping):
        entries = (((key,), value) for key, value in data.items())
    elif isinstance(data, list):
        entries = zip(labels(path, data), data, strict=True)
    for step, value in entries:
        yield from labelled(value, (*path, *step))
