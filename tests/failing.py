"""What provokes every kind of error, each as the words of a command that then fails."""

from __future__ import annotations

import functools
import json
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from importer.demo import MODEL
from importer.document.receipt import SCHEMA
from importer.engines import ENGINES, ports
from importer.engines.mlx import READY, Mlx
from importer.errors import ServiceError
from tests.commandline import BASE, TOKEN, Desk
from tests.hubserver import Fault, Repo
from tests.openai_api import api

Words = Sequence[object]
WEIGHTS = {**BASE, "model.safetensors": (2).to_bytes(8, "little") + b"{}", "tokenizer.json": {}}
impatient = functools.partial(Mlx, readiness=replace(READY, seconds=0.3))
SPEAKS = """\
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self): self.say({"data": []})
    def do_POST(self): self.rfile.read(int(self.headers["Content-Length"])); self.say({"choices": []})
    def say(self, data):
        body = json.dumps(data).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""


def fault(
    status: int, headers: dict[str, str] | None = None, body: bytes = b"{}", path: str = "/api/"
) -> Callable[[Desk], Words]:
    def case(desk: Desk) -> Words:
        desk.hub.faults.append(Fault(path, status, headers or {}, body, times=99))
        return ("acme/base",)

    return case


def storage(desk: Desk) -> Words:
    """The Hub sends for a file to a host that refuses it."""
    place = desk.hub.url.removeprefix("http://").replace("127.0.0.1", "localhost")
    desk.monkeypatch.setenv("IMPORTER_HUB_HOSTS", place)
    moved = {"Location": f"http://{place}/stored"}
    desk.hub.faults += [Fault("/config.json", 302, moved, times=99), Fault("/stored", 403, times=99)]
    return ("acme/base",)


def no_model_file(desk: Desk) -> Words:
    (desk.folder / "toy.yaml").write_text("name: toy\n")
    return (str(desk.folder / "toy.yaml"),)


def repository(**files: object) -> Callable[[Desk], Words]:
    def case(desk: Desk) -> Words:
        desk.hub.repos["acme/odd"] = Repo({k.replace("__", "."): v for k, v in files.items()})  # type: ignore[misc]
        return ("acme/odd",)

    return case


def in_folders(desk: Desk) -> Words:
    desk.hub.repos["acme/odd"] = Repo({"int4/config.json": {}, "int4/model.safetensors": b"x"})
    return ("acme/odd",)


def gguf_file(desk: Desk) -> Words:
    desk.hub.repos["acme/odd"] = Repo({"a.gguf": b"GGUF"}, info={"cardData": {"base_model": "acme/base"}})
    return ("https://huggingface.co/acme/odd/blob/main/a.gguf",)


def folder_of(desk: Desk) -> Words:
    desk.hub.repos["acme/odd"] = Repo({"config.json": {}, "4bit/config.json": {}})
    return ("hf://acme/odd/tree/main/4bit",)


def variable(name: str, value: str) -> Callable[[Desk], Words]:
    """A variable that the HTTP library reads when it makes its session."""
    from huggingface_hub import close_session

    def case(desk: Desk) -> Words:
        close_session()
        desk.held.callback(close_session)
        desk.monkeypatch.delenv("no_proxy", raising=False)
        desk.monkeypatch.delenv("NO_PROXY", raising=False)
        desk.monkeypatch.setenv(name, value)
        return ("acme/base",)

    return case


def typed(*words: object) -> Callable[[Desk], Words]:
    return lambda _: words


def token(value: str, *words: object) -> Callable[[Desk], Words]:
    def case(desk: Desk) -> Words:
        desk.monkeypatch.setenv("HF_TOKEN", value)
        return words

    return case


def hidden(*, gated: bool) -> Callable[[Desk], Words]:
    def case(desk: Desk) -> Words:
        desk.hub.repos["acme/hidden"] = Repo(BASE, gated=gated, private=not gated)
        return ("acme/hidden",)

    return case


def document(desk: Desk, files: dict[str, object] | None = None) -> str:
    """A document of a directory, not validated; its name."""
    desk.directory("toy", files or WEIGHTS)  # type: ignore[arg-type]
    assert desk("./toy", "--backend", "mlx", "--no-validate").code == 0
    return "toy"


def no_network(desk: Desk) -> Words:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        desk.monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
    return ("acme/base",)


def unreadable(desk: Desk) -> Words:
    (desk.folder / "elsewhere.json").write_text("{}")
    folder = desk.directory("toy", {"model.safetensors": b""})
    (folder / "config.json").symlink_to(desk.folder / "elsewhere.json")
    return ("./toy",)


def bad_weights(desk: Desk) -> Words:
    desk.hub.repos["acme/odd"] = Repo({**BASE, "model.safetensors": b"<html></html>"})
    return ("acme/odd", "--exact-fit")


def tokens_beyond(desk: Desk) -> Words:
    folder = Path(shutil.copytree(MODEL, desk.folder / "odd"))
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config["added_tokens_decoder"]["640"] = {"content": "<|turn|>", "special": True}
    path.write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text("<|turn|>{{ messages[0].content }}")
    return (str(folder), "--backend", "mlx")


def no_value(desk: Desk) -> Words:
    return ("why", document(desk), "zzz")


def exists(desk: Desk) -> Words:
    assert desk("acme/base", "--no-validate").code == 0
    return ("other/base", "--name", "base")


def other_backend(desk: Desk) -> Words:
    assert desk("acme/base", "--backend", "vllm", "--no-validate").code == 0
    return ("acme/base", "--backend", "mlx", "--name", "base")


def other_device(desk: Desk) -> Words:
    assert desk("acme/base", "--device", "l4", "--per-device", "--no-validate").code == 0
    return ("acme/base", "--device", "rtx4090", "--name", "base-l4")


def conflict(desk: Desk) -> Words:
    assert desk("acme/base", "--no-validate").code == 0
    path = desk.folder / "models" / "base.yaml"
    path.write_text(path.read_text().replace("temperature: 0.6", "temperature: 0.5"))
    desk.hub.repos["acme/base"].commit({**BASE, "generation_config.json": {"temperature": 0.7}})
    return ("acme/base",)


def not_a_folder(desk: Desk) -> Words:
    (desk.folder / "models").write_text("a file")
    return ("acme/base",)


def invalid(desk: Desk) -> Words:
    path = desk.folder / "models" / f"{document(desk)}.yaml"
    path.write_text(path.read_text() + "temprature: 1\n")
    return ("validate", "toy")


def changed(desk: Desk) -> Words:
    return ("review", document(desk), "--approve", "--digest", "sha256:" + "0" * 64)


def chat_template(desk: Desk) -> Words:
    assert desk("acme/chat", "--backend", "vllm", "--template", "json", "--no-validate").code == 0
    (desk.folder / "models" / "chat.chat_template.jinja").write_text("another")
    return ("validate", "chat")


def no_receipt(desk: Desk) -> Words:
    (desk.folder / "models" / f"{document(desk)}.receipt.json").write_text("{")
    return ("show", "toy")


def newer_receipt(desk: Desk) -> Words:
    path = desk.folder / "models" / f"{document(desk)}.receipt.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": SCHEMA + 1}))
    return ("show", "toy")


def engine_python(desk: Desk) -> Words:
    desk.monkeypatch.setenv("IMPORTER_MLX_PYTHON", sys.executable)
    return ("engine", "list")


def install_failed(desk: Desk) -> Words:
    desk.monkeypatch.setenv("PIP_NO_INDEX", "1")
    desk.monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return ("engine", "install", "mlx")


def engine_died(desk: Desk) -> Words:
    name = document(desk)
    desk.engine()
    return ("validate", name)


def would_not_run(desk: Desk) -> Words:
    name = document(desk)
    desk.engine(package=False)
    return ("validate", name)


def engine_slow(desk: Desk) -> Words:
    name = document(desk)
    desk.engine(does="import time; time.sleep(60)")
    desk.monkeypatch.setitem(ENGINES, "mlx", impatient)
    return ("validate", name)


def port_taken(desk: Desk) -> Words:
    name = document(desk)
    desk.engine()
    other = desk.held.enter_context(socket.socket())
    other.bind(("127.0.0.1", 0))
    other.listen()
    return ("validate", name, "--port", other.getsockname()[1])


def no_port(desk: Desk) -> Words:
    name = document(desk)
    desk.engine()
    desk.monkeypatch.setattr(ports, "LOOPBACK", "192.0.2.1")
    return ("validate", name)


def no_weights(desk: Desk) -> Words:
    name = document(desk, dict(BASE))
    desk.engine()
    return ("validate", name)


def not_measured(desk: Desk) -> Words:
    return ("fit", document(desk), "--measure")


def weights_not_local(desk: Desk) -> Words:
    desk.hub.repos["acme/heavy"] = Repo(WEIGHTS)
    assert desk("acme/heavy", "--backend", "mlx").code == 0
    desk.engine()
    return ("validate", "heavy")


def worker_failed(desk: Desk) -> Words:
    desk.engine(version="0.32.2")
    return ("acme/chat", "--backend", "mlx")


def probes_failed(desk: Desk) -> Words:
    name = document(desk)
    desk.engine(does=SPEAKS)
    return ("validate", name)


def internal(desk: Desk) -> Words:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("a fault\nin two lines")

    desk.monkeypatch.setattr("importer.hub.resolver.resolve", fails)
    return ("acme/base",)


def exporting(*words: str) -> Callable[[Desk], Words]:
    return lambda desk: ("export", document(desk), *words)


def against(key: str | None, *names: str) -> Callable[[Desk], Words]:
    """A server that runs; nobody here has its key."""

    def words(desk: Desk) -> Words:
        url, _ = desk.held.enter_context(api(key, names=names or ("hers",)))
        return ("validate", document(desk), "--against", url)

    return words


def elsewhere(target: str) -> Callable[[Desk], Words]:
    """A document of a model at the Hub, to be validated elsewhere; no program for that is to be found."""

    def words(desk: Desk) -> Words:
        assert desk("acme/base", "--backend", "mlx", "--no-validate").code == 0
        desk.monkeypatch.setenv("PATH", str(desk.folder))
        return ("validate", "base", "--on", target)

    return words


CASES: dict[str, Callable[[Desk], Words]] = {
    "bad-target": elsewhere("moon:dark"), "program-missing": elsewhere("ssh:box"), "no-value": no_value,
    "bad-reference": typed("a b"),
    "traversal": typed("acme/../base"), "revision-conflict": typed("acme/base@v1", "--revision", "v2"),
    "bad-option": typed("acme/base", "--colour", "red"),
    "bad-value": typed("acme/base", "--set", "kind=colour"),
    "unknown-setting": typed("acme/base", "--set", "temperatur=1"),
    "unknown-device": typed("acme/base", "--device", "h10"),
    "unknown-parser": typed("acme/chat", "--set", "tool_parser=hermez"),
    "unknown-format": exporting("vlm-config"),
    "unknown-probe": lambda desk: ("validate", document(desk), "--probe", "tool-cal"),
    "unknown-model": against(None, "hers", "his"),
    "bad-header": lambda desk: (*against(None)(desk), "--header-env", "Host=PATH"),
    "unknown-report": lambda desk: ("validate", document(desk), "--report", "out.pdf"),
    "no-such-directory": typed("./nowhere"), "not-found": token(TOKEN, "acme/none"),
    "revision-not-found": typed("acme/base@v9"), "gated": hidden(gated=True), "private": hidden(gated=False),
    "forbidden": fault(403), "missing-file": fault(404, path="/config.json"), "no-route": fault(404),
    "proxy": variable("http_proxy", "http://127.0.0.1:9"),
    "certificate": variable("SSL_CERT_FILE", "/nonexistent"), "bad-token": token("hf_wrong", "acme/base"),
    "rate-limited": fault(429, {"Retry-After": "3600"}), "server": fault(503, {"Retry-After": "3600"}),
    "network": no_network, "bad-answer": fault(200, body=b"<html>"),
    "not-cached": typed("acme/base", "--offline"),
    "refused-host": fault(302, {"Location": "http://169.254.169.254/"}),
    "nothing-to-decide": repository(LICENSE="x"), "gguf-file": gguf_file, "subfolder": folder_of,
    "no-such-path": typed("hf://acme/base/8bit"),
    "not-chat": repository(config__json={"architectures": ["FluxTransformer2DModel"]}),
    "tag": lambda desk: (f"{gguf_file(desk)[0].partition('/blob')[0]}:Q4_K_M",),
    "storage": storage, "no-model-file": no_model_file,
    "gguf-only": repository(model__gguf=b"GGUF"), "in-folders": in_folders,
    "broken-json": repository(config__json='{"a": '),
    "too-large": repository(generation_config__json=b" " * 300_000),
    "not-text": repository(config__json=b"\xff\xfe"), "unreadable": unreadable, "bad-weights": bad_weights,
    "tokens-beyond": tokens_beyond, "exists": exists, "other-backend": other_backend,
    "other-device": other_device, "not-a-folder": not_a_folder, "no-such-document": typed("show", "nobody"),
    "invalid": invalid, "changed": changed, "cannot-export": exporting("vllm-config"),
    "not-approved": exporting("mlx-command", "--approved-only"),
    "conflict": conflict, "chat-template": chat_template, "no-receipt": no_receipt,
    "newer-receipt": newer_receipt, "unknown-engine": typed("acme/base", "--validate=llama"),
    "engine-missing": lambda desk: ("validate", document(desk)), "engine-python": engine_python,
    "engine-died": engine_died, "engine-slow": engine_slow, "would-not-run": would_not_run,
    "port-taken": port_taken, "no-port": no_port, "no-weights": no_weights,
    "not-measured": not_measured, "weights-not-local": weights_not_local,
    "cannot-open": typed("d" * 300),
    "unreachable": lambda desk: ("validate", document(desk), "--against", "http://127.0.0.1:1"),
    "locked": against("a key that nobody has"), "internal": internal,
}  # fmt: skip
AFTER_SHOWING = {"exists", "not-a-folder"}  # met when the decisions have been shown already
# Have a test of their own in tests/cli/test_errors.py: they need a process of their own, or have no --json.
APART = {
    "install-failed", "probes-failed", "output-closed", "interrupted", "cannot-write", "worker-failed",
    "parsers-not-fetched",  # tests/engines/test_parser_sources.py
    "editor", "edited",  # tests/cli/test_review_terminal.py
    "cannot-edit",  # tests/document/test_edit.py
    *ServiceError.kinds,  # tests/service/test_service_problems.py
    "no-documents", "foreign-file",  # tests/cli/test_gallery.py
    "never-validated",  # tests/reports/test_reports_cli.py
    "needs-approval",  # tests/app/test_approvals.py
    "extra-missing",  # tests/product/test_packaging.py
    "broken-part",  # tests/product/test_foreign_package.py
    "starved", "lost", "closed", "too-costly",  # the sandbox's own tests
    # Need a far end, or a document made by hand: tests/transport.
    "too-late", "no-result", "far-end", "other-version", "other-digest", "bad-result", "bad-bundle",
    "folder-beside",
}  # fmt: skip
