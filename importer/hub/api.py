"""The Hub's answer about a repository: its commit, its files, its own words; and what its refusals mean."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import quote

from importer.errors import HubError
from importer.hub import hosts, listing, transport
from importer.hub.listing import Listing, ListingReason
from importer.reasons import Reason


class ApiReason(StrEnum):
    """Why an answer of the Hub's API cannot be used."""

    REFUSED = "refused"
    LISTING = "listing"


def ask(repo: str, revision: str | None) -> Listing:
    """The one API call. Raises HubError."""
    at = "" if revision is None else f"/revision/{quote(revision, safe='')}"
    url = f"{transport.check_endpoint()}/api/models/{repo}{at}?blobs=true"
    try:
        answer = transport.get(url, limit=listing.LONGEST)
    except transport.TooLarge:
        raise _unusable(url, Reason(ListingReason.LONG, limit=listing.LONGEST)) from None
    if answer.status != 200:
        raise refusal(answer, repo, revision)
    try:
        return listing.parse(answer.body, repo, revision)
    except listing.Malformed as error:
        raise _unusable(url, error.reason) from None


def file_url(repo: str, commit: str, path: str) -> str:
    """Where one file of one commit is read."""
    return f"{hosts.endpoint()}/{repo}/resolve/{commit}/{quote(path)}"


def refusal(answer: transport.Answer, repo: str, revision: str | None, file: str | None = None) -> HubError:
    """Return what a 4xx means; the Hub says it in ``X-Error-Code`` and the words of ``X-Error-Message``."""
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
    if answer.status in {401, 403}:
        return HubError("forbidden", what=file or Reason(ApiReason.LISTING), repo=repo, status=answer.status)
    return _unusable(answer.url, Reason(ApiReason.REFUSED, status=answer.status))


def _unusable(url: str, problem: Reason) -> HubError:
    return HubError("bad-answer", url=hosts.plain(url), problem=problem)
