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
from importer.exports.base import Exported, Options, Placement, Service, refused
from importer.exports.compose import SETTINGS, labels
from importer.exports.kinds import ExportRemedy, Unexportable, unrun
from importer.exports.kubernetes import (
    NAME,
    SECRET,
    SECRET_KEY,
    amounts,
    config_map,
    inside,
    literal,
    manifests,
    object_name,
    secret,
    settings_name,
    unprivileged,
    variables,
    without_templates,
)
from importer.exports.texts import yaml_text
from importer.exports.vllm import BUILDS, devices, image, served, version
from importer.reasons import Reason
from importer.yaml_reader import read

INPUT, WORK = "/importer/input", "/importer/work"  # of the job's template
NAMED = "--served-model-name="  # of what starts the server in a shell


def export(template: str, document: Document, receipt: Receipt | None, options: Options) -> Exported:
    """Return the template's objects, and a ConfigMap where the server needs files."""
    form = _template(template)
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
    values: dict[str, object] = {
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
        "$unprivileged": unprivileged(),
    }
    if port is not None:
        values |= _of_job(document, options, origin.name, BUILDS[service.device]) | _of_pod(service, port)
        values["$pod"] = _filled(_template("pod"), values)
    objects = _filled(form["objects"], values)
    fields = {"name": name, "count": devices(document), "importer": values.get("$importer")}
    checked = unrun(form["comment"], secret=SECRET, key=SECRET_KEY, **fields)
    serves = form.get("serves", True)
    comments = service.comments if serves else origin.comments()
    comments = [*comments, checked, *([wanted.comment] if form.get("amounts", True) else [])]
    settings = config_map(service, objects[0]["metadata"]) if serves else []
    text = manifests([*settings, *objects], comments)
    return Exported({f"{origin.name}.{form['file']}": text}, service.lost if serves else ())


def _template(name: str) -> Any:
    return read(files("importer.exports").joinpath("templates", f"{name}.yaml").read_text("utf-8"))


def _of_pod(service: Service, port: int) -> dict[str, object]:
    """Return the values of a pod with the server of a document, with its files where it has some."""
    mount = {"name": "settings", "mountPath": SETTINGS, "readOnly": True}
    volume = {"name": "settings", "configMap": {"name": settings_name(service.origin.name)}}
    return {
        "$model": literal(service.origin.model),
        "$words": [literal(word) for word in service.words],
        "$port": port,
        "$mounts": [mount] if service.files else [],
        "$volumes": [volume] if service.files else [],
    }


def _of_job(document: Document, options: Options, name: str, build: str) -> dict[str, object]:
    """Return the values of a job that validates a document by importer, in an image that nobody publishes."""
    held = {f"{name}.yaml": yaml_text(document, [])}
    if options.template is not None:
        held[options.template.path.name] = options.template.text
    run = shlex.join(["python3", "-P", "-m", "importer", "validate", name, "--dir", WORK])
    return {
        "$job": f"validate-{object_name(name)}"[:NAME].rstrip("-"),
        "$document": held,
        "$importer": f"importer-vllm:v{version(document, build)}",
        "$validate": literal(f"cp {INPUT}/* {WORK}/ && exec {run}"),
    }


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
