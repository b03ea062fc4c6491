"""The table of probes in docs/validation.md is the registry's."""

from __future__ import annotations

import re
from pathlib import Path

from importer.validation.registry import listed

DOCS = Path(__file__).parents[2] / "docs" / "validation.md"
TABLE = re.compile(r"(?s)(?<=<!-- probes -->\n).*?(?=<!-- /probes -->)")


def table() -> str:
    rows = [f"| {name} | {applies} | {lesson} |" for name, applies, lesson in listed()]
    return "\n".join(["| probe | applies | lesson |", "|---|---|---|", *rows]) + "\n"


def test_the_docs_list_the_probes() -> None:
    found = TABLE.search(DOCS.read_text(encoding="utf-8"))
    assert found is not None
    assert found.group(0) == table()


if __name__ == "__main__":
    DOCS.write_text(TABLE.sub(lambda _: table(), DOCS.read_text(encoding="utf-8")), encoding="utf-8")
