"""The Hub's listing of one commit: the API call, the parser of its response, and the errors of 4xx."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard
from urllib.parse import quote

from importer.errors import HubError, RepositoryError
from importer.frozen import frozen
from importer.hub import client, endpoint, snapshot
from importer.hub.paging import following
from importer.hub.reference import COMMIT, is_id
from importer.hub.snapshot import RepoFile, parse_object
from importer.reasons import Reason, ReasonKind

LONGEST = 16 * 1024 * 1024  # bytes; repositories with ten thousand files stay under 5 MB
MOST_FILES = 50_000  # models have hundreds
MOST_VALUES = 1_000_000  # of the JSON, counted before the parse: twice ten a file
MOST_TAGS = 1000
MOST_PAGES = 60  # of a tree; the Hub's have a thousand files each
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SAFE_PATH = re.compile(r"(?!/)(?:(?!\.\.?(?:/|$))[^/\\\x00-\x1f\x7f]+(?:/(?!$)|$))+")


class ListingReason(ReasonKind):
    """Reasons why a listing cannot be used."""

    LARGE = "it is larger than importer reads"
    COMMIT = "it does not name the commit that was asked for"
    NO_LIST = "it is not JSON of this form"


class MalformedListing(Exception):
    """The listing cannot be used."""

    def __init__(self, kind: ListingReason, **fields: object) -> None:
        super().__init__(kind)
        self.reason = Reason(kind, **fields)


@frozen
class Listing:
    """One commit on the Hub: the canonical id, the commit, files with sizes, and further fields."""

    repo: str
    commit: str
    files: tuple[RepoFile, ...]
    info: Mapping[str, object]


def parse(body: bytes, repo: str, revision: str | None) -> Listing:
    """Return the listing in a response for ``repo`` at ``revision``, in linear time and memory.

    Raises MalformedListing.
    """
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise MalformedListing(ListingReason.LARGE)
    try:
        data = parse_object(body.decode(), repo, repo)
    except (UnicodeDecodeError, RepositoryError):
        raise MalformedListing(ListingReason.NO_LIST) from None
    commit = data.get("sha")
    if not (isinstance(commit, str) and COMMIT.fullmatch(commit)):
        raise MalformedListing(ListingReason.COMMIT)
    if revision is not None and COMMIT.fullmatch(revision) and commit != revision:
        raise MalformedListing(ListingReason.COMMIT)
    ids = (data.get("id"), data.get("modelId"))  # after a renaming, or with the Hub's own capitals
    named = next((name for name in ids if isinstance(name, str) and is_id(name)), repo)
    return Listing(named, commit, _files(data.get("siblings")), _info(data))


def _files(siblings: object) -> tuple[RepoFile, ...]:
    """Return the listed files; a path that could leave the repository is dropped."""
    files = {}
    listed = siblings if isinstance(siblings, list) else []
    if len(listed) > MOST_FILES:
        raise MalformedListing(ListingReason.LARGE)
    for entry in listed:
        path = entry.get("rfilename") if isinstance(entry, dict) else None
        if is_safe(path):
            files[path] = RepoFile(path, snapshot.whole(entry.get("size")), _hash(entry))
    return tuple(files[path] for path in sorted(files))


def is_safe(path: object) -> TypeGuard[str]:
    """Return whether a path is one of a repository's files: it leads out of no folder."""
    return isinstance(path, str) and len(path) < 1024 and SAFE_PATH.fullmatch(path) is not None


def _hash(entry: Mapping[str, object]) -> str | None:
    """Return the SHA-256 of a large file's content, else git's hash."""
    large = snapshot.mapping(entry.get("lfs"))
    hashes = (large.get("sha256"), entry.get("blobId"))
    return next((h for h in hashes if isinstance(h, str) and HASH.fullmatch(h)), None)


def _info(data: Mapping[str, object]) -> dict[str, object]:
    """Return the Hub's fields under importer's names; fields of a wrong type are left out."""
    card = snapshot.mapping(data.get("cardData"))
    weights = snapshot.mapping(data.get("safetensors"))
    base = card.get("base_model")  # one id or several
    bases = base if isinstance(base, list) else [base]
    fields = {
        "pipeline_tag": snapshot.text(data.get("pipeline_tag")),
        "library_name": snapshot.text(data.get("library_name")),
        "tags": [t for t in snapshot.listed(data.get("tags"))[:MOST_TAGS] if isinstance(t, str)],
        "card": card,
        "base_models": [n for n in bases[:MOST_TAGS] if isinstance(n, str)],
        "config": snapshot.mapping(data.get("config")) or None,
        "safetensors_total": snapshot.whole(weights.get("total")),
        "safetensors": snapshot.mapping(weights.get("parameters")) or None,
        "gated": data.get("gated") if isinstance(data.get("gated"), (bool, str)) else None,
        "modified": snapshot.text(data.get("lastModified")),
    }
    return {key: value for key, value in fields.items() if value is not None}


