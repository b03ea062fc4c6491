"""The promises of docs/security.md on the Hub: where the token goes, who is asked, and of which commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commandline import TOKEN, Desk, desk
from tests.harming import CONFIG, TEMPLATE
from tests.hubserver import Content, Fault, HubServer, Repo

__all__ = ["desk"]


# --- The one fetch function, and the token ---


def written(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    for place in folders:
        yield from ((p, p.read_bytes()) for p in place.rglob("*") if p.is_file())


def test_the_token_is_sent_to_the_hub_and_nowhere_kept(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk.hub.repos["a/private"] = Repo(
        {"config.json": CONFIG, "chat_template.jinja": TEMPLATE}, private=True, readers=(TOKEN,)
    )
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    caplog.set_level(0)
    ran = desk("a/private", "--yes", "--no-validate", "--explain", "--json")
    assert ran.code == 0, ran.err
    assert all(TOKEN in str(e.headers["Authorization"]) for e in desk.hub.log)
    monkeypatch.setenv("HF_TOKEN", wrong := TOKEN + "Wrong")
    refused = desk("a/private", "--json")
    assert (refused.code, refused.line["error"]["kind"]) == (3, "bad-token")
    said = ran.out + ran.err + refused.out + refused.err + caplog.text
    assert TOKEN not in said
    assert wrong not in said
    kept = [path for path, data in written(tmp_path) if TOKEN.encode() in data]
    assert kept == []
    assert len(list(written(tmp_path))) >= 5


@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest/meta-data/", "http://[::1]:9/", "http://hub.example.org/x",
        "file:///etc/passwd", "OTHER",
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["/api/models/a/b", "/resolve/"])
@pytest.mark.parametrize("status", [302, 307])
def test_redirects_to_other_places_are_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, place: str, where: str, status: int
) -> None:
    desk.hub.repos["a/b"] = Repo({"config.json": CONFIG}, private=True, readers=(TOKEN,))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer({"a/b": {"config.json": CONFIG}}) as other:
        target = place.replace("OTHER", f"{other.url}/api/models/a/b")
        desk.hub.faults.append(Fault(where, status=status, headers={"Location": target}, times=9))
        ran = desk("a/b", "--json")
        assert (ran.code, ran.line["error"]["kind"]) == (3, "refused-host")
        assert other.log == []
    assert TOKEN not in ran.out + ran.err


def test_weights_elsewhere_are_fetched_without_the_token(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights come through the Hub's own client, which follows redirects; the token stays behind."""
    from importer.hub import resolve
    from importer.hub.local import ANYWHERE
    from importer.hub.reference import parse
    from importer.hub.weights import fetch_weights

    files: dict[str, Content] = {
        "config.json": CONFIG, "model.safetensors": b"w" * 64, "tokenizer.json": "{}",
    }  # fmt: skip
    repo = desk.hub.repos["a/b"] = Repo(files, private=True, readers=(TOKEN,))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer({"a/b": repo.commits[repo.sha]}) as storage:
        elsewhere = f"{storage.url}/a/b/resolve/main/model.safetensors"
        oid = "a" * 64
        linked = {
            "Location": elsewhere, "X-Linked-Size": "64", "X-Linked-Etag": f'"{oid}"',
            "X-Repo-Commit": repo.sha,
        }  # fmt: skip
        desk.hub.faults.append(Fault("model.safetensors", status=302, headers=linked, times=9))
        where = fetch_weights(resolve(parse("a/b"), ANYWHERE), lambda _done, _total: None)
        assert (where / "model.safetensors").read_bytes() == b"w" * 64
        assert storage.log
        assert all("Authorization" not in e.headers for e in storage.log)


# --- Everything is pinned ---


class Moving(Repo):
    """Its branch moves on as soon as the API has described it."""

    moved = ""

    @property
    def info(self) -> dict[str, Any]:
        if not self.moved:
            self.moved = self.commit({"config.json": {"model_type": "llama"}, "chat_template.jinja": "moved"})
        return {}

    @info.setter
    def info(self, _words: object) -> None:
        """There are none."""


def test_a_branch_that_moves_meanwhile_changes_nothing(desk: Desk) -> None:
    repo = Moving({"config.json": CONFIG, "chat_template.jinja": TEMPLATE})
    first = repo.sha
    desk.hub.repos["a/b"] = repo
    ran = desk("a/b", "--yes", "--no-validate", "--json")
    assert ran.code == 0, ran.err
    assert repo.sha == repo.moved != first
    assert ran.line["revision"] == first
    assert ran.line["document"]["artifacts"][0]["source"]["revision"] == first
    files = desk.hub.paths()[1:]
    assert len(files) == 2
    assert all(f"/resolve/{first}/" in path for path in files)


def test_an_answer_for_another_commit_is_refused(desk: Desk) -> None:
    repo = desk.hub.repos["a/b"] = Repo({"config.json": CONFIG}, info={"sha": "0" * 40})
    for reference in (f"a/b@{repo.sha}",):
        ran = desk(reference, "--json")
        assert (ran.code, ran.line["error"]["kind"]) == (3, "bad-answer")
