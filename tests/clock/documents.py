"""Readers of documents, and of what is sent to the service about them."""

from __future__ import annotations

import contextlib
import json

from importer import yaml_reader
from importer.app.target import is_here
from importer.cli import gallery_revision
from importer.document import check, document_keys, merge, name_allocator, template_file
from importer.document.schema import problems
from importer.document.yaml_edit import patch, source_map
from importer.document.yaml_edit.cst import Layout
from importer.errors import UsageError
from importer.exports import base, llama_swap, localai_gallery, vllm_recipe
from importer.exports import texts as export_text
from importer.hub import paging, rate_limit
from importer.service import localai, security, telemetry
from importer.service.domain import document_text
from importer.service.http import headers, models
from importer.storage import documents
from importer.transport import bundle
from importer.transport.command import parse_command
from tests.clock.repositories import as_is, pieces


def keys(text: str) -> str:
    """A document with a line for each piece of the text, comments and lists among them."""
    words = [json.dumps(p) for p in pieces(text)]
    lines = [f"{w}: {w}  # {w}" if i % 3 else f"{w}: [{w}, {w}]" for i, w in enumerate(words)]
    return "\n".join(["name: a", "options:", *(f"- {w}" for w in words), *lines]) + "\n"


def edited(text: str) -> None:
    """One value changed, one added, one removed, and every comment renewed."""
    data = source_map.parse_yaml(text)
    wanted = dict(data)
    first = next(iter(data))
    wanted[first] = "changed"
    wanted.pop(next(reversed(data)))
    patch.rewrite(text, wanted | {"added": {"b": [1, 2]}}, {(first,): "why"})


def checked(text: str) -> None:
    """A document with a text as name and value of an argument, a variable, a flag."""
    engine = {"engine": {"name": "vllm", "version": "0.33.0"}}
    arguments = {
        text: text, "tokenizer_mode": text, "max_model_len": text, "served_model_name": [text],
        "x": {text: text},
    }  # fmt: skip
    variables = {text: text, "VLLM_X": text}
    flags = [f"--{text}:{text}", f"tool_parser:{text}"]
    whole = {
        "backend": "vllm", "importer": engine, "engine_args": arguments, "env": variables, "options": flags,
        "dtype": text,
    }  # fmt: skip
    list(check.faults(whole))


def merged(text: str) -> None:
    """Two sides that changed every value of a document."""
    base = source_map.parse_yaml(text)
    mine = {k: [v] if k != "options" else v for k, v in base.items()}
    theirs = {k: v if k != "options" else [*v, "added:1"] for k, v in base.items()} | {"more": 1}
    found = merge.Merge(base, mine, theirs)
    merge.write(text, {**base, "more": 1}, text, text)
    assert found.data


def compared(text: str) -> None:
    """All that differs between two documents."""
    data = source_map.parse_yaml(text)
    for change in document_keys.differences(data, {k: [v] for k, v in data.items()}):
        change.line()


def optioned(text: str) -> None:
    """Options with as many keys, and as often the same key, as the text has pieces."""
    for entries in ([*pieces(text)], [f"a:{p}" for p in pieces(text)]):
        document = {"options": entries}
        document_keys.grouped(document_keys.of(document))
        document_keys.parser(document, "a")
        [o.typed for o in document_keys.of(document)]
        document_keys.keyed(("options",), entries)


def tags(text: str) -> None:
    """Headers of a request."""
    headers.etag_numbers(text)
    headers.same_etag(text, '"1"')
    security._named(text)


def placed(text: str) -> None:
    """A text's layout, and the line of each thing in it."""
    layout = Layout(text)
    layout.remarks()
    for comment in layout.comments[:: max(1, len(layout.comments) // 50)]:
        layout.column(comment.start)


def patched(text: str) -> None:
    """A patch of everything."""
    data = {key: {"a": 1} for key in pieces(text)}
    models.merged(data, data)


def targeted(text: str) -> None:
    """A place of runs."""
    for read in (parse_command, lambda t: parse_command(f"ssh:{t}")):
        with contextlib.suppress(UsageError):
            read(text)


READERS = (
    ("YAML", yaml_reader.read, "yaml_reader", 1_500, as_is),
    ("YAML's nodes", yaml_reader.compose, "yaml_reader", 1_500, as_is),
    ("a document's text", source_map.parse_yaml, "document.yaml_edit.source_map", 1_500, as_is),
    ("what is wrong with a document", problems, "document.yaml_edit.source_map", 1_500, as_is),
    ("layout", placed, "document.yaml_edit.cst", 1_500, as_is),
    ("layout of many keys", placed, "document.yaml_edit.cst", 800, keys),
    ("an edit", edited, "document.yaml_edit.patch document.yaml_edit.cst", 1_000, as_is),
    ("an edit of many keys", edited, "document.yaml_edit.patch document.yaml_edit.cst", 250, keys),
    ("a merge of many keys", merged, "document.merge document.document_keys", 160, keys),
    ("differences", compared, "document.document_keys", 800, keys),
    ("options", optioned, "document.document_keys", 2_000, as_is),
    ("a document's arguments", checked, ("document.check document.argument_check "
     "document.environment document.engine_arguments"), 4_000, as_is),
    ("a revision of git", gallery_revision.REVISION.fullmatch, "cli.gallery_revision", 20_000, as_is),
    ("a derived pattern", template_file.DERIVED.fullmatch, "document.template_file", 20_000, as_is),
    ("a device's name", is_here, "app.target", 20_000, as_is),
    ("a model of an export", base.HUB_ID.fullmatch, "exports.base", 20_000, as_is),
    ("a file of an entry", localai_gallery.PATH.fullmatch, "exports.localai_gallery", 20_000, as_is),
    ("a port among words", llama_swap.FLAG.fullmatch, "exports.llama_swap", 20_000, as_is),
    ("a node's name", vllm_recipe.SEVERAL.search, "exports.vllm_recipe", 20_000, as_is),
    ("a receipt's pieces", lambda t: [*documents.cut_receipt(t)], "storage.documents", 20_000, as_is),
    ("a document's name", lambda t: (name_allocator.slug(t), name_allocator.ALLOWED.fullmatch(t), localai.fitting(t)), "document.name_allocator service.localai", 20_000, as_is),
    ("a request's depth", lambda t: security.too_deep(t.encode("utf-8", "replace")), "service.security", 20_000, as_is),
    ("a request's JSON", lambda t: models.json_object(t.encode("utf-8", "replace")), "service.http.models", 20_000, as_is),
    ("a patch", patched, "service.http.models", 6_000, as_is),
    ("a request's headers", tags, "service.http.headers service.security", 20_000, as_is),
    ("a line of the service's log", telemetry.without_secrets, "service.telemetry", 20_000, as_is),
    ("what the Hub leaves", lambda t: (rate_limit.quotas({"ratelimit": t})), "hub.rate_limit", 20_000, as_is),
    ("the next page of a list", paging.NEXT.search, "hub.paging", 20_000, as_is),
    ("a place of runs", targeted, "transport.command", 20_000, as_is),
    ("the output of a run", lambda t: (bundle.Frame.read(t.encode("utf-8", "replace")), bundle.STRINGS.sub(b"", t.encode("utf-8", "replace"))),
     "transport.bundle", 20_000, as_is),
    ("a mistake's words", document_text.WORD.findall, "service.domain.document_text", 20_000, as_is),
    ("an export's comments", lambda t: export_text.yaml_text({"a": t.split("\n")}, ()), "exports.texts", 8_000, as_is),
)  # fmt: skip
