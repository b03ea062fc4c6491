"""What the edges of a tokenizer's file cost: a request at the first import of a commit, and none later."""

from __future__ import annotations

from tests.commandline import CHAT, Desk
from tests.hubserver import Repo

POST = '{"post_processor": {"single": [{"SpecialToken": {"id": "<s>"}}]}, "model": {}}'
FILES = {**CHAT, "tokenizer.json": POST, "tokenizer_config.json": {"bos_token": "<s>"}}


def test_an_edge_of_a_commit_is_asked_for_once(desk: Desk) -> None:
    desk.hub.repos["acme/chat"] = Repo(FILES)
    words = ("acme/chat", "--backend", "vllm", "--yes", "--no-validate")
    for extra, requests in ((), 1), ((), 0), (("--offline",), 0):
        before = len(desk.hub.paths())
        ran = desk(*words, *extra)
        assert "prompts lack their first token" in ran.err or "begins without <s>" in ran.err, ran.err
        assert sum("tokenizer.json" in path for path in desk.hub.paths()[before:]) == requests
