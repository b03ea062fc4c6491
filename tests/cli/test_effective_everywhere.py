"""One answer on each value: every front end shows the value of the document, with the same status."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.cli.output import value
from tests.commandline import Desk, receipt

# A value of each kind: its key, the import's text and the edited one, and the edited value.
EDITS: dict[str, tuple[str, str, str, Any]] = {
    "parser": ("tool_parser", "tool_parser:hermes", "tool_parser:longcat", "longcat"),
    "sampling": ("parameters.temperature", "temperature: 0.6", "temperature: 0.9", 0.9),
    "engine argument": (
        "engine_args.enable_prefix_caching", "\nbackend:",
        "\nengine_args:\n  enable_prefix_caching: false\nbackend:", False,
    ),
    "end tokens": (
        "end_tokens", "\nimporter:", '\nimporter:\n  end_tokens:\n    "2": x', {"2": "x"},
    ),
    "context": ("max_model_len", "max_model_len: 512", "max_model_len: 256", 256),
}  # fmt: skip
ROW = re.compile(r'<tr><th scope="row">([^<]+)</th><td><code>(.*?)</code></td><td>(.*?)</td>', re.DOTALL)


def imported(desk: Desk) -> Path:
    """Import a model, as if its template had proved hermes and refuted mistral."""
    assert desk("acme/chat", "--backend", "vllm", "--device", "rtx4090").code == 0
    path = desk.folder / "models" / "chat.yaml"
    named = "options:\n- tool_parser:hermes\n"
    text = path.read_text()
    text = re.sub(r"\noptions:.*?(?=\n\w)", "", text, flags=re.DOTALL)
    path.write_text(text.replace("\nimporter:", f"\n{named}importer:"))
    found = receipt(desk, "chat")
    verdicts = [
        {"parser": "hermes", "passed": ["one-call"], "failed": {}},
        {"parser": "longcat", "passed": ["one-call"], "failed": {}},
        {"parser": "mistral", "passed": [], "failed": {"one-call": "read no call"}},
    ]
    found["base"] = path.read_text()
    proof = {"engine": "vllm", "version": "0.33.0", "needed": {"tool_parser": ["one-call"]}}
    found["proof"] = {**proof, "verdicts": {"tool_parser": verdicts}}
    found["decisions"]["tool_parser"] = {
        "value": "hermes", "status": "proved", "why": ["it reads all"], "overruled": [], "reasons": [],
    }  # fmt: skip
    found["decisions"].setdefault(
        "end_tokens", {"value": None, "status": "none", "why": ["x"], "overruled": [], "reasons": []}
    )
    (desk.folder / "models" / "chat.receipt.json").write_text(json.dumps(found))
    return path


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def rows(page: str) -> dict[str, tuple[str, str]]:
    """Return value and status of each key in a report's table."""
    return {
        key: (html.unescape(shown), re.sub(r"<[^>]+>", "", status).strip())
        for key, shown, status in ROW.findall(page)
    }


def everywhere(desk: Desk, key: str) -> dict[str, tuple[Any, str]]:
    """Return value and status of one key in every front end."""
    why = json.loads(desk("why", "chat", key, "--json").out)
    shown = json.loads(desk("show", "chat", "--json").out)["values"]
    review = json.loads(desk("review", "chat", "--json").out)
    report = json.loads(desk("report", "chat", "--format", "json").out)["decisions"]
    found = {
        "why": (why["value"], why["status"]),
        "show": next((one.get("value"), one["status"]) for one in shown if one["key"] == key),
        "review": (review["decisions"][key]["value"], review["decisions"][key]["status"]),
        "report": (report[key]["value"], report[key]["status"]),
    }
    pages = {"html": desk("report", "chat", "--format", "html").out}
    built = desk("gallery", "build", "models", "-o", "site", "--include-drafts", "chat").code == 0
    if built:
        pages["site"] = (desk.folder / "site" / "chat.html").read_text()
    if built and key == "tool_parser":
        first = (desk.folder / "site" / "index.html").read_text()
        found["first page"] = re.findall(r"tools: ([\w-]+) \((\w+)\)", first)[0]
    return found | {name: rows(page)[key] for name, page in pages.items()}


@pytest.mark.parametrize("kind", EDITS)
def test_every_front_end_has_the_edited_value_as_edited(desk: Desk, kind: str) -> None:
    key, before, after, edited = EDITS[kind]
    path = imported(desk)
    unedited = everywhere(desk, key) if kind != "engine argument" else {}
    assert len({status for _, status in unedited.values()}) < 2, unedited
    edit(path, before, after)
    assert yaml.safe_load(path.read_text())
    found = everywhere(desk, key)
    assert {"html", "site"} <= found.keys()
    assert {status for _, status in found.values()} == {"edited"}, found
    assert all(one in (edited, value(edited), json.dumps(edited)) for one, _ in found.values()), found
    comments = desk("export", "chat", "localai-gallery").out
    assert ("since then max_model_len was edited" in comments) == (kind == "context")


def test_evidence_of_another_model_or_engine_holds_for_no_value(desk: Desk) -> None:
    path = imported(desk)
    edit(path, "model: acme/chat", "model: acme/base")
    for key in ("tool_parser", "parameters.temperature"):
        assert {status for _, status in everywhere(desk, key).values()} == {"outdated"}
