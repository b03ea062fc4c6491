"""What the page is made of, and the routes that are there for it: served, checked, never live."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from importer.reports import FORMATS
from tests.serving import Service, fresh, problem, service

__all__ = ["service"]
pytestmark = pytest.mark.slow
FILES = {f.name: f.read_text() for f in files("importer.service.page").iterdir() if "." in f.name}
MODULES = {name: text for name, text in FILES.items() if name.endswith(".js")}
LIVE = re.compile(
    r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function|srcdoc|\.cssText"
    r"|localStorage|cookie"
)


def test_nothing_in_the_page_reads_markup_or_names_another_host() -> None:
    found = {name: LIVE.findall(text) for name, text in FILES.items()}
    assert not any(found.values()), found
    hosts = {
        name: re.findall(r"(?:https?:)?//\w[\w.-]*\.\w+", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
        for name, text in FILES.items()
    }
    del hosts["icon.svg"]  # the name of SVG's elements
    assert not any(hosts.values()), hosts
    assert not re.search(r"\son\w+=|style=|<style|<script>", FILES["index.html"])


def test_every_module_is_asked_for_and_is_small() -> None:
    used = {"main.js"} | {
        name for text in MODULES.values() for name in re.findall(r'from "\./([\w.]+)"', text)
    }
    assert used == set(MODULES)
    assert max(len(text.splitlines()) for text in MODULES.values()) <= 150


def test_the_page_and_its_parts_are_served_with_a_strict_policy(service: Service) -> None:
    start = service.client.get("/")
    assert start.headers["content-type"].startswith("text/html")
    policy = start.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert "unsafe" not in policy
    for part in ["page/report.css", *(f"page/{name}" for name in FILES)]:
        answer = service.client.get(f"/{part}")
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")
        assert service.client.head(f"/{part}").status_code == 200
        same = service.client.get(f"/{part}", headers={"If-None-Match": answer.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
    assert service.client.get("/page/main.js").headers["content-type"].startswith("text/javascript")
    for odd in ("nothing.js", "__init__.py", "..%2fapp.py", "%2e%2e/app.py"):
        assert service.client.get(f"/page/{odd}").status_code == 404


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
    problem(service.client.get("/v1/me", headers={"Authorization": "Bearer wrong"}), 401, "no-key")
