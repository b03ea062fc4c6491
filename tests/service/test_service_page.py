"""What the page is made of, and the routes that are there for it: served, checked, never live."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest

from importer.errors import ServiceError
from importer.reports import FORMATS
from importer.service.http import pages
from importer.service.http.query import AttentionKind, Size
from importer.service.messages import hint
from importer.service.problems import status_of
from importer.storage.figures import COUNTED
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
MODULES = {name: text for name, text in SOURCES.items() if name.endswith((".js", ".jsx"))}
LIVE = re.compile(
    r"innerHTML|InnerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function|srcdoc"
    r"|\.cssText|localStorage|cookie|\bstyle="
)
COMMENT = re.compile(r"^\s*//.*$|\{/\*.*?\*/\}|//[^\"'`]*$", re.MULTILINE)
SENTENCE = re.compile(
    r">[^<>{}=;()]*[A-Za-z]{2}[^<>{}=;()]*</"  # words between tags
    r"|(?:label|title|text|placeholder|aria-label|legend|told)=\"[^\"]*[A-Za-z]{2}[^\"]* [^\"]*\""
    r"|[\"'`][A-Z][a-z]*\b[^\"'`]* [a-z][^\"'`]*[\"'`]"  # a text that begins as a sentence does
)


def of_texts(name: str) -> bool:
    """Whether a module has nothing but texts."""
    return name == "text.js" or name.startswith("text/")


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


def test_every_module_is_imported_and_is_small() -> None:
    used = {"main.jsx"}  # where the build begins
    for name, text in MODULES.items():
        for found in re.findall(r'(?:from |import |import\()"(\.[\w./]+\.jsx?)"', text):
            used.add(os.path.normpath(str(Path(name).parent / found)))
    assert used == set(MODULES)
    longest = {name: len(text.splitlines()) for name, text in MODULES.items() if not of_texts(name)}
    assert max(longest.values()) <= 200, longest


def test_every_sentence_of_the_page_stands_among_the_texts() -> None:
    elsewhere = {
        name: SENTENCE.findall(COMMENT.sub("", text))
        for name, text in MODULES.items()
        if not of_texts(name) and name != "safe.js"  # that one speaks to who writes the page
    }
    assert {name: found for name, found in elsewhere.items() if found} == {}
    assert SENTENCE.search("<p>Not here</p>")
    assert SENTENCE.search('<Field label="not here" />')
    assert SENTENCE.search('say("Not here.")')


def test_every_link_is_made_by_the_component_of_links() -> None:
    made = {name for name, text in MODULES.items() if re.search(r"<a\b", text)}
    assert made == {"components/link.jsx", "app.jsx"}  # the second one leads to the content


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


ONES = r"""
import { TEXTS } from "./src/text.js";
const { jobs, decisions, probes, operations, actions, overview, upkeep } = TEXTS;
const job = { request: { documents: 1 } };
console.log(JSON.stringify([
  jobs.models(1), jobs.titles.recheck(job), jobs.passed(1, 1),
  decisions.rendered("a", "b", 1), decisions.parsers(1, "e", "1"),
  probes.exchanges(1), operations.rows("configs", 1), operations.rows("releases", 1), operations.budget(1),
  actions.jobs(1), overview.tokens(1), upkeep.together(1), operations.rows("configs", 2), jobs.models(2),
]));
"""


def test_one_of_a_kind_has_no_plural() -> None:
    assert said_by(ONES) == [
        "1 model", "Recheck of 1 document", "1 of 1 probe passed.",
        "a: what was rendered, and what b read (1 case)", "the parser of e 1", "1 raw exchange",
        "1 document", "1 release", ", 1 request left", "1 job", "1 token", "Accept this one",
        "2 documents", "2 models",
    ]  # fmt: skip
    rows = said_by('import { OPERATIONS } from "./src/text/operations.js"; console.log(JSON.stringify('
                   f'{json.dumps(COUNTED)}.map((name) => OPERATIONS.rows(name, 1))));')  # fmt: skip
    assert not [row for row in rows if row.endswith(("s", *(f"1 {name}" for name in COUNTED)))]


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


def test_the_docs_show_every_picture_of_the_page_and_it_is_small() -> None:
    told = {*re.findall(r"\((page-[\w-]+\.png)\)", (DOCS / "service-page.md").read_text(encoding="utf-8"))}
    sizes = {path.name: path.stat().st_size for path in DOCS.glob("page-*.png")}
    assert told == {*sizes}
    assert {name: size for name, size in sizes.items() if not 10_000 < size < LARGEST} == {}


def test_a_checkout_without_a_built_page_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FILES", {})
    with pytest.raises(ServiceError) as raised:
        pages.start()
    assert (raised.value.kind, status_of(raised.value.kind)) == ("page-not-built", 503)
    assert "make page" in hint(raised.value)


def test_a_text_is_checked_at_its_lines_and_not_kept(service: Service) -> None:
    name = fresh(service, "checked")
    path = f"/v1/configs/{name}"
    text = service.client.get(path).json()["text"]
    before = service.etag(name)

    def check(text: str) -> dict[str, object]:
        found: dict[str, object] = service.client.post(f"{path}/check", content=text).json()
        return found

    assert check(text)["changes"] == check(text)["errors"] == []
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "temperature:" in one)
    (hot,) = check(text.replace("temperature: 0.6", "temperature: hot"))["errors"]  # type: ignore[misc]
    assert (hot["line"], hot["pointer"]) == (line, "/parameters/temperature")
    (cool,) = check(text.replace("temperature: 0.6", "temperature: 0.5"))["changes"]  # type: ignore[misc]
    assert cool == {"path": "parameters.temperature", "before": 0.6, "after": 0.5}
    (other,) = check(text.replace(f"name: {name}", "name: other"))["errors"]  # type: ignore[misc]
    assert (other["pointer"], other["line"]) == ("/name", 2)
    (broken,) = check("a: [")["errors"]  # type: ignore[misc]
    assert broken["line"] == 1
    problem(service.client.post(f"{path}/check", content=b"\xff"), 422, "invalid")
    problem(service.client.post("/v1/configs/nobody/check", content="a: 1"), 404, "no-such-document")
    assert service.etag(name) == before


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
    assert (said["name"], said["scopes"]) == ("local", ["admin", "approve", "import", "publish", "read"])
    assert {"vllm", "mlx"} <= set(said["backends"])
    assert said["hub"] == service.hub.url
    problem(service.client.get("/v1/me", headers={"Authorization": "Bearer wrong"}), 401, "no-key")
