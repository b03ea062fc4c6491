"""The table of probes in docs/validation.md is the registry's."""

from __future__ import annotations

import re
from pathlib import Path

from importer.engines.base import OFFERS
from importer.validation.probes import PROBES, stops_cleanly
from importer.validation.promise import Promise

DOCS = Path(__file__).parent.parent / "docs" / "validation.md"
TABLE = re.compile(r"(?s)(?<=<!-- probes -->\n).*?(?=<!-- /probes -->)")
PROMISES = {
    "the document names a context": Promise(context=2048),
    "a tool parser is named": Promise(tool_parser="x"),
    "a reasoning parser is named": Promise(reasoning_parser="x"),
    "sampling is set at the start": Promise(sampling={"temperature": 0.6}),
    "the engine is known to offer it": Promise(offers=frozenset(OFFERS)),
    "the model chats": Promise(),
    "the model does not chat": Promise(chats=False),
}


def table() -> str:
    rows = ["| probe | applies | lesson |", "|---|---|---|"]
    for probe in PROBES:
        when = [name for name, promise in PROMISES.items() if probe.needs(promise) is None]
        applies = "always" if len(when) == len(PROMISES) else when[-1]
        rows.append(f"| {probe.NAME} | {applies} | {probe.LESSON} |")
    rows.append(f"| {stops_cleanly.NAME} | always | {stops_cleanly.LESSON} |")
    return "\n".join(rows) + "\n"


def test_the_docs_list_the_probes() -> None:
    found = TABLE.search(DOCS.read_text(encoding="utf-8"))
    assert found is not None
    assert found.group(0) == table()


if __name__ == "__main__":
    DOCS.write_text(TABLE.sub(lambda _: table(), DOCS.read_text(encoding="utf-8")), encoding="utf-8")
