"""Objects for clusters: each format is a template in ``templates``, whose texts ``$name`` stand for values.

Values come in after the template is read, so each stays a value; ``yaml_text`` quotes them. A template has
the end of the file's name, its comment, its objects, and the ``port`` of a server that fetches the model. Its
``features`` are the consumer's names for uses of a document, one of them at least.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from importer.document.document import Document
from importer.document.receipt import Receipt
from importer.exports.base import Exported, Options, Placement, refused
from importer.exports.compose import labels
from importer.exports.kinds import ExportRemedy, Unexportable, unrun
from importer.exports.kubernetes import (
    SECRET,
    SECRET_KEY,
    amounts,
    config_map,
    inside,
    literal,
    manifests,
    object_name,
    pod,
    secret,
    variables,
    without_templates,
)
from importer.exports.vllm import devices, image, served
from importer.reasons import Reason
from importer.yaml_reader import read

NAMED = "--served-model-name="  # of what starts the server in a shell


def export(template: str, document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return the template's objects, and a ConfigMap where the server needs files."""
    form = read(files("importer.exports").joinpath("templates", f"{template}.yaml").read_text("utf-8"))
    port = form.get("port")
    place = Placement(pinned=bool(form.get("pinned"))) if port is None else inside(port)
    service = served(document, receipt, options, place, fetches=True)
    origin = service.origin
    wanted = amounts(document, receipt, service.device)
    name = object_name(origin.name)[: form.get("longest")].rstrip("-")
    unnamed = [word for word in service.words if not word.startswith(NAMED)]
    chosen = {"VLLM_NO_USAGE_STATS": "1", **service.variables}
    uses = [str(use) for use in document.get("known_usecases") or ["nothing"]]
    known: Mapping[str, str] = form.get("features", {})
    features = [*dict.fromkeys(known[use] for use in uses if use in known)]
    if known and not features:
        reason = Reason(Unexportable.NO_FEATURE, consumer=form["consumer"], uses=uses)
        raise refused(document, reason, Reason(ExportRemedy.OTHER_FORMAT))
    values = {
        "$name": name,
        "$served": origin.name,
        "$labels": labels(origin),
        "$image": image(document, service.device),
        "$uri": f"hf://{origin.hub_id}" + (f":{origin.revision}" if origin.revision else ""),
        "$args": [without_templates(word) for word in service.words],
        "$shell": without_templates(shlex.join(unnamed)),
        "$unnamed": [literal(word) for word in unnamed],
        "$repo": f"hf://{origin.hub_id}",
        "$features": features,
        "$environment": {key: literal(value) for key, value in chosen.items()},
        "$token": secret("HF_TOKEN", SECRET, SECRET_KEY, optional=True),
        "$variables": variables(chosen),
        "$quantities": wanted.quantities,
        "$pod": None if port is None else pod(service, document, wanted.quantities, port),
    }
    objects = _filled(form["objects"], values)
    count = devices(document)
    checked = unrun(form["comment"], name=name, secret=SECRET, key=SECRET_KEY, count=count)
    comments = [*service.comments, checked, *([wanted.comment] if form.get("amounts", True) else [])]
    text = manifests([*config_map(service, objects[0]["metadata"]), *objects], comments)
    return Exported({f"{origin.name}.{form['file']}": text}, service.lost)


def _filled(part: Any, values: Mapping[str, object]) -> Any:
    """Return a part of a template with its values."""
    if isinstance(part, dict):
        return {key: _filled(inner, values) for key, inner in part.items()}
    if isinstance(part, list):
        return [*_items(part, values)]
    return values[part] if isinstance(part, str) and part.startswith("$") else part


def _items(part: list[Any], values: Mapping[str, object]) -> Iterator[Any]:
    """Yield the items of a list; a value that is a list gives each of its own."""
    for item in part:
        filled = _filled(item, values)
        yield from filled if isinstance(filled, list) else (filled,)
