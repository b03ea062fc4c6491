"""References: the texts that name a model by an id, a Hub URL in any form, or a directory.

Files and folders of a repository that a reference names: those that no engine loads are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from importer.errors import RepositoryError, Setting, UsageError
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, listed, mapping, text
from importer.reasons import Reason, ReasonKind

SCHEMES = ("hf://", "huggingface://")
FILE_SCHEME = "file://"
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")  # as llama.cpp, Ollama and Docker have them
# Registries that are no mirror of the Hub: HF_ENDPOINT with their address would lead nowhere.
REGISTRIES = {
    "modelscope": "ModelScope", "modelscope.cn": "ModelScope", "modelscope.ai": "ModelScope",
    "ms": "ModelScope", "ollama": "Ollama's library", "ollama.com": "Ollama's library",
    "docker.io": "Docker Hub", "hub.docker.com": "Docker Hub", "github.com": "GitHub", "kaggle.com": "Kaggle",
}  # fmt: skip
DIRECTORY = re.compile(r"\.{0,2}/|~/|\.{1,2}\Z")
HOST = re.compile(r"(?:[\w-]+\.)+[A-Za-z]{2,}(?::\d+)?", re.ASCII)
WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
STEP = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?")  # half of an id
KEYWORDS = {"tree", "blob", "resolve", "raw", "blame", "edit", "commit", "commits", "revision"}
OTHER_KINDS = {
    "datasets": "dataset",
    "spaces": "Space",
    "collections": "collection",
    "papers": "paper",
    "buckets": "bucket",
}
PULL_REQUEST = re.compile("refs/(?:pr/[0-9]{1,9}|convert/[^/]+)")
NOT_IN_REVISION = re.compile(r"[\s~^:?*\[\\]|@\{|\.\.|//|(?:^|/)\.|\.lock(?:/|$)|^[-/]|[/.]$")
DEFAULT_REVISION = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")
LONGEST = 2048  # characters of a reference
LONGEST_REVISION = 255


class ReferenceReason(ReasonKind):
    """Reasons why a text is no reference to a model."""

    EMPTY = "it names no repository"
    CONTROL = "it is longer than {limit} characters, or contains control characters"
    NO_REVISIONS = "a directory has no revisions"
    NO_HOME = "the home directory is not known"
    WINDOWS = "it is a path of Windows; in WSL a folder of the drive C: is below /mnt/c"
    UNKNOWN_URL = (
        "importer reads the Hub and folders, not {scheme}://; download the model, and import its folder"
    )
    REGISTRY = (
        "{name} is not supported; import the same model from the Hub, or download it from there, and "
        "import its folder"
    )
    FILE_URL = "write the path of its folder, without file://"
    OTHER_KIND = "it names a {what}, not a model"
    MALFORMED_URL = "it is not a well-formed URL, or has a user name in it"
    OTHER_HOST = (
        "{host} is not the Hub; if it is yours, set HF_ENDPOINT; otherwise download the model from "
        "there, and import its folder"
    )
    NO_OWNER = "the owner is missing (ids of one word are a legacy form: gpt2 is openai-community/gpt2)"
    TAGGED = "the model of a document has no tag"
    SLASHES = "an id is owner/name, with one slash; before a path write hf://"
    CHARACTERS = (
        "{part!r} must be 1 to 96 letters, digits, '_', inside also single '.' or '-', and not end in '.git'"
    )
    REVISION = "{revision!r} cannot be the name of a revision"
    TWICE = "it names two revisions"
    PAGE = "{page!r} behind the id names no revision, folder or file"


@frozen
class Reference:
    """A parsed reference: exactly one of ``repo`` and ``directory``; ``text`` is the user's text.

    ``path`` is the file or folder in the repository that the text names, if any; ``tag`` is the text behind
    a colon, with which other programs choose one of several files.
    """

    text: str
    repo: str | None = None
    revision: str | None = None
    directory: Path | None = None
    path: str | None = field(default=None, compare=False)
    tag: str | None = None


def parse(text: str, revision: str | None = None) -> Reference:
    """Parse a reference; ``revision`` is the value of the option ``--revision``.

    Raises UsageError: bad-reference, traversal, revision-conflict, bad-value.
    """
    typed = text.strip(" ")
    if not typed:
        _bad(text, ReferenceReason.EMPTY)
    if len(typed) > LONGEST or not typed.isprintable():
        _bad(text[:80] + "…" * (len(text) > 80), ReferenceReason.CONTROL, limit=LONGEST)
    if WINDOWS.match(typed):
        _bad(text, ReferenceReason.WINDOWS)
    if is_directory(typed):
        return Reference(text, directory=_directory(text, typed, revision))
    repo, inline, path = _repository(text, typed)
    repo, tag = _tagged(text, repo)
    if inline is not None and revision is not None and inline != revision:
        raise UsageError("revision-conflict", inline=inline, option=revision)
    chosen = inline if inline is not None else revision
    if chosen is not None:
        _check_revision(text, chosen, is_option=inline is None)
    return Reference(text, repo=_id(text, repo), revision=chosen, path=path, tag=tag)


def without_scheme(text: str) -> str:
    """Return the path that a ``file://`` URL names, decoded; every other text as it is.

    Raises UsageError("bad-reference") for the URL of another machine.
    """
    if not text.strip(" ").lower().startswith(FILE_SCHEME):
        return text
    host, _, path = text.strip(" ")[len(FILE_SCHEME) :].partition("/")
    if host.lower() not in {"", "localhost"}:
        _bad(text, ReferenceReason.FILE_URL)
    return f"/{unquote(path)}"


def is_directory(text: str) -> bool:
    """Return whether a reference names a directory of this disk."""
    return DIRECTORY.match(text.strip(" ")) is not None


def is_id(text: str) -> bool:
    """Return whether a text is the id of a repository."""
    try:
        return _id(text, text) == text
    except UsageError:
        return False


def check_whole(text: str) -> None:
    """Raise UsageError("bad-reference") for a reference with a tag, which engines do not load."""
    if parse(text).tag is not None:
        _bad(text, ReferenceReason.TAGGED)


def pinned(reference: Reference) -> str | None:
    """Return the requested revision, or ``None`` for the default one."""
    revision = reference.revision
    if revision is None or revision == DEFAULT_REVISION:
        return None
    return revision.lower() if COMMIT.fullmatch(revision.lower()) else revision


def _tagged(text: str, repo: str) -> tuple[str, str | None]:
    """Return an id without the tag behind it, and the tag."""
    owner, slash, name = repo.rpartition("/")
    bare, colon, tag = name.partition(":")
    if not (colon and bare and TAG.fullmatch(tag)):
        return repo, None
    if not slash:
        _bad(text, ReferenceReason.REGISTRY, name="Ollama's library")
    return f"{owner}/{bare}", tag


def _directory(text: str, typed: str, revision: str | None) -> Path:
    if revision is not None:
        problem = Reason(ReferenceReason.NO_REVISIONS)
        raise UsageError("bad-value", setting=Setting.REVISION, value=revision, problem=problem)
    try:
        return Path(typed).expanduser()
    except RuntimeError:
        _bad(text, ReferenceReason.NO_HOME)


def _repository(text: str, typed: str) -> tuple[str, str | None, str | None]:
    """Return the id, the revision and the path of the reference, all decoded, none checked."""
    lower = typed.lower()
    if lower.startswith(("http://", "https://")) or _starts_with_host(typed):
        return _from_url(text, _split(text, typed if "://" in typed[:8] else f"//{typed}"))
    scheme = next((s for s in SCHEMES if lower.startswith(s)), "")
    if not scheme and "://" in typed:
        other = lower.partition("://")[0]
        kind = ReferenceReason.FILE_URL if lower.startswith(FILE_SCHEME) else ReferenceReason.UNKNOWN_URL
        _outside(text, other, kind, scheme=other[:40])
    ident, at, revision = typed[len(scheme) :].partition("@")
    steps = _steps(text, ident if at else ident.partition("?")[0].partition("#")[0])
    if not scheme:
        return "/".join(steps), revision if at else None, None
    repo, named, path = _named(_model_steps(text, steps))
    if at and named is not None:
        _bad(text, ReferenceReason.TWICE)
    return repo, revision if at else named, path


def _starts_with_host(typed: str) -> bool:
    """Return whether a text is a URL without its scheme: of the Hub, or of any host before an id."""
    from importer.hub import endpoint

    head, slash, rest = typed.partition("/")
    try:
        return bool(slash) and (
            endpoint.is_hub(urlsplit(f"//{head}"))
            or ("/" in rest.partition("@")[0] and HOST.fullmatch(head) is not None)
        )
    except ValueError:
        return False


def _outside(text: str, place: str, kind: ReferenceReason, **fields: object) -> NoReturn:
    """Refuse a scheme or a host that is not the Hub's."""
    name = REGISTRIES.get(place.removeprefix("www."))
    if name is not None:
        _bad(text, ReferenceReason.REGISTRY, name=name)
    _bad(text, kind, **fields)


