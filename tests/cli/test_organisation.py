"""``--from-org``: an organisation is listed once, imported, summed up; killed anywhere, it goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from importer.app import organisation as app
from importer.hub import organisation
from tests.commandline import BASE, CHAT, Desk, Ran
from tests.hubserver import Content, Fault, Repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
GGUF = {"a-Q4.gguf": b"GGUF"}
HOSTILE: dict[str, Content] = {"config.json": "[" * 2000, "model.safetensors": b"\0"}


def many(desk: Desk, number: int) -> list[str]:
    """An organisation with so many models of its own, a README each."""
    repos = {f"org/m{i:03}": Repo({**CHAT, "README.md": f"# {i}"}) for i in range(number)}
    desk.hub.repos |= repos
    return [*repos]


def lines(ran: Ran) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    found = [json.loads(line) for line in ran.out.splitlines()]
    return found[:-1], found[-1]["summary"]


def test_an_organisation_with_everything(desk: Desk) -> None:
    names = many(desk, 3)
    desk.hub.repos |= {
        "org/base": Repo(BASE), "org/gguf": Repo(GGUF), "org/locked": Repo(CHAT, gated=True),
        "org/hidden": Repo(BASE, private=True), "org/hostile": Repo(HOSTILE), "org/gone": Repo(BASE),
    }  # fmt: skip
    desk.hub.hidden = {"org/gone"}
    ran = desk("--from-org", "org", "--json", "--yes", "--backend", "vllm")
    assert ran.code == 0, ran.err
    assert "org: 8 repositories, 6 to import, 1 gguf-only, 1 gated." in ran.err
    answers, summary = lines(ran)
    by_name = {line["model"]: line for line in answers}
    assert (summary["listed"], summary["imported"]) == (8, 4)
    assert summary["skipped"] == {"gguf-only": 1, "gated": 1, "private": 1}
    assert summary["failed"] == {"broken-json": 1}
    assert summary["backend"] == {"vllm": 4}
    assert summary["requests"] == len(desk.hub.log)
    assert not [p for p in desk.hub.paths() if "gguf" in p or "locked" in p], "the list was enough"
    assert {Path(line["path"]).name for line in answers if "path" in line} == {
        p.name for p in Path("models").glob("*.yaml")
    }
    assert by_name["org/hostile"]["error"]["kind"] == "broken-json"
    assert sum(p.endswith("/chat_template.jinja") for p in desk.hub.paths()) == 1, "equal files once"
    again = len(desk.hub.log)
    table = desk("--from-org", "org", "--limit", "4", "--yes", "--backend", "vllm")
    assert "4 of 4" in table.out, table.out
    assert "tool parsers" in table.out, table.out
    assert len(desk.hub.log) == again + 1, "a listed commit in the cache costs no request"
    assert names


def test_a_token_lets_gated_and_private_ones_in(desk: Desk) -> None:
    desk.monkeypatch.setenv("HF_TOKEN", "hf_mine")
    desk.hub.tokens = ("hf_mine",)
    desk.hub.repos |= {
        "org/locked": Repo(CHAT, gated=True, readers=("hf_mine",)), "org/refused": Repo(CHAT, gated=True),
        "org/hidden": Repo(BASE, private=True, readers=("hf_mine",)),
    }  # fmt: skip
    answers, summary = lines(desk("--from-org", "org", "--json", "--yes", "--backend", "vllm"))
    assert [line["model"] for line in answers if "name" in line] == ["org/locked", "org/hidden"]
    assert summary["skipped"] == {"gated": 1}


def test_the_number_is_said_and_somebody_has_to_agree(desk: Desk) -> None:
    many(desk, 2)
    ran = desk("--from-org", "org")
    assert (ran.code, ran.out) == (2, "")
    assert "org: 2 repositories, 2 to import." in ran.err
    assert "--yes, --limit or --dry-run" in ran.err
    assert not Path("models").exists()
    assert not [*Path(os.environ["IMPORTER_HOME"], "cache", "bulk").glob("*")], "the list is forgotten"
    ran = desk("--from-org", "org", "--limit", "1", "--json", "--backend", "vllm")
    assert lines(ran)[1]["imported"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--from-org", "org", "--filter", "colour=red"], "Invalid value for --filter"),
        (["--from-org", "a/b"], "Invalid value for --from-org"),
        (["--from-org", "org", "--name", "x"], "--name: is for one reference, not for --from-org"),
        (["--from-org", "org", "--offline"], "--offline: cannot be used with --from-org"),
        (["acme/base", "--filter", "likes=1"], "--filter: is for --from-org alone"),
    ],
)
def test_bad_words_are_one_sentence(desk: Desk, words: list[str], says: str) -> None:
    ran = desk(*words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert len(ran.err.splitlines()) == 2, "a sentence and the next step"
    assert not desk.hub.log


def test_a_long_list_takes_no_more_memory_and_stops_at_its_limit(desk: Desk) -> None:
    """The list lies on the disk; ``--limit`` ends it, so that no further page is asked for."""
    desk.monkeypatch.setattr(organisation, "PAGE", 50)
    files = Repo(GGUF)
    desk.hub.repos |= {f"org/m{i:05}": files for i in range(2000)}
    answers, summary = lines(desk("--from-org", "org", "--json", "--limit", "120", "--dry-run"))
    assert len(answers) == summary["listed"] == 120
    assert len(desk.hub.log) == 3


def killed(desk: Desk, requests: int, words: list[str]) -> None:
    process = desk.start(*words, stdout=None)
    wait_until(lambda: len(desk.hub.log) >= requests or process.poll() is not None)
    process.kill()
    process.communicate()


@pytest.mark.nightly
def test_killed_twice_nothing_is_done_twice(desk: Desk) -> None:
    desk.monkeypatch.setattr(desk.hub, "latency", 0.02)
    names = many(desk, 30)
    words = ["--from-org", "org", "--json", "--yes", "--backend", "vllm"]
    for requests in (20, 45):
        killed(desk, requests, words)
    ran = desk.alone(*words)
    assert ran.code == 0, ran.err
    answers, summary = lines(ran)
    assert [line["model"] for line in answers] == names
    assert summary["imported"] == 30
    asked = [p.partition("?")[0] for p in desk.hub.paths()]
    assert asked.count("/api/models") == 1, "the list is kept"
    for name in names:
        assert asked.count(f"/api/models/{name}/revision/{desk.hub.repos[name].sha}") <= 3, (
            "one for each kill"
        )
    assert len(asked) <= 1 + 2 * 30 + 5 + 2 * 2 * 8, "what was under way, and no more"
    assert len([*Path("models").glob("*.yaml")]) == 30
    assert not [*Path(os.environ["IMPORTER_HOME"], "cache", "bulk").glob("*")]


def test_a_list_that_broke_off_goes_on_behind_its_last_page(desk: Desk) -> None:
    desk.monkeypatch.setattr(organisation, "PAGE", 2)
    many(desk, 6)
    desk.hub.faults.append(Fault("cursor=4", 404))
    words = ["--from-org", "org", "--json", "--dry-run"]
    assert desk(*words).code == 3
    asked = len(desk.hub.log)
    answers, _ = lines(desk(*words))
    assert len(answers) == 6
    lists = [p for p in desk.hub.paths()[asked:] if p.startswith("/api/models?")]
    assert len(lists) == 1, "the first two pages are not asked for again"


def test_every_kind_that_is_skipped_is_a_kind_of_failure() -> None:
    from importer.errors import KINDS

    assert set(KINDS) >= app.SKIPPED
