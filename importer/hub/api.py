"""The Hub's answer about a repository: its commit, its files, its own words; and what its refusals mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from importer.errors import HubError, RepositoryError, UsageError
from importer.hub import hosts, transport
from importer.hub.reference import COMMIT, parse
from importer.hub.snapshot import RepoFile, parse_object

MAX_ANSWER = 64 * 1024 * 1024  # bytes; repositories with ten thousand files stay under 5 MB
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SAFE_PATH = re.compile(r"(?!/)(?:(?!\.\.?(?:/|$))[^/\\\x00-\x1f\x7f]+(?:/(?!$)|$))+")


@dataclass(frozen=True, slots=True)
class Listing:
    """One commit as the Hub describes it: id as the Hub writes it, files with sizes, its own words."""

    repo: str
    commit: str
    files: tuple[RepoFile, ...]
    info: Mapping[str, Any]


def ask(repo: str, revision: str | None) -> Listing:
    """The one API call. Raises HubError."""
    at = "" if revision is None else f"/revision/{quote(revision, safe='')}"
    url = f"{transport.check_endpoint()}/api/models/{repo}{at}?blobs=true"
    try:
        answer = transport.get(url, limit=MAX_ANSWER)
    except transport.TooLarge:
        raise _unusable(url, f"it is longer than {MAX_ANSWER} bytes") from None
    if answer.status != 200:
        raise refusal(answer, repo, revision)
    return _listing(repo, revision, url, answer.body)


def file_url(repo: str, commit: str, path: str) -> str:
    """Where one file of one commit is read."""
    return f"{hosts.endpoint()}/{repo}/resolve/{commit}/{quote(path)}"


def refusal(answer: transport.Answer, repo: str, revision: str | None) -> HubError:
    """What a 4xx means; the Hub says it in ``X-Error-Code`` and in the words of ``X-Error-Message``."""
    code = answer.headers.get("x-error-code", "")
    said = answer.headers.get("x-error-message", "").lower()
    if code == "GatedRepo":
        return HubError("gated", repo=repo, url=f"{hosts.plain(hosts.endpoint())}/{repo}")
    if code == "RevisionNotFound":
        return HubError("revision-not-found", repo=repo, revision=revision or "main")
    if answer.status == 401 and answer.had_token and ("credentials" in said or code != "RepoNotFound"):
        return HubError("bad-token")
    if answer.status == 401 and not answer.had_token:
        return HubError("private", repo=repo)
    if code == "RepoNotFound" or answer.status in {404, 410}:
        return HubError("not-found", repo=repo)
    return _unusable(answer.url, f"it refused with status {answer.status}")


def _listing(repo: str, revision: str | None, url: str, body: bytes) -> Listing:
    try:
        data = parse_object(body.decode(), url, repo)
    except UnicodeDecodeError:
        raise _unusable(url, "it is not UTF-8 text") from None
    except RepositoryError as error:
        raise _unusable(url, error.details["problem"]) from None
    commit = data.get("sha")
    if not (isinstance(commit, str) and COMMIT.fullmatch(commit)):
        raise _unusable(url, "it names no commit")
    if revision is not None and COMMIT.fullmatch(revision) and commit != revision:
        raise _unusable(url, f"it describes commit {commit}")
    return Listing(_repo_id(data, repo), commit, _files(data.get("siblings")), _info(data))


def _repo_id(data: Mapping[str, Any], asked: str) -> str:
    """The id as the Hub writes it: after a renaming, or with its own capitals."""
    for told in (data.get("id"), data.get("modelId")):
        try:
            if isinstance(told, str) and parse(told) and parse(told).repo == told:
                return told
        except UsageError:
            continue
    return asked


def _files(siblings: object) -> tuple[RepoFile, ...]:
    """The listed files; a name that could leave its place is no file."""
    found = {}
    for entry in siblings if isinstance(siblings, list) else []:
        path = entry.get("rfilename") if isinstance(entry, dict) else None
        if isinstance(path, str) and len(path) < 1024 and SAFE_PATH.fullmatch(path):
            size = entry.get("size")
            known = isinstance(size, int) and not isinstance(size, bool) and size >= 0
            found[path] = RepoFile(path, size if known else None, _hash(entry))
    return tuple(found[path] for path in sorted(found))


def _hash(entry: Mapping[str, Any]) -> str | None:
    """Of a large file the SHA-256 of its content, else git's hash."""
    large = _of(entry.get("lfs"), dict) or {}
    told = (large.get("sha256"), entry.get("blobId"))
    return next((h for h in told if isinstance(h, str) and HASH.fullmatch(h)), None)


def _info(data: Mapping[str, Any]) -> dict[str, Any]:
    """The Hub's own words under our names, each of the right type or left out."""
    card = _of(data.get("cardData"), dict) or {}
    weights = _of(data.get("safetensors"), dict) or {}
    told = {
        "pipeline_tag": _of(data.get("pipeline_tag"), str),
        "library_name": _of(data.get("library_name"), str),
        "tags": [t for t in _of(data.get("tags"), list) or [] if isinstance(t, str)],
        "card": card,
        "base_models": _base_models(card),
        "config": _of(data.get("config"), dict),
        "safetensors_total": _of(weights.get("total"), int),
        "safetensors": _of(weights.get("parameters"), dict),
        "gated": data.get("gated") if isinstance(data.get("gated"), (bool, str)) else None,
        "modified": _of(data.get("lastModified"), str),
    }
    return {key: value for key, value in told.items() if value is not None}


def _base_models(card: Mapping[str, Any]) -> list[str]:
    """What the card names as the origin of the weights: one id or several."""
    named = card.get("base_model")
    return [n for n in (named if isinstance(named, list) else [named]) if isinstance(n, str)]


def _of(value: object, kind: type) -> Any:
    return value if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else None


def _unusable(url: str, problem: object) -> HubError:
    return HubError("bad-answer", url=hosts.plain(url), problem=problem)