class ApiReason(ReasonKind):
    """Reasons why a response of the Hub's API cannot be used."""

    REFUSED = "it refused with status {status}{said}"
    LISTING = "the list of files"


def ask(repo: str, revision: str | None) -> Listing:
    """Send the one API call and return its listing; one without files is followed by calls for the tree.

    Raises HubError.
    """
    at = "" if revision is None else f"/revision/{quote(revision, safe='')}"
    url = f"{client.check_endpoint()}/api/models/{repo}{at}?blobs=true"
    answer = _answer(url)
    if answer.status != 200:
        raise refusal(answer, repo, revision)
    try:
        listing = parse(answer.body, repo, revision)
        return listing if listing.files else replace(listing, files=_files(_tree(listing)))
    except MalformedListing as error:
        raise client.unusable(url, error.reason) from None


def _answer(url: str) -> client.HubResponse:
    try:
        return client.get(url, limit=LONGEST)
    except client.TooLarge:
        raise client.unusable(url, Reason(ListingReason.LARGE)) from None


def _tree(listing: Listing) -> list[object]:
    """Return the files of the commit's tree in the form of a listing; none where the server has no tree."""
    url: str | None = f"{endpoint.endpoint()}/api/models/{listing.repo}/tree/{listing.commit}?recursive=true"
    files: list[object] = []
    for _ in range(MOST_PAGES):
        if url is None:
            return files
        answer = _answer(url)
        rows = json_list(answer.body) if answer.status == 200 else []
        for row in (one for one in rows if isinstance(one, dict) and one.get("type") == "file"):
            path, size, oid = row.get("path"), row.get("size"), row.get("oid")
            large = {"sha256": snapshot.mapping(row.get("lfs")).get("oid")}
            files.append({"rfilename": path, "size": size, "blobId": oid, "lfs": large})
        url = following(url, answer.headers) if rows else None
    raise MalformedListing(ListingReason.LARGE)


def json_list(body: bytes) -> list[object]:
    """Return a list of JSON, in linear time and memory.

    Raises MalformedListing.
    """
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MOST_VALUES:
        raise MalformedListing(ListingReason.LARGE)
    try:
        rows = snapshot.written(text := body.decode(), json.loads(text))
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise MalformedListing(ListingReason.NO_LIST)
    return rows


def file_url(repo: str, commit: str, path: str) -> str:
    """Return the URL of one file of one commit."""
    return f"{endpoint.endpoint()}/{repo}/resolve/{commit}/{quote(path)}"


def refusal(answer: client.HubResponse, repo: str, revision: str | None, file: str | None = None) -> HubError:
    """Return the error of a 4xx, by its status, ``X-Error-Code`` and the text of ``X-Error-Message``.

    ``file`` is the requested file, ``None`` for the API. A repository is missing by the server's code alone.
    """
    code, status, said = answer.headers.get("x-error-code", ""), answer.status, answer.said
    message = answer.headers.get("x-error-message", "").lower()
    if file is not None and status not in {404, 410} and not endpoint.may_carry_token(answer.url):
        host = endpoint.origin(answer.url)[1]  # it knows no token, and nothing of repositories
        return HubError("storage", host=host, file=file, repo=repo, status=status, said=said)
    if code == "GatedRepo":
        return HubError("gated", repo=repo, url=f"{endpoint.plain(endpoint.endpoint())}/{repo}", said=said)
    if code == "RevisionNotFound":
        return HubError("revision-not-found", repo=repo, revision=revision or "main")
    if status == 401 and answer.had_token and ("credentials" in message or code != "RepoNotFound"):
        return HubError("bad-token", said=said)
    if status == 401 and not answer.had_token:
        return HubError("private", repo=repo)
    if code == "RepoNotFound":
        return HubError("not-found", repo=repo)
    if status in {404, 410} and file is not None:
        return HubError("missing-file", repo=repo, file=file, status=status, said=said)
    if status in {404, 410}:
        return HubError("no-route", url=endpoint.plain(answer.url), repo=repo, status=status, said=said)
    if status in {401, 403}:
        what = file or Reason(ApiReason.LISTING)
        return HubError("forbidden", what=what, repo=repo, status=status, said=said)
    return client.unusable(answer.url, Reason(ApiReason.REFUSED, status=status, said=said))
