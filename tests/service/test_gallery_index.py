"""The gallery as LocalAI fetches it: what is in it, how it is cached, and when an entry leaves it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from importer.document import schema
from importer.exports.kinds import ExportComment
from importer.exports.texts import yaml_text
from importer.reasons import Reason
from importer.service.domain.index import GalleryIndex, IndexPage, text
from importer.storage import releases as rows
from importer.storage.database import Database
from importer.storage.schema import prepare
from tests.localai_client import GALLERY_MODEL, MODEL_CONFIG, LocalAI, decoded
from tests.publishing import published
from tests.serving import Service

slow = pytest.mark.slow
INDEX = "/gallery/index.yaml"


def index(service: Service) -> list[dict[str, Any]]:
    """The index, if a LocalAI would take it: a list whose items are of its own types."""
    answer = service.client.get(INDEX)
    assert answer.status_code == 200, answer.text
    items = yaml.safe_load(answer.text)
    assert isinstance(items, list)
    return [decoded(item, GALLERY_MODEL) for item in items]


def out(service: Service, name: str) -> None:
    job = service.imported("acme/base", name=name)
    assert job["state"] == "succeeded", job
    published(service, name)


@slow
def test_an_entry_and_its_file_give_the_same_configuration(service: Service) -> None:
    out(service, "entry")
    items = index(service)
    links = [i["urls"].pop() for i in items]  # the entries' own files, on this server
    assert links == [f"{service.url}/gallery/{i['name']}.yaml" for i in items]
    schema.check("localai-gallery", items, "index.yaml")
    answer = httpx.get(f"{service.url}/gallery/entry.yaml", trust_env=False)
    file = decoded(yaml.safe_load(answer.text), MODEL_CONFIG)
    written = LocalAI(service.url).installed_from(items, "entry")
    assert {**yaml.safe_load(file["config_file"]), "name": "entry"} == written
    schema.check("localai-model", written, "entry.yaml")
    assert (written["parameters"]["model"], written["backend"]) == ("acme/base", "vllm")
    assert written["artifacts"][0]["source"]["revision"]


@slow
def test_the_index_is_sent_once_for_each_change(service: Service) -> None:
    out(service, "cached")
    plain = {"Accept-Encoding": "identity"}
    first = service.client.get(INDEX, headers=plain)
    assert (first.headers["content-type"], "content-encoding" in first.headers) == ("application/yaml", False)
    tag = first.headers["ETag"]
    packed = service.client.get(INDEX, headers={"Accept-Encoding": "gzip"})
    assert (packed.headers["content-encoding"], packed.text) == ("gzip", first.text)
    assert packed.headers["ETag"] != tag
    assert (
        "content-encoding" not in service.client.get(INDEX, headers={"Accept-Encoding": "gzip;q=0.0"}).headers
    )
    for seen in (tag, f"W/{tag}", packed.headers["ETag"], f'"x", {tag}', "*"):
        known = service.client.get(INDEX, headers={**plain, "If-None-Match": seen})
        assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", tag)
    assert service.client.get(INDEX, headers={**plain, "If-None-Match": '"x"'}).status_code == 200
    for path in (INDEX, "/gallery/cached.yaml"):
        whole, head = service.client.get(path, headers=plain), service.client.head(path, headers=plain)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["Content-Length"] == str(len(whole.content))
        assert head.headers["ETag"] == whole.headers["ETag"]
    out(service, "cached-too")
    changed = service.client.get(INDEX, headers={**plain, "If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag


@slow
def test_what_is_no_entry_is_not_there(service: Service) -> None:
    for path in ("x.yaml", "x", ".yaml", "index", "%2e%2e%2fx.yaml", "a%2Fb.yaml", "é.yaml", "%00.yaml"):
        answer = service.client.get(f"/gallery/{path}")
        assert answer.status_code in {400, 404, 422}, path
        assert answer.headers["content-type"] == "application/problem+json"


HOSTILE = [
    "a: b",
    "- x",
    "\x1b[2J",
    "a\n- name: evil",
    "'\"#",
    "{{x}}",
    "!!python/object:os.system",
    "é\u2028x",
]


def test_hostile_texts_stay_values_of_their_own_entry() -> None:
    items: list[tuple[str, str]] = []
    for i, bad in enumerate(HOSTILE):
        entry = {"name": f"n{i}", "description": bad, "urls": ["u"]}
        rendered = yaml_text([entry], [Reason(ExportComment.COMMAND, command=bad)])
        items.append((f"n{i}", rendered))
    found = yaml.safe_load(text(items, "http://h"))
    assert [one["name"] for one in found] == [name for name, _ in items]
    assert [one["description"] for one in found] == HOSTILE
    assert found[3]["urls"] == ["u", "http://h/gallery/n3.yaml"]
    odd = 'http://h"\n- name: evil'
    assert yaml.safe_load(text(items[:1], odd))[0]["urls"][1] == f"{odd}/gallery/n0.yaml"
    assert yaml.safe_load(text([], "http://h")) == []


def test_a_page_is_the_same_wherever_it_is_rendered() -> None:
    one, two = IndexPage.of("x"), IndexPage.of("x")
    assert (one, gzip.decompress(one.packed)) == (two, b"x")


def test_an_index_is_held_for_a_few_addresses(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'g.sqlite'}")
    prepare(database)
    found = GalleryIndex(database)
    pages = [found.get(f"http://h{n}") for n in range(9)]
    assert found.get("http://h8") is pages[8]
    assert len(found._pages) <= 4
    with database.reading() as connection:
        assert (rows.items(connection), rows.listed(connection), rows.file(connection, "x")) == ([], [], None)
    database.close()
