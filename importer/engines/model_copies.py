"""Copies of a model's folder for one start: its settings, links to its weights, and files written anew."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from importer.config_file import derived_parser
from importer.engines.base import TEMPLATE, Unstartable
from importer.engines.whole_files import CONFIG, LARGEST
from importer.errors import DocumentError
from importer.hub import local
from importer.hub.folders import Folder, read_object
from importer.hub.snapshot import SETTINGS
from importer.reasons import Reason

TEMPLATES = (TEMPLATE, "chat_template.json", "additional_chat_templates")
WITH_TEMPLATE = (
    "tokenizer_config.json",
    "processor_config.json",
)  # they may have a template under a key


def dressed(model_dir: Path, template: str, folder: Path) -> Path:
    """Return a new folder in ``folder`` with the model's files, and ``template`` in place of its
    own.
    """
    read = {name: read_object(model_dir, name, LARGEST) for name in WITH_TEMPLATE}
    bare = {
        name: json.dumps({key: value for key, value in settings.items() if key != "chat_template"})
        for name, settings in read.items()
        if settings is not None and settings.get("chat_template") is not None
    }
    return _copy(model_dir, {**bare, TEMPLATE: template}, folder, without=TEMPLATES)


def with_response_template(model_dir: Path, template: Mapping[str, Any], folder: Path) -> Path:
    """Return a new folder in ``folder`` with the model's files, and ``template`` in the tokenizer's
    configuration.

    Raises DocumentError("invalid") for a model without a configuration that could be read.
    """
    settings = read_object(model_dir, derived_parser.FILE, LARGEST)
    if settings is None:
        problem = Reason(Unstartable.NO_TOKENIZER_CONFIG, key=derived_parser.KEY, file=derived_parser.FILE)
        raise DocumentError("invalid", path=model_dir, problem=problem)
    text = json.dumps({**settings, derived_parser.KEY: dict(template)}, ensure_ascii=False)
    return _copy(model_dir, {derived_parser.FILE: text}, folder)


def without_keys(model_dir: Path, keys: Collection[str], folder: Path) -> Path:
    """Return a new folder in ``folder`` with the model's files, and ``config.json`` without keys."""
    kept = {key: value for key, value in config_of(model_dir).items() if key not in keys}
    return _copy(model_dir, {CONFIG: json.dumps(kept)}, folder)


def config_of(model_dir: Path) -> Mapping[str, Any]:
    """Return the content of a model's ``config.json``; empty where it cannot be read."""
    return read_object(model_dir, CONFIG, LARGEST) or {}


def _copy(model_dir: Path, texts: Mapping[str, str], folder: Path, without: Collection[str] = ()) -> Path:
    copy = local.ANYWHERE.folder(folder) / model_dir.name
    copy.mkdir(parents=True)
    with local.opened(model_dir) as own:
        for name in own.names():
            if name not in texts and name not in without and not _copied(own, name, copy / name):
                (copy / name).symlink_to(own.path / name)
    for name, text in texts.items():
        (copy / name).write_text(text, encoding="utf-8")
    return copy


def _copied(own: Folder, name: str, target: Path) -> bool:
    """Copy a file that importer reads: no link of a copy has to be followed for it."""
    with suppress(OSError):
        if name.endswith(".json") or name in SETTINGS:
            target.write_bytes(own.read(name, LARGEST))
            return True
    return False
