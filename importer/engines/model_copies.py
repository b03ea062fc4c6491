"""Copies of a model's folder for one start: links to its files, and some of them written anew."""

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
from importer.reasons import Reason

TEMPLATES = (TEMPLATE, "chat_template.json", "additional_chat_templates")
SETTINGS = ("tokenizer_config.json", "processor_config.json")  # files that may have a template under a key


def dressed(model_dir: Path, template: str, folder: Path) -> Path:
    """Return a new folder in ``folder`` with links to the model's files, and ``template`` in place of its
    own.
    """
    own = model_dir.resolve()
    read = {name: _object(own / name) for name in SETTINGS}
    bare = {
        name: json.dumps({key: value for key, value in settings.items() if key != "chat_template"})
        for name, settings in read.items()
        if settings is not None and settings.get("chat_template") is not None
    }
    return _copy(own, {**bare, TEMPLATE: template}, folder, without=TEMPLATES)


def with_response_template(model_dir: Path, template: Mapping[str, Any], folder: Path) -> Path:
    """Return a new folder in ``folder`` with links to the model's files, and ``template`` in the tokenizer's
    configuration.

    Raises DocumentError("invalid") for a model without a configuration that could be read.
    """
    own = model_dir.resolve()
    settings = _object(own / derived_parser.FILE)
    if settings is None:
        problem = Reason(Unstartable.NO_TOKENIZER_CONFIG, key=derived_parser.KEY, file=derived_parser.FILE)
        raise DocumentError("invalid", path=own, problem=problem)
    text = json.dumps({**settings, derived_parser.KEY: dict(template)}, ensure_ascii=False)
    return _copy(own, {derived_parser.FILE: text}, folder)


def without_keys(model_dir: Path, keys: Collection[str], folder: Path) -> Path:
    """Return a new folder in ``folder`` with links to the model's files, and ``config.json`` without keys."""
    own = model_dir.resolve()
    kept = {key: value for key, value in config_of(own).items() if key not in keys}
    return _copy(own, {CONFIG: json.dumps(kept)}, folder)


def config_of(model_dir: Path) -> Mapping[str, Any]:
    """Return the content of a model's ``config.json``; empty where it cannot be read."""
    return _object(model_dir / CONFIG) or {}


def _object(file: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError, RecursionError):
        settings = json.loads(local.read_plain(file, LARGEST))
        return settings if isinstance(settings, dict) else None
    return None


def _copy(own: Path, texts: Mapping[str, str], folder: Path, without: Collection[str] = ()) -> Path:
    copy = folder / own.name
    copy.mkdir(parents=True)
    for file in own.iterdir():
        if file.name not in texts and file.name not in without:
            (copy / file.name).symlink_to(file)
    for name, text in texts.items():
        (copy / name).write_text(text, encoding="utf-8")
    return copy
