"""The worklist: new models that no table knows, and what importer cannot decide of them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from urllib.parse import urlencode

from gen_defaults.truth import FIELDS
from importer.app.decide import decide_snapshot
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.decisions.decision import Preferences
from importer.errors import ImporterError
from importer.hub import client, resolver
from importer.hub.reference import is_id, parse
from importer.signals.family import match
from importer.signals.tables import parser_table
from importer.version import __version__

LISTED, LONGEST = 100, 4 << 20  # models and bytes of a page of the Hub's list


def main(count: int, history: Path | None) -> int:
    """Import each at first sight; print a line for each, and the shares."""
    decided = proved = models = 0
    with ImportSession() as session:
        for model_id in unknown(count):
            try:
                request = ImportRequest(model_id, preferences=Preferences({"backend": "vllm"}))
                made = decide_snapshot(resolver.resolve(parse(model_id)), request, session).decisions
            except ImporterError as error:
                print(f"{model_id}: {error.kind}")
                continue
            models += 1
            states = {field: made[field].status for field in FIELDS}
            decided += "unknown" not in states.values()
            proved += "proved" in states.values()
            print(f"{model_id}: " + ", ".join(f"{f} {made[f].value or s}" for f, s in states.items()))
    line = f"{datetime.datetime.now(datetime.UTC).date()},{__version__},{models},{decided},{proved}\n"
    print(f"date,version,models,decided,proved\n{line}", end="")
    if history:
        with history.open("a", encoding="utf-8") as file:
            file.write(line)
    return 0


def unknown(count: int) -> list[str]:
    """Return the most downloaded of the Hub's newest models whose names no row matches; one request."""
    query = {"sort": "createdAt", "direction": -1, "limit": LISTED * 10, "pipeline_tag": "text-generation"}
    url = f"{client.check_endpoint()}/api/models?{urlencode(query)}"
    answer = client.get(url, limit=LONGEST)
    listed = json.loads(answer.body) if answer.status == 200 else []
    listed = sorted(listed, key=lambda row: -row.get("downloads", 0))
    return [i for row in listed if is_id(i := row["id"]) and match(parser_table(), i) is None][:count]
