"""Snapshots from references: one API call, at most six small files and the card; offline no request."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from importer import kept
from importer.errors import HubError
from importer.hub import cache, client, content, endpoint, local, threads
from importer.hub import listing as api
from importer.hub.cache import CachedSnapshot, Uncached
from importer.hub.content import CARD
from importer.hub.folders import Folder
from importer.hub.listing import Listing
from importer.hub.reference import COMMIT, DEFAULT_REVISION, Reference, check_path
from importer.hub.snapshot import RepoFile, Snapshot, UnreadReason
from importer.reasons import Reason

OWN = (CARD,)  # files that hardly two repositories have in common


def resolve(reference: Reference, *, offline: bool = False) -> Snapshot:
    """Return the snapshot of a repository. Raises UsageError, HubError and RepositoryError."""
    snapshot = _resolved(reference, offline=offline)
    check_path(reference, snapshot)
    return snapshot


def _resolved(reference: Reference, *, offline: bool) -> Snapshot:
    repo, revision = str(reference.repo), reference.revision
    if revision is not None and COMMIT.fullmatch(revision.lower()):
        revision = revision.lower()
    if offline or endpoint.offline():
        return _offline(reference.text, repo, revision or DEFAULT_REVISION)
    listing = api.ask(repo, revision)
    stored = _read(listing, cache.load(listing.repo, listing.commit) or CachedSnapshot(listing))
    cache.store(repo, revision or DEFAULT_REVISION, stored)
    return _snapshot(reference.text, stored)


def files_at(repo: str, commit: str, *, offline: bool = False) -> tuple[RepoFile, ...]:
    """Return the files that a commit lists, from importer's cache, else from the Hub in one request.

    Raises HubError, also where the Hub must not be asked.
    """
    known = cache.load(repo, commit)
    if known is not None:
        return known.listing.files
    if offline or endpoint.offline():
        raise HubError("not-cached", what=Reason(Uncached.REVISION, revision=commit), repo=repo)
    return api.ask(repo, commit).files


def _snapshot(text: str, stored: CachedSnapshot) -> Snapshot:
    """Return a snapshot from a cached one."""
    listing = stored.listing
    chosen, unknown = content.choose_files(listing.files, listing.repo)
    unknown = {**dict.fromkeys(chosen, Reason(UnreadReason.NOT_STORED)), **unknown, **stored.unknown}
    return Snapshot(
        reference=text,
        model_id=listing.repo,
        revision=listing.commit,
        files=listing.files,
        texts=stored.texts,
        info=listing.info,
        directory=cache.snapshot(listing.repo, listing.commit),
        unknown={path: reason for path, reason in unknown.items() if path not in stored.texts},
    )


def _read(listing: Listing, known: CachedSnapshot) -> CachedSnapshot:
    """Return the chosen files from importer's cache, from this disk, and the rest from the Hub in parallel.

    Raises HubError for a listed file that the Hub does not send: a decision without it would be a guess.
    """
    chosen, _ = content.choose_files(listing.files, listing.repo)
    texts = {path: known.texts[path] for path in chosen if path in known.texts}
    unknown = {path: known.unknown[path] for path in chosen if path in known.unknown}
    asked = [path for path in chosen if path not in texts and path not in unknown]
    texts |= _on_disk(listing, asked, cache.snapshot(listing.repo, listing.commit))
    absent = [f for f in listing.files if f.path in chosen and f.path not in {*texts, *unknown}]
    for file, fetched in zip(absent, threads.side_by_side(lambda f: _fetch(listing, f), absent), strict=True):
        if isinstance(fetched, str):
            texts[file.path] = fetched
        else:
            unknown[file.path] = fetched
    return CachedSnapshot(listing, {p: texts[p] for p in chosen if p in texts}, unknown)


def _on_disk(listing: Listing, paths: list[str], directory: Path | None) -> dict[str, str]:
    """Return the texts of these files in a Hub client's folder of this commit."""
    if directory is None:
        return {}
    with suppress(OSError), Folder(directory) as folder:
        present = tuple(RepoFile(path) for path in paths if folder.has(path))
        return local.read(folder, present, listing.repo)[0]
    return {}


def _fetch(listing: Listing, file: RepoFile) -> str | Reason:
    """Return the text of a file, or why it has none, in one request.

    Equal files of several repositories are fetched once.
    Files of gated repositories are always asked for: the Hub decides who may read them.
    """
    sha = file.hash
    if sha is None or file.path in OWN or listing.info.get("gated"):
        return _fetched(listing, file)
    if (known := _kept(listing, file, sha)) is not None:
        return known
    with kept.alone(sha):
        known = _kept(listing, file, sha)
        return _fetched(listing, file) if known is None else known


def _kept(listing: Listing, file: RepoFile, sha: str) -> str | None:
    data = cache.load_text(sha)
    if data is None or len(data) > content.size_limit(file.path):
        return None
    return content.decode(file.path, data, listing.repo)


def _fetched(listing: Listing, file: RepoFile) -> str | Reason:
    url = api.file_url(listing.repo, listing.commit, file.path)
    try:
        answer = client.get(url, limit=content.size_limit(file.path), size=file.size)
    except client.TooLarge:
        return content.too_large(file.path, listing.repo)
    if answer.status == 200:
        if file.hash is not None and file.path not in OWN:
            cache.store_text(file.hash, answer.body)
        text = content.decode(file.path, answer.body, listing.repo)
        return Reason(UnreadReason.NOT_TEXT) if text is None else text
    raise api.refusal(answer, listing.repo, listing.commit, file.path)


def _offline(text: str, repo: str, revision: str) -> Snapshot:
    pinned = COMMIT.fullmatch(revision) is not None
    stored = cache.load(repo, revision) if pinned else cache.last(repo, revision)
    if stored is not None:
        return _snapshot(text, stored)
    commit = revision if pinned else cache.commit_of(repo, revision)
    directory = cache.snapshot(repo, commit) if commit else None
    if commit is None or directory is None:
        raise HubError("not-cached", what=Reason(Uncached.REVISION, revision=revision), repo=repo)
    return in_cache(text, repo, commit, cache.client_folder(repo), directory)


def in_cache(text: str, repo: str, commit: str, home: Path, directory: Path) -> Snapshot:
    """Return the snapshot of a commit in a Hub client's cache, without a request.

    ``home`` is the repository's folder there, ``directory`` the commit's. Raises HubError("not-cached").
    """
    try:
        with Folder(directory) as folder:
            files = local.with_hashes(folder, cache.listing(home, commit, directory))
    except OSError:
        absent = Reason(Uncached.REVISION, revision=commit)
        raise HubError("not-cached", what=absent, repo=repo) from None
    listing = Listing(repo, commit, files, {})
    chosen, _ = content.choose_files(listing.files, repo)
    texts = _on_disk(listing, chosen, directory)
    lacking = next((path for path in chosen if content.is_needed(path) and path not in texts), None)
    if lacking is not None:
        raise HubError("not-cached", what=lacking, repo=repo)
    found = _snapshot(text, CachedSnapshot(listing, texts, {CARD: Reason(UnreadReason.OFFLINE)}))
    return replace(found, directory=directory)