def _split(text: str, url: str) -> SplitResult:
    from importer.hub import endpoint

    try:
        parts = urlsplit(url)
        known = endpoint.is_hub(parts)
    except ValueError:
        _bad(text, ReferenceReason.MALFORMED_URL)
    if "@" in parts.netloc:
        _bad(text, ReferenceReason.MALFORMED_URL)
    if not known:
        host = parts.hostname or ""
        _outside(text, host, ReferenceReason.OTHER_HOST, host=host)
    return parts


def _from_url(text: str, parts: SplitResult) -> tuple[str, str | None, str | None]:
    from importer.hub import endpoint

    prefix = urlsplit(endpoint.endpoint()).path.rstrip("/")
    path = parts.path
    if prefix and path.startswith(f"{prefix}/"):
        path = path[len(prefix) :]
    steps = _steps(text, path[1:])
    steps = steps[2:] if steps[:2] == ["api", "models"] else _model_steps(text, steps)
    if any("@" in step for step in steps[:2]):
        ident, _, revision = "/".join(steps).partition("@")
        return ident, revision, None
    repo, named, behind = _named(steps)
    if named is None and behind is not None:
        _bad(text, ReferenceReason.PAGE, page=behind[:80])
    return repo, named, behind


def _model_steps(text: str, steps: list[str]) -> list[str]:
    """Return the steps from the id on; another kind of repository is refused."""
    if steps[0] in OTHER_KINDS:
        _bad(text, ReferenceReason.OTHER_KIND, what=OTHER_KINDS[steps[0]])
    return steps[1:] if steps[0] == "models" else steps


