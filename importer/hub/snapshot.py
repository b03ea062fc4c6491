"""Snapshots: a repository at one commit, with its file list and its small text files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

LARGEST = 1 << 56  # bytes, parameters: no model is larger
LICENSE = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}", re.ASCII)
# Files that engines read beside the weights; without the template, its digest is in the proof.
TEMPLATES = ("chat_template.jinja", "chat_template.json")  # files that hold nothing but the template
SETTINGS = (
    "config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "tekken.json",
    "params.json", "processor_config.json", "preprocessor_config.json", *TEMPLATES,
)  # fmt: skip
# Every engine starts with one that is no JSON, as if it were absent: ``load_config`` of mlx-lm 0.32 and of
# mlx-vlm 0.7, ``try_get_generation_config`` of vLLM 0.32.
PASSED_OVER = ("generation_config.json",)
MARK = "\ufeff"  # the byte order mark
POINTER = "version https://git-lfs"  # the first words of git-lfs in the place of a file
LINK = "../../blobs/"  # a link of the Hub client's cache, copied as a text
POINTER_SIZES = range(120, 141)  # bytes: three lines, one with the size of the file
LONGEST_POINTER = 1024  # bytes, by the specification of git-lfs
MAX_DEPTH = 100  # of a config's nesting; real ones stay under 10


def text(value: object) -> str | None:
    """Return the value if it is a text, else ``None``."""
    return value if isinstance(value, str) else None


def whole(value: object, least: int = 0, most: int = LARGEST) -> int | None:
    """Return the value if it is a whole number within bounds, else ``None``; JSON's true is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if least <= value <= most else None


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def git_hash(data: bytes) -> str:
    """Return git's hash of a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class JsonReason(ReasonKind):
    """Reasons why a text is not valid JSON, or not an object."""

    DEEP = "it is nested too deep"
    BROKEN = "{says}"
    MARKED = "it begins with a byte order mark, so engines refuse it; save it without one"
    LINK = "it is the text of a link into the cache; copy the folder of snapshots with its links"
    NO_OBJECT = "it is not an object"


class UnreadReason(ReasonKind):
    """Reasons why a snapshot lacks the text of a file."""

    NOT_LISTED = "the repository does not list it"
    TOO_LARGE = "it is larger than {limit}"
    NOT_AMONG = "it is not among the {most} files read"
    NOT_TEXT = "it is not UTF-8 text"
    OUTSIDE = "it links to a place outside the directory"
    NO_FILE = "it is not a plain file"
    GONE = "it is a link to a file that is gone"
    POINTER = "it is a pointer of git-lfs and not the file; run 'git lfs pull'"
    NO_MAP = "it places no tensor in a file beside it"
    SYSTEM = "{says}"
    OFFLINE = "the Hub was not asked, so its tags and the card are not known"
    NOT_STORED = "it is not in the cache"


@frozen
class RepoFile:
    """A file of the repository: its path, and its size in bytes if the listing has one.

    ``hash`` is git's (40 hex digits of SHA-1, the same as ``git hash-object``), or the SHA-256 of
    a large one (64); ``None`` where neither is known.
    """

    path: str
    size: int | None = None
    hash: str | None = None


@frozen
class Snapshot:
    """A repository pinned to a commit.

    ``model_id``   the Hub's canonical id, ``None`` for a directory.
    ``revision``   40 hex digits, ``None`` for a directory.
    ``files``      everything listed; ``texts`` the small allow-listed files that were read.
    ``info``       fields of the Hub: ``pipeline_tag``, ``library_name``, ``tags``, ``card`` (the card's
                   YAML header), ``base_models`` (ids the card names), ``config`` (the part of it that the
                   Hub shows), ``safetensors_total`` (parameters), ``safetensors`` (parameters by dtype),
                   ``gated``, ``modified`` (time of the commit). Empty for a directory, and offline.
    ``directory``  of the files on this disk, if any (the weights may be missing there).
    ``unknown``    file name to the reason for a missing text: never an error by itself.
    ``tensors``    names by the headers of the weights, where they were read; else ``None``.
    ``broken``     files of this disk that engines read, and the reason why they cannot.
    """

    reference: str
    model_id: str | None
    revision: str | None
    files: tuple[RepoFile, ...]
    texts: Mapping[str, str]
    info: Mapping[str, object] = field(default_factory=dict)
    directory: Path | None = None
    unknown: Mapping[str, Reason] = field(default_factory=dict)
    tensors: tuple[str, ...] | None = None
    broken: Mapping[str, Reason] = field(default_factory=dict)
    _paths: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", frozenset(f.path for f in self.files))

    @property
    def label(self) -> str:
        """Return the name for messages."""
        return self.model_id or str(self.directory or self.reference)

    @property
    def license(self) -> str | None:
        """Return the short name of the licence, from the card or the Hub's tags."""
        card = mapping(self.info.get("card"))
        values = [card.get("license_name"), card.get("license")]
        tags = listed(self.info.get("tags"))
        values += [t.removeprefix("license:") for t in tags if t.startswith("license:")]
        names = [s for s in values if isinstance(s, str) and LICENSE.fullmatch(s) and s != "other"]
        return names[0] if names else None

    @property
    def settings(self) -> dict[str, str]:
        """Return the known hashes of the files that engines read beside the weights."""
        return {f.path: f.hash for f in self.files if f.path in SETTINGS and f.hash is not None}

    def has(self, path: str) -> bool:
        """Return whether the repository lists ``path``."""
        return path in self._paths

    def json(self, path: str) -> Mapping[str, object]:
        """Return the object in ``path``; empty for an unread file, and for one that engines pass over.

        Raises RepositoryError("broken-json") where the text is not a JSON object.
        """
        text = self.texts.get(path)
        return {} if text is None or self.passed_over(path) else parse_object(text, path, self.label)

    def passed_over(self, path: str) -> bool:
        """Return whether engines start as if the file were absent, for its text is not JSON."""
        if path not in PASSED_OVER or path not in self.texts:
            return False
        try:
            json.loads(self.texts[path])
        except RecursionError:
            return False
        except ValueError:
            return True
        return False


def parse_object(text: str, path: str, repo: str) -> dict[str, object]:
    """Parse an untrusted JSON object.

    Raises RepositoryError("broken-json") for every other text, never RecursionError.
    """
    try:
        data = json.loads(text)
    except RecursionError:
        raise RepositoryError("broken-json", file=path, repo=repo, problem=Reason(JsonReason.DEEP)) from None
    except ValueError as error:
        known = {MARK: JsonReason.MARKED, POINTER: UnreadReason.POINTER, LINK: JsonReason.LINK}
        kind = next((kind for start, kind in known.items() if text.startswith(start)), None)
        problem = Reason(JsonReason.BROKEN, says=str(error)) if kind is None else Reason(kind)
        raise RepositoryError("broken-json", file=path, repo=repo, problem=problem) from None
    if not isinstance(data, dict):
        raise RepositoryError("broken-json", file=path, repo=repo, problem=Reason(JsonReason.NO_OBJECT))
    if _depth(data) > MAX_DEPTH:
        raise RepositoryError("broken-json", file=path, repo=repo, problem=Reason(JsonReason.DEEP))
    return dict(written(text, data))


def written(text: str, data: Any) -> Any:
    """Return JSON as it can be written again: half of a surrogate pair can be parsed, but not encoded."""
    if "\\ud" not in text.lower():
        return data
    return json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        level = [
            c
            for v in level
            for c in (v.values() if isinstance(v, dict) else v if isinstance(v, list) else ())
        ]
        depth += 1
    return depth
