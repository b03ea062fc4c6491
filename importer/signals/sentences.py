"""What the files of sentence-transformers describe: the modules of a model, its pooling, and its kind."""

from __future__ import annotations

import json
from collections.abc import Mapping

from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, listed, text, whole
from importer.signals.architecture import WIDEST, object_of

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
# Kinds of models by ``model_type`` of the settings, and by the package of a module.
CROSSES = ("CrossEncoder", ".cross_encoder.")
SPARSE = ("SparseEncoder", ".sparse_encoder.")
# vLLM's names; the root of a length makes no other direction of a vector.
WAYS = {"lasttoken": "LAST", "mean": "MEAN", "mean_sqrt_len": "MEAN", "cls": "CLS"}
OLD_FORM = "pooling_mode_"  # of keys whose value is true; the newer form is one key without the last mark


@frozen
class Pooling:
    """How tokens become one vector.

    ``module``   the type of the module.
    ``way``      as vLLM names it: ``MEAN``, ``CLS``, ``LAST``; others have sentence-transformers' name.
    ``newer``    whether the file has the form of sentence-transformers 5.
    """

    file: str
    quote: str
    module: str
    way: str
    newer: bool


def modules(snapshot: Snapshot) -> list[Mapping[str, object]]:
    """Return the modules of the model, in their order."""
    try:
        data = json.loads(snapshot.texts.get(MODULES, "[]"))
    except (ValueError, RecursionError):
        return []
    return [m for m in listed(data)[:32] if isinstance(m, Mapping)]


def ends(module: Mapping[str, object], name: str) -> bool:
    """Return whether the module is of this class."""
    return str(module.get("type", "")).rpartition(".")[2] == name


def described(snapshot: Snapshot, kind: tuple[str, str]) -> tuple[str, str] | None:
    """Return the file that describes a model of this kind, and its words."""
    model_type, package = kind
    if object_of(snapshot, SETTINGS).get("model_type") == model_type:
        return SETTINGS, f"model_type: {model_type}"
    types = (str(module.get("type", "")) for module in modules(snapshot))
    return next(((MODULES, one.rpartition(".")[2]) for one in types if package in one), None)


def pooling(snapshot: Snapshot) -> Pooling | None:
    """Return the pooling, where its settings were read; several ways at once make one longer vector."""
    module = next((m for m in modules(snapshot) if ends(m, "Pooling")), None)
    if module is None:
        return None
    file = f"{module.get('path')}/config.json"
    settings = object_of(snapshot, file)
    newer = text(settings.get(OLD_FORM[:-1]))
    keys = [k for k, v in settings.items() if k.startswith(OLD_FORM) and v is True]
    names = [newer] if newer else [key.removeprefix(OLD_FORM) for key in keys]
    if not names:
        return None
    ways = [WAYS.get(name.removesuffix("_tokens").removesuffix("_token"), name) for name in names]
    quote = f"{OLD_FORM[:-1]}: {newer}" if newer else f"{', '.join(keys)}: true"
    return Pooling(file, quote[:60], str(module.get("type")), "+".join(ways), bool(newer))


def normalises(snapshot: Snapshot) -> bool:
    """Return whether the last step makes the length of a vector one."""
    return any(ends(module, "Normalize") for module in modules(snapshot))


def width(snapshot: Snapshot, encoder: int | None) -> int | None:
    """Return the width of the vectors: that of the last dense layer, ``None`` where its settings were not
    read, else the encoder's.
    """
    last = next((m for m in reversed(modules(snapshot)) if ends(m, "Dense")), None)
    settings = {} if last is None else object_of(snapshot, f"{last.get('path')}/config.json")
    return encoder if last is None else whole(settings.get("out_features"), 1, WIDEST)