def _named(steps: list[str]) -> tuple[str, str | None, str | None]:
    """Return the id, the revision behind ``tree``, ``resolve`` and the like, and the path."""
    repo, rest = "/".join(steps[:2]), steps[2:]
    if len(rest) < 2 or rest[0] not in KEYWORDS:
        return repo, None, "/".join(rest) or None
    behind = "/".join(rest[1:])
    pull_request = PULL_REQUEST.match(behind)
    revision = pull_request.group() if pull_request else rest[1]
    return repo, revision, behind[len(revision) + 1 :] or None


def _steps(text: str, path: str) -> list[str]:
    """Return the steps of a path, decoded once; one trailing slash is allowed.

    Raises UsageError("traversal") for a path that leaves its folder.
    """
    steps = path.removesuffix("/").split("/")
    if any(not step or _leaves(step) for step in steps) and path.strip("/"):
        raise UsageError("traversal", reference=text)
    return [unquote(step) for step in steps]


def _leaves(step: str) -> bool:
    """Return whether a step is or hides '..', an empty step or a backslash, in any number of encodings."""
    for _ in range(4):
        parts = re.split(r"[/\\]", step)
        if ".." in parts or "" in parts or "\\" in step or "\0" in step:
            return True
        step, before = unquote(step), step
        if step == before:
            return False
    return True


def _id(text: str, repo: str) -> str:
    owner, slash, name = repo.partition("/")
    if not repo:
        _bad(text, ReferenceReason.EMPTY)
    if not slash:
        _bad(text, ReferenceReason.NO_OWNER)
    for part in (owner, name):
        if "/" in part:
            _bad(text, ReferenceReason.SLASHES)
        if not STEP.fullmatch(part) or "--" in part or ".." in part or name.endswith(".git"):
            _bad(text, ReferenceReason.CHARACTERS, part=part)
    return repo


