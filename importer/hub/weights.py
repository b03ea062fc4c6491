"""Weights: their directory, their size, and their download into the Hub client's cache."""

from __future__ import annotations

import glob
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from importer.errors import DocumentError, EngineError, HubError, ImporterError
from importer.hub import cache, client, endpoint, listing, local
from importer.hub.client import ExchangeReason
from importer.hub.content import BESIDE, TOKENIZERS, missing_parts, weight_files
from importer.hub.folders import Folder
from importer.hub.local import AllowedFolders
from importer.hub.paging import Paging, following
from importer.hub.route import open_session, route_closed
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason

URL = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?(?=[/\s\"')]|$)")
Progress = Callable[[int, int], None]


def weights_size(snapshot: Snapshot) -> int | None:
    """Return the bytes of the weights; ``None`` where none are listed or a size is unknown."""
    sizes = [f.size for f in weight_files(snapshot.files)]
    return sum(s for s in sizes if s is not None) if sizes and None not in sizes else None


def locate_weights(snapshot: Snapshot) -> Path | None:
    """Return a directory on this disk with all weights of this snapshot and a tokenizer, else ``None``."""
    directory = snapshot.directory
    if snapshot.model_id and snapshot.revision:
        directory = cache.snapshot(snapshot.model_id, snapshot.revision) or directory
    if directory is None:
        return None
    present = {f.path: f.size for f in local.listing(directory) if f.size is not None}
    required = weight_files(snapshot.files)
    whole = all(f.path in present and f.size in {None, present[f.path]} for f in required)
    whole = whole and not missing_parts(required)[0]
    return directory if required and whole and any(TOKENIZERS.fullmatch(p) for p in present) else None


def readable(folder: Path, places: AllowedFolders) -> Path | None:
    """Return a located folder with weights, if it still exists and may be read.

    The Hub client's cache is always allowed. Raises ServiceError("no-directories").
    """
    real = places.also(cache.root()).folder(folder)
    try:
        with Folder(real) as opened:
            return opened.path
    except OSError:
        return None


def fetch_weights(snapshot: Snapshot, progress: Progress) -> Path:
    """Download weights, tokenizer and configs of the pinned commit into the Hub client's cache.

    ``progress(done, total)`` is called with bytes, from several threads.
    Raises HubError, EngineError("no-weights") and DocumentError("cannot-write").
    """
    located = locate_weights(snapshot)
    if located is not None:
        return located
    weights = weight_files(snapshot.files)
    if not weights or snapshot.model_id is None:
        raise EngineError("no-weights", path=snapshot.label)
    return _fetch(snapshot, (*(f.path for f in weights), *_beside(snapshot)), progress)


def fetch_beside(snapshot: Snapshot, progress: Progress) -> Path:
    """Return a folder with config, tokenizer and processor of a snapshot; nothing of the weights is fetched.

    Raises what ``fetch_weights`` raises.
    """
    if snapshot.directory is not None and snapshot.model_id is None:
        return snapshot.directory
    here = cache.snapshot(str(snapshot.model_id), str(snapshot.revision))
    names = _beside(snapshot)
    if here is not None and {*names} <= {f.path for f in local.listing(here)}:
        return here
    return _fetch(snapshot, names, progress)


def _beside(snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(f.path for f in snapshot.files if BESIDE.fullmatch(f.path))


def _fetch(snapshot: Snapshot, names: Sequence[str], progress: Progress) -> Path:
    if not (snapshot.model_id and snapshot.revision):
        raise EngineError("no-weights", path=snapshot.label)
    if endpoint.offline():
        raise HubError("not-cached", what=Reason(cache.Uncached.WEIGHTS), repo=snapshot.model_id)
    total = sum(f.size or 0 for f in snapshot.files if f.path in set(names))
    folder = _download(snapshot.model_id, snapshot.revision, names, _bar(progress, total))
    progress(total, total)  # early versions of the client report no bytes
    return local.ANYWHERE.folder(folder)


def _download(repo: str, commit: str, names: Sequence[str], bar: type) -> Path:
    from huggingface_hub import snapshot_download

    try:
        with _bounded(repo, commit):
            return Path(
                snapshot_download(
                    repo,
                    revision=commit,
                    allow_patterns=[glob.escape(name) for name in names],
                    cache_dir=cache.root(),
                    endpoint=client.check_endpoint(),
                    tqdm_class=bar,
                )
            )
    except HubError:
        raise
    except Exception as error:  # the client's own errors, httpx's, and those of its transfer library
        raise _failure(error, repo, commit) from None


@contextmanager
def _bounded(repo: str, commit: str) -> Iterator[None]:
    """Bound the pages in which the Hub's client lists a commit's files, in this thread: it has no bound.

    The client's call raises HubError, as ``ask`` and ``following`` do.
    """
    paging, pages, own = Paging(), {f"/api/models/{repo}/tree/{commit}"}, threading.get_ident()

    def heard(response: Any) -> None:
        url = response.request.url
        if (
            threading.get_ident() != own
            or response.status_code != 200
            or pages.isdisjoint({url.path, str(url)})
        ):
            return
        paging.ask(str(url))
        target = following(str(url), {name.lower(): value for name, value in response.headers.items()})
        pages.update([] if target is None else [str(url.join(target))])

    hooks = open_session().event_hooks["response"]
    hooks.append(heard)
    try:
        yield
    finally:
        hooks.remove(heard)


def _failure(error: Exception, repo: str, commit: str) -> ImporterError:
    cause = error.__cause__ or error  # the client wraps refusals into "not found on this disk"
    response = getattr(cause, "response", None)
    if response is not None:
        return _refusal(response, repo, commit)
    if isinstance(cause, OSError) and cause.errno is not None:
        return DocumentError("cannot-write", path=cache.root(), problem=cause.strerror)
    url, problem = _asked(error), Reason(ExchangeReason.FAILED, name=type(cause).__name__)
    return route_closed(url, error, problem) or HubError(
        "network", host=endpoint.origin(url)[1], problem=problem
    )


def _asked(error: BaseException) -> str:
    """Return the URL whose exchange failed, by the libraries' exceptions; the endpoint where none has one.

    The transfer library has it in its text alone.
    """
    cause: BaseException | None = error
    while cause is not None:
        with suppress(RuntimeError, AttributeError, ValueError):  # an exception without a request
            endpoint.origin(str(cause.request.url))  # type: ignore[attr-defined]
            return str(cause.request.url)  # type: ignore[attr-defined]
        if (named := URL.search(str(cause))) is not None:
            return named.group()
        cause = cause.__cause__ or cause.__context__
    return endpoint.endpoint()


def _refusal(response: Any, repo: str, commit: str) -> HubError:
    headers = {name.lower(): value for name, value in response.headers.items()}
    url, had_token = str(response.request.url), "authorization" in response.request.headers
    answer = client.HubResponse(url, response.status_code, headers, b"", had_token)
    if answer.status == 429:
        return HubError("rate-limited", wait=client.wait_for(None), said=answer.said)
    if answer.status >= 500:
        plain = endpoint.plain(url)
        return HubError("server", status=answer.status, url=plain, tries="several", said=answer.said)
    path = unquote(urlsplit(str((response.history or [response])[0].request.url)).path)
    return listing.refusal(answer, repo, commit, path.partition(f"/resolve/{commit}/")[2] or None)


def _bar(progress: Progress, total: int) -> type:
    """Return the class of a silent progress bar that reports the bytes of its largest count."""
    from huggingface_hub.utils.tqdm import tqdm

    counts: dict[int, float] = {}

    class Bar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            self.bytes = options.get("unit") == "B"
            super().__init__(*args, **{**options, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            if self.bytes:
                counts[id(self)] = counts.get(id(self), 0) + (n or 0)
                progress(min(total, int(max(counts.values()))), total)

    return Bar
