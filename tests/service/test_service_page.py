"""What the page is made of, and the routes that are there for it: served, checked, never live."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest

from importer import backends
from importer.app.request import OPTIONS
from importer.document import document_keys
from importer.errors import ServiceError
from importer.exports import FORMATS as EXPORTS
from importer.memory.choose import Verdict
from importer.memory.devices import Kind
from importer.reports import FORMATS
from importer.service.http import pages
from importer.service.http.query import AttentionKind, Size
from importer.service.messages import hint
from importer.service.problems import status_of
from importer.storage import jobs
from tests.serving import Service, fresh, problem, service
from tools.build_page import package_node, system_node

__all__ = ["service"]
pytestmark = pytest.mark.slow
LARGEST = 200_000  # bytes of a picture in the docs
DOCS = Path(__file__).parents[2] / "docs"
WEB = Path(str(files("importer.service"))) / "web"
SOURCES = {
    path.relative_to(WEB / "src").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((WEB / "src").rglob("*"))
    if path.is_file()
}


LIVE = re.compile(
    r"innerHTML|InnerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function|srcdoc"
    r"|\.cssText|localStorage|cookie|\bstyle="
)
COMMENT = re.compile(r"^\s*//.*$|\{/\*.*?\*/\}|//[^\"'`]*$", re.MULTILINE)


def test_nothing_in_the_page_reads_markup_or_names_another_host() -> None:
    found = {name: LIVE.findall(text) for name, text in SOURCES.items()}
    assert {*found.pop("remembered.js")} == {"localStorage"}  # choices of appearance, and no key
    assert not any(found.values()), found
    hosts = {
        name: re.findall(r"(?:https?:)?//\w[\w.-]*\.\w+", COMMENT.sub("", text))
        for name, text in SOURCES.items()
        if name != "icon.svg"  # the name of SVG's elements
    }
    assert not any(hosts.values()), hosts
    assert not re.search(r"\son\w+=|style=|<style|<script>", SOURCES["index.html"])


CHECKED = r"""
import { h } from "preact";
import { allowHub, mayLink, plain } from "./src/safe.js";
const refused = (...made) => { try { h(...made); return false; } catch { return true; } };
allowHub("https://hub.test/");
console.log(JSON.stringify({
  links: ["#/jobs", "blob:x", "https://hub.test/a/b", "https://hub.test.evil/", "javascript:x"]
    .filter((one) => mayLink(one, "noopener")),
  bare: mayLink("https://hub.test/a/b", null),
  refused: [
    refused("script", {}), refused("iframe", {}), refused("img", { src: "x" }), refused("p", { style: "x" }),
    refused("a", { href: "javascript:x" }), refused("p", { onclick: "x" }), refused("p", { onClick: "x" }),
    refused("p", { dangerouslySetInnerHTML: { __html: "x" } }), refused("p", { class: "soft", onClick() {} }),
  ],
  told: h("p", { "aria-label": "a\u202eb" }).props["aria-label"],
  plain: plain("a\u202e\u0007\n\tb"),
}));
"""


def said_by(script: str) -> Any:
    """Return the JSON that a module of the page prints."""
    found = system_node() or package_node()
    assert found is not None
    asked = [str(found / "node"), "--input-type=module", "-e", script]
    return json.loads(subprocess.run(asked, cwd=WEB, capture_output=True, text=True, check=True).stdout)


def test_every_value_of_a_facet_has_a_label() -> None:
    labels = said_by(
        'import { OVERVIEW } from "./src/text/overview.js";'
        "const { attentions, sizes } = OVERVIEW;"
        "console.log(JSON.stringify([attentions, sizes].map(Object.keys)));"
    )
    assert [{*found} for found in labels] == [{*get_args(AttentionKind)}, {*get_args(Size)} - {"none"}]


def test_findings_are_the_decisions_that_only_a_receipt_records() -> None:
    found = said_by(
        'import { REMARKS } from "./src/views/document/remarks.js"; console.log(JSON.stringify(REMARKS));'
    )
    assert {*found} == {*document_keys.REMARKS}


def test_each_format_of_an_export_is_on_the_page_of_a_document_that_may_have_it() -> None:
    localai, engines, clusters = said_by(
        'import { CLUSTERS, ENGINES, LOCALAI } from "./src/views/document/formats.js";'
        "console.log(JSON.stringify([LOCALAI, ENGINES, CLUSTERS]));"
    )
    found = [*localai, *clusters, *(kind for kinds in engines.values() for kind in kinds)]
    assert sorted(found) == sorted(EXPORTS)
    assert set(engines) == set(backends.NAMES)


def test_every_verdict_on_the_memory_has_words() -> None:
    found = said_by(
        'import { TEXTS } from "./src/text.js"; console.log(JSON.stringify(TEXTS.pictures.verdicts));'
    )
    assert set(found) == set(get_args(Verdict))


WORDS = r"""
import { device } from "./src/devices.js";
import { shown } from "./src/format.js";
import { TEXTS } from "./src/text.js";
const { ago } = TEXTS.common;
console.log(JSON.stringify([
  [["image", "video"], { 0: null, 2: "<|im_end|>" }, { on: { top_p: 0.6, top_k: 20 } }, [], null, "a b"]
    .map(shown),
  ["8xh200", "rtx4090"].map(device),
  [0.2, 5.9, 125, 3000, 50000, -90, NaN].map(ago),
  [["rejected", "rejected by ann"], ["approved", "never run"], ["published", null]]
    .map((told) => TEXTS.review.state("a", ...told)),
]));
"""


def test_values_devices_and_moments_are_words() -> None:
    assert said_by(WORDS) == [
        ["image, video", "0, 2: <|im_end|>", "on (top_p: 0.6, top_k: 20)", "none", "none", '"a b"'],
        ["8 × H200", "RTX 4090"],
        ["just now", "5 min ago", "2 h ago", "2 d ago", None, "in 1 h", None],
        ["a is rejected by ann.", "a is approved: never run.", "a is published."],
    ]  # fmt: skip


def test_every_kind_of_the_service_has_words_on_the_page() -> None:
    """Kinds of jobs, attention and devices, and the goals of a plan."""
    words = said_by(
        'import { TEXTS } from "./src/text.js";'
        "const { common, imports, jobs, overview } = TEXTS;"
        "const all = [jobs.kinds, jobs.titles, overview.attentions, common.makers, imports.goals];"
        "console.log(JSON.stringify(all.map(Object.keys)));"
    )
    goals = {*OPTIONS["goal"].words, ""}
    kinds = {*get_args(jobs.Kind)}
    assert [{*found} for found in words] == [
        kinds, kinds, {*get_args(AttentionKind)}, {*get_args(Kind)}, goals,
    ]  # fmt: skip


def test_what_may_stand_in_the_page_is_checked_in_one_place() -> None:
    assert said_by(CHECKED) == {
        "links": ["#/jobs", "blob:x", "https://hub.test/a/b"],
        "bare": False,
        "refused": [True] * 8 + [False],
        "told": "a\\u202eb",
        "plain": "a\\u202e\\u0007\n\tb",
    }


def test_the_lock_file_of_the_page_has_every_digest_and_no_address() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert len(packages) > 10
    assert [
        name for name, one in packages.items() if not one.get("integrity", "").startswith("sha512-")
    ] == []
    assert [name for name, one in packages.items() if "resolved" in one] == []
    assert ".npmrc" in {path.name for path in WEB.iterdir()}


def test_the_page_and_its_parts_are_served_with_a_strict_policy(service: Service) -> None:
    start = service.client.get("/")
    assert start.headers["content-type"].startswith("text/html")
    assert start.headers["cache-control"] == "no-cache"
    policy = start.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert "unsafe" not in policy
    built = {path.name for path in (WEB / "built").iterdir()}
    named = set(re.findall(r'(?:href|src)="page/([^"]+)"', start.text))
    assert {name.partition("-")[0] for name in named} == {"icon.svg", "main"}
    assert named < built
    for part in built:
        answer = service.client.get(f"/page/{part}")
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")
        assert ("immutable" in answer.headers["cache-control"]) == part.endswith((".js", ".css"))
        assert service.client.head(f"/page/{part}").status_code == 200
        same = service.client.get(f"/page/{part}", headers={"If-None-Match": answer.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
        if part.endswith(".js"):
            assert answer.headers["content-type"].startswith("text/javascript")
    licences = service.client.get("/page/LICENSES.txt").text
    assert "preact 1" in licences
    assert "@codemirror/view 6" in licences
    for odd in ("nothing.js", "__init__.py", "..%2fapp.py", "%2e%2e/app.py", "package.json"):
        assert service.client.get(f"/page/{odd}").status_code == 404


def test_the_page_of_the_api_has_every_route_and_loads_nothing(service: Service) -> None:
    page, described = service.client.get("/docs"), service.client.get("/openapi.json").json()
    assert "default-src 'none'; style-src 'sha256-" in page.headers["content-security-policy"]
    operations = [(verb.upper(), path) for path, verbs in described["paths"].items() for verb in verbs]
    shown = re.findall(r'<span class="mark">(\w+)</span> <code>([^<]+)</code>', page.text)
    assert shown == operations
    assert set(re.findall(r'(?:href|src)="([^"]*)"', page.text)) == {"openapi.json", "./"}
    written = pages.described.cache_info().misses
    assert service.client.get("/docs").text == page.text
    assert pages.described.cache_info().misses == written, "it is written once"


def test_the_docs_show_every_picture_of_the_page_and_it_is_small() -> None:
    told = {
        *re.findall(
            r"\((page-[\w-]+\.png)\)", "\n".join(p.read_text(encoding="utf-8") for p in DOCS.glob("*.md"))
        )
    }
    sizes = {path.name: path.stat().st_size for path in DOCS.glob("page-*.png")}
    assert told == {*sizes}
    assert {name: size for name, size in sizes.items() if not 10_000 < size < LARGEST} == {}


def test_a_checkout_without_a_built_page_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FILES", {})
    with pytest.raises(ServiceError) as raised:
        pages.start()
    assert (raised.value.kind, status_of(raised.value.kind)) == ("page-not-built", 503)
    assert "make page" in hint(raised.value)


def test_a_report_comes_in_every_format(service: Service) -> None:
    name = fresh(service, "reported")
    kinds = {"json": "application/json", "html": "text/html", "terminal": "text/plain"}
    for kind, media in kinds.items():
        answer = service.client.get(f"/v1/configs/{name}/report/{kind}")
        assert answer.headers["content-type"] == f"{media}; charset=utf-8"
        assert "sandbox" in answer.headers["content-security-policy"]
    assert service.client.get(f"/v1/configs/{name}/report/json").json()["validation"] == "never"
    problem(service.client.get(f"/v1/configs/{name}/report/junit"), 409, "never-validated")
    problem(service.client.get(f"/v1/configs/{name}/report/doc"), 422, "bad-request")
    said = service.client.get("/openapi.json").json()["paths"]["/v1/configs/{name}/report/{kind}"]["get"]
    (kind,) = (p for p in said["parameters"] if p["name"] == "kind")
    assert kind["schema"]["enum"] == [*FORMATS]


def test_it_says_who_asks(service: Service) -> None:
    said = service.client.get("/v1/me").json()
    assert (said["name"], said["scopes"]) == ("local", ["approve", "import", "read"])
    assert {"vllm", "mlx"} <= set(said["backends"])
    assert said["hub"] == service.hub.url
    problem(service.client.get("/v1/me", headers={"Authorization": "Bearer wrong"}), 401, "no-key")