def _check_revision(text: str, revision: str, *, is_option: bool) -> None:
    leaves = any(_leaves(step) for step in revision.split("/"))
    odd = len(revision) > LONGEST_REVISION or not revision.isprintable() or NOT_IN_REVISION.search(revision)
    if is_option and (leaves or odd):
        problem = Reason(ReferenceReason.REVISION, revision=revision[:80])
        raise UsageError("bad-value", setting=Setting.REVISION, value=revision[:80], problem=problem)
    if leaves and revision:
        raise UsageError("traversal", reference=text)
    if leaves or odd:
        _bad(text, ReferenceReason.REVISION, revision=revision[:80])


def _bad(text: str, kind: ReferenceReason, **fields: object) -> NoReturn:
    raise UsageError("bad-reference", reference=text[:200], problem=Reason(kind, **fields))


GGUF = ".gguf"
MOST_FOLDERS = 8  # that a sentence names


class FileRemedy(ReasonKind):
    """What to import in place of a file or a folder."""

    BESIDE = "Import {repo} itself: it has safetensors weights."
    MADE_FROM = "Import {repo}, the repository that it was made from, or serve the GGUF file with llama.cpp."
    ORIGINAL = (
        "Import the repository with the original safetensors weights, or serve the GGUF file with llama.cpp."
    )
    FETCH = "Fetch {folder!r} of {repo} at {revision}, then import that folder."
    FOLDERS = "Import {repo} without a path. Its folders with a config.json: {folders}."
    WHOLE = "Import {repo} without a path."


def check_path(reference: Reference, snapshot: Snapshot) -> None:
    """Raise RepositoryError for a reference to a GGUF file, to a folder, to what is not listed, and by a tag.

    A file at the top of a repository names the repository.
    """
    path, paths = reference.path, {file.path for file in snapshot.files}
    if reference.tag is not None:
        raise RepositoryError("tag", tag=reference.tag, repo=snapshot.label, next=_origin(snapshot))
    if path is None:
        return
    if path.lower().endswith(GGUF):
        raise RepositoryError("gguf-file", file=path, repo=snapshot.label, next=_origin(snapshot))
    folder = path.rpartition("/")[0] if path in paths else path
    if not folder:
        return
    listed_below = any(name.startswith(f"{folder}/") for name in paths)
    models = sorted(name.removesuffix("/config.json") for name in paths if name.endswith("/config.json"))
    remedy = Reason(FileRemedy.WHOLE, repo=snapshot.label)
    if listed_below and folder in models:
        remedy = Reason(FileRemedy.FETCH, folder=folder, repo=snapshot.label, revision=snapshot.revision)
    elif models:
        remedy = Reason(FileRemedy.FOLDERS, repo=snapshot.label, folders=tuple(models[:MOST_FOLDERS]))
    if listed_below:
        raise RepositoryError("subfolder", path=folder, repo=snapshot.label, next=remedy)
    raise RepositoryError("no-such-path", path=folder, repo=snapshot.label, next=remedy)


def _origin(snapshot: Snapshot) -> Reason:
    """Return the repository to import in place of a GGUF file."""
    if any(file.path.endswith(".safetensors") for file in snapshot.files):
        return Reason(FileRemedy.BESIDE, repo=snapshot.label)
    origin = made_from(snapshot)
    return Reason(FileRemedy.ORIGINAL) if origin is None else Reason(FileRemedy.MADE_FROM, repo=origin)


def made_from(snapshot: Snapshot, header: Mapping[str, object] | None = None) -> str | None:
    """Return the repository of the original weights, by the card or the Hub's tags; ``None`` without one.

    ``header`` is the card's header, as its file has it, for a folder that the Hub reports nothing of.
    """
    tags = [tag for one in listed(snapshot.info.get("tags")) if (tag := text(one)) is not None]
    related = [tag.rpartition(":")[2] for tag in tags if tag.startswith("base_model:")]
    card = mapping(snapshot.info.get("card") or header).get("base_model")
    named = (*listed(snapshot.info.get("base_models")), *(listed(card) or [card]))
    names = [name for one in named if (name := text(one)) is not None]
    return next((name for name in (*names, *related) if is_id(name) and name != snapshot.model_id), None)
