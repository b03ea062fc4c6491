"""The API of Kubernetes, as far as a Job needs it: the real kubectl gets answers in the API's own shapes.

No control plane is to be had from a package index; see docs/clusters.md. Objects are kept as they were
sent, and a test plays the controllers: it sets a Job's or a pod's status.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tests.serving import listening

KINDS = {"configmaps": "ConfigMap", "pods": "Pod", "events": "Event", "jobs": "Job", "workloads": "Workload"}
GROUPS = {
    "/api/v1": ("configmaps", "pods", "events"),
    "/apis/batch/v1": ("jobs",),
    "/apis/kueue.x-k8s.io/v1beta1": ("workloads",),
}
VERBS = ["create", "delete", "get", "list", "patch"]


class ClusterApi:
    """One namespace ``ml``; ``refuse`` answers every request of a verb and a kind with a status."""

    def __init__(self, folder: Path) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.logs: dict[str, str] = {}
        self.refuse: dict[tuple[str, str], tuple[int, str, str]] = {}
        self.config = folder / "kubeconfig"

    def put(self, kind: str, name: str, **parts: Any) -> None:
        """Add an object, or replace parts of one."""
        group = next(group for group, kinds in GROUPS.items() if kind in kinds)
        new = {
            "apiVersion": group.partition("/")[2].partition("/")[2],
            "kind": KINDS[kind],
            "metadata": {"name": name, "uid": f"uid-{name}"},
        }
        self.objects[kind, name] = {**(self.objects.get((kind, name)) or new), **parts}

    def pod(self, run: str, status: dict[str, Any], node: str = "gpu-07") -> None:
        """Play the Job's controller and the node."""
        name = f"{run}-x7k2p"
        metadata = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": {"importer/run": run}}
        self.put(
            "pods", name, metadata=metadata, spec={"nodeName": node, "containers": [{"name": "importer"}]},
            status=status,
        )  # fmt: skip

    def status(self, run: str, **status: Any) -> None:
        self.put("jobs", run, status=status)

    def listed(self, kind: str, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        items = [item for (of, _), item in self.objects.items() if of == kind]
        for term in ",".join(query.get("labelSelector", [])).split(","):
            key, equals, value = term.partition("=")
            if equals:
                items = [i for i in items if (i["metadata"].get("labels") or {}).get(key) == value]
        return items


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ClusterApi

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, data: Any, kind: str = "application/json") -> None:
        body = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, code: int, reason: str, message: str) -> None:
        self.answer(code, {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        })  # fmt: skip

    def respond(self, verb: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        parts = urlsplit(self.path)
        found = _discovery(parts.path)
        if found is not None:
            self.answer(200, found)
            return
        words = parts.path.split("/namespaces/ml/")
        if len(words) != 2:
            self.error(404, "NotFound", "the server could not find the requested resource")
            return
        kind, *more = words[1].split("/")
        if (verb, kind) in self.api.refuse:
            self.error(*self.api.refuse[verb, kind])
            return
        if more[1:] == ["log"]:
            self.answer(200, self.api.logs.get(more[0], ""), "text/plain")
            return
        self.on_object(verb, kind, more[0] if more else None, body, parse_qs(parts.query))

    def on_object(self, verb: str, kind: str, name: str | None, body: Any, query: Any) -> None:
        if verb == "create":
            name = body["metadata"]["name"]
            if (kind, name) in self.api.objects:
                self.error(409, "AlreadyExists", f'{kind} "{name}" already exists')
                return
            body["metadata"]["uid"] = f"uid-{name}"
            self.api.objects[kind, name] = body
            self.answer(201, body)
        elif name is None:
            items = self.api.listed(kind, query)
            head = {"kind": f"{KINDS[kind]}List", "apiVersion": "v1", "metadata": {}}
            self.answer(200, {**head, "items": items})
        elif (kind, name) not in self.api.objects:
            self.error(404, "NotFound", f'{kind} "{name}" not found')
        elif verb == "delete":
            gone = self.api.objects.pop((kind, name))
            _collect(self.api, gone["metadata"]["uid"], name)
            self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}})
        else:
            if verb == "patch":
                _merge(self.api.objects[kind, name], body)
            self.answer(200, self.api.objects[kind, name])

    def do_GET(self) -> None:
        self.respond("get")

    def do_POST(self) -> None:
        self.respond("create")

    def do_PATCH(self) -> None:
        self.respond("patch")

    def do_DELETE(self) -> None:
        self.respond("delete")


def _collect(api: ClusterApi, owner: str, run: str) -> None:
    """Play the garbage collector: what a Job owns goes with it."""
    for key, item in [*api.objects.items()]:
        owners = item["metadata"].get("ownerReferences") or ()
        if any(o["uid"] == owner for o in owners) or item["metadata"].get("labels") == {"importer/run": run}:
            api.objects.pop(key, None)


def _merge(old: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            _merge(old[key], value)
        else:
            old[key] = value


def _discovery(path: str) -> dict[str, Any] | None:
    if path == "/version":
        return {"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        names = [group.split("/")[2:] for group in GROUPS if group.startswith("/apis/")]
        versions = [
            {"name": name, "versions": [v], "preferredVersion": v}
            for name, version in names
            for v in [{"groupVersion": f"{name}/{version}", "version": version}]
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": versions}
    if path not in GROUPS:
        return None
    resources = [
        {
            "name": name, "singularName": KINDS[name].lower(), "namespaced": True, "kind": KINDS[name],
            "verbs": VERBS,
        }
        for name in GROUPS[path]
    ]  # fmt: skip
    version = path.partition("/")[2].partition("/")[2]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


@contextmanager
def serving(folder: Path) -> Iterator[ClusterApi]:
    """The API on loopback, with the context ``tests`` in a kubeconfig."""
    api = ClusterApi(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    address = f"http://127.0.0.1:{server.server_address[1]}"
    api.config.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "a-token"}}],
        "contexts": [{"name": "tests", "context": {"cluster": "c", "user": "u"}}],
    }))  # fmt: skip
    with listening(server):
        yield api
