"""What an entry shows of its model, from the card to LocalAI's index, REST and the lists of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from importer.app.overview import row_of
from importer.document import schema
from importer.document.store import Store
from tests.commandline import CHAT
from tests.hubserver import Repo
from tests.localai_client import GALLERY_MODEL, METADATA, MODEL_CONFIG, decoded
from tests.publishing import gallery_of, published
from tests.serving import Service

pytestmark = pytest.mark.slow
SAYS = "Tiny is a small model that answers questions about trains."
HOSTILE = (
    '---\nlicense: mit\n---\n<a href="x"><img src=y onerror="alert(1)"></a>\n\n<script>alert(2)</script>\n'
    "# Tiny <b>one</b>\n\n[![a](javascript:x)](y)\n\n> [!WARNING]\n> A note as long as a paragraph is.\n\n"
    f"\u202e{SAYS.replace(' a ', ' <i>a</i> ')}\u2066\x1b\n\n| a |\n|---|\n| b |\n"
)


def document(service: Service, name: str) -> dict[str, Any]:
    found: dict[str, Any] = service.config(name)
    return found


def test_a_hostile_card_becomes_plain_text_everywhere(service: Service, tmp_path: Path) -> None:
    repo = Repo({**CHAT, "README.md": HOSTILE}, info={"cardData": {"license": "mit"}})
    service.hub.repos["acme/tiny"] = repo
    assert service.imported("acme/tiny", name="tiny")["state"] == "succeeded"
    published(service, "tiny")
    shown = document(service, "tiny")
    facts = shown["facts"]
    assert (facts["description"], facts["license"], facts["context"]) == (SAYS, "mit", 512)
    assert (shown["state"], shown["attention"]) == ("published", [])
    (listed,) = service.client.get("/v1/configs", params={"q": "trains", "released": True}).json()["items"]
    assert listed["facts"]["description"] == SAYS  # and searched

    text = service.client.get("/gallery/index.yaml").text
    entries = [one for one in yaml.safe_load(text) if one["name"] == "tiny"]
    (entry,) = entries
    assert entry["urls"].pop() == f"{service.url}/gallery/tiny.yaml"  # http in this test alone
    schema.check("localai-gallery", entries, "index.yaml")
    decoded(entry, GALLERY_MODEL)
    decoded(yaml.safe_load(service.client.get("/gallery/tiny.yaml").text), MODEL_CONFIG)
    listing = service.client.get("/models/available").json()
    (available,) = (one for one in listing if one["name"] == "tiny")
    decoded(available, METADATA)
    for shape in (entry, available):
        assert shape["description"].startswith(f"{SAYS}\n\nA chat model")
        assert (shape["license"], shape["icon"][:19]) == ("mit", "data:image/svg+xml,")
    assert {"llm", "vllm", "chat"} <= {*entry["tags"]}

    # The same document in a folder: the command line computes its facts by the same function.
    with gallery_of(service) as gallery, gallery.checkout() as checkout:
        stored = checkout.load("tiny")
        Store(tmp_path).write(stored.text, stored.need_receipt())
    row = row_of(Store(tmp_path), "tiny")
    assert (row["facts"]["description"], row["needs_attention"]) == (SAYS, [])
    assert row["facts"]["context"] == facts["context"]
    assert (row["state"], shown["state"]) == ("ready", "published")  # a folder has no releases
