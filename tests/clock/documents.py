"""Readers of documents, and of what is sent to the service about them."""

from __future__ import annotations

import json

from importer import yaml_reader
from importer.document import diff, edit, merge, names, options, where
from importer.document.check import problems
from importer.document.layout import Layout
from importer.exports import text as export_text
from importer.service import body, checking, etags, guard, logs
from importer.service.localai import patching
from tests.clock.repositories import as_is, pieces


def keys(text: str) -> str:
    """A document with a line for each piece of the text, comments and lists among them."""
    words = [json.dumps(p) for p in pieces(text)]
    lines = [f"{w}: {w}  # {w}" if i % 3 else f"{w}: [{w}, {w}]" for i, w in enumerate(words)]
    return "\n".join(["name: a", "options:", *(f"- {w}" for w in words), *lines]) + "\n"


def edited(text: str) -> None:
    """One value changed, one added, one removed, and every comment renewed."""
    data = where.parse(text)
    wanted = dict(data)
    first = next(iter(data))
    wanted[first] = "changed"
    wanted.pop(next(reversed(data)))
    edit.rewrite(text, wanted | {"added": {"b": [1, 2]}}, {(first,): "why"})


def merged(text: str) -> None:
    """Two sides that changed every value of a document."""
    base = where.parse(text)
    mine = {k: [v] if k != "options" else v for k, v in base.items()}
    theirs = {k: v if k != "options" else [*v, "added:1"] for k, v in base.items()} | {"more": 1}
    found = merge.Merge(base, mine, theirs)
    merge.write(text, {**base, "more": 1}, text, text)
    assert found.data


def compared(text: str) -> None:
    """All that differs between two documents."""
    data = where.parse(text)
    for change in diff.differences(data, {k: [v] for k, v in data.items()}):
        change.line()


def optioned(text: str) -> None:
    """Options with as many keys, and as often the same key, as the text has pieces."""
    for entries in ([*pieces(text)], [f"a:{p}" for p in pieces(text)]):
        document = {"options": entries}
        options.grouped(options.of(document))
        options.parser(document, "a")
        [o.typed for o in options.of(document)]
        diff.keyed(("options",), entries)


def tags(text: str) -> None:
    """Headers of a request."""
    etags.numbers(text)
    etags.same(text, '"1"')
    guard._named(text)


def placed(text: str) -> None:
    """A text's layout, and the line of each thing in it."""
    layout = Layout(text)
    layout.remarks()
    for comment in layout.comments[:: max(1, len(layout.comments) // 50)]:
        layout.column(comment.start)


def patched(text: str) -> None:
    """A patch of everything."""
    data = {key: {"a": 1} for key in pieces(text)}
    checking.merged(data, data)
    patching.merge(data, data)


READERS = (
    ("YAML", yaml_reader.read, "yaml_reader", 1_500, as_is),
    ("YAML's nodes", yaml_reader.compose, "yaml_reader", 1_500, as_is),
    ("a document's text", where.parse, "document.where", 1_500, as_is),
    ("what is wrong with a document", problems, "document.where", 1_500, as_is),
    ("layout", placed, "document.layout", 1_500, as_is),
    ("layout of many keys", placed, "document.layout", 800, keys),
    ("an edit", edited, "document.edit document.surgery document.layout", 1_000, as_is),
    ("an edit of many keys", edited, "document.edit document.surgery document.layout", 250, keys),
    ("a merge of many keys", merged, "document.merge document.diff", 160, keys),
    ("differences", compared, "document.diff", 800, keys),
    ("options", optioned, "document.options document.diff", 2_000, as_is),
    ("a document's name", lambda t: (names.slug(t), names.ALLOWED.fullmatch(t)), "document.names", 20_000, as_is),
    ("a request's depth", lambda t: body.too_deep(t.encode("utf-8", "replace")), "service.body", 20_000, as_is),
    ("a request's JSON", lambda t: checking.json_object(t.encode("utf-8", "replace")), "service.checking", 20_000, as_is),
    ("a patch", patched, "service.checking service.localai.patching", 6_000, as_is),
    ("a request's headers", tags, "service.etags service.guard", 20_000, as_is),
    ("a line of the service's log", logs.without_secrets, "service.logs", 20_000, as_is),
    ("an export's comments", lambda t: export_text.yaml_text({"a": t.split("\n")}, ()), "exports.text", 20_000, as_is),
)  # fmt: skip
