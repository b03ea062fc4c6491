"""The folder of a model at a start: copies with other settings, and files that an engine refuses."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from importer import backends
from importer.document import template_file
from importer.engines.base import TEMPLATE, Unstartable
from importer.engines.deaths import CONFIGURATION, ENVIRONMENT, DeathCause, Died
from importer.errors import DocumentError, RepositoryError
from importer.hub import local, tensor_headers
from importer.hub.content import weight_files
from importer.hub.folders import Folder, read_object
from importer.hub.snapshot import SETTINGS
from importer.reasons import Reason
from importer.signals.comparison import OF_COPIES, findings
from importer.signals.reasons import WeightFault

LARGEST = 128 << 20  # bytes of a file of JSON
CONFIG = "config.json"
JSON = ".json"
ROPE = ("rope_theta", "rope_parameters")  # the base of positions, and the object of newer files that has it
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")  # one of them is enough


def judged(cause: DeathCause, folder: Path) -> DeathCause:
    """Return the cause of an end over a file; the configuration where no file is away or cut."""
    if not _whole(folder):
        return cause
    return DeathCause(Reason(Died.CONTENTS_REFUSED, problem=cause.reason), CONFIGURATION)


def compared(cause: DeathCause, folder: Path, engine: str) -> DeathCause:
    """Return the cause of an end over tensors by the folder's files, where these disagree; else ``cause``.

    The config is at fault for packed tensors that it does not describe, unless the folder holds other files.
    """
    with suppress(RepositoryError):
        paths = [file.path for file in weight_files(local.listing(folder))]
        own = tensor_headers.examined(local.resolve(str(folder), folder), paths, exact=False, offline=True)
        for one in findings(own, backends.serving(engine).name):
            copied = one.reason.kind in OF_COPIES
            sure = one.stops or cause.reason.kind is not Died.LAST_WORDS
            if sure and (copied or (one.stops and one.reason.kind is not WeightFault.UNQUANTISED)):
                reason = Reason(Died.FILES_DISAGREE, finding=one.reason, problem=cause.reason)
                return DeathCause(reason, ENVIRONMENT if copied else CONFIGURATION)
    return cause


def _whole(folder: Path) -> bool:
    """Return whether config and tokenizer are there, and each file of JSON is JSON."""
    with suppress(OSError), Folder(folder) as opened:
        there = opened.has(CONFIG) and any(map(opened.has, TOKENIZERS))
        return there and all(_is_json(opened, name) for name in opened.names() if name.endswith(JSON))
    return False


def broken(folder: Path) -> tuple[str, ...]:
    """Return the names of settings that are there and no JSON; engines may go on without them."""
    with suppress(OSError), Folder(folder) as opened:
        named = [name for name in SETTINGS if name.endswith(JSON) and opened.has(name)]
        return tuple(name for name in named if not _is_json(opened, name))
    return ()


def _is_json(folder: Folder, name: str) -> bool:
    try:
        json.loads(folder.read(name, LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return True


TEMPLATES = (TEMPLATE, "chat_template.json", "additional_chat_templates")
WITH_TEMPLATE = ("tokenizer_config.json", "processor_config.json")  # they may have a template under a key


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


def with_response_template(model_dir: Path, template: Mapping[str, object], folder: Path) -> Path:
    """Return a new folder in ``folder`` with the model's files, and ``template`` in the tokenizer's
    configuration.

    Raises DocumentError("invalid") for a model without a configuration that could be read.
    """
    settings = read_object(model_dir, template_file.RESPONSE_TEMPLATE_FILE, LARGEST)
    if settings is None:
        problem = Reason(
            Unstartable.NO_TOKENIZER_CONFIG,
            key=template_file.RESPONSE_TEMPLATE_KEY,
            file=template_file.RESPONSE_TEMPLATE_FILE,
        )
        raise DocumentError("invalid", path=model_dir, problem=problem)
    text = json.dumps({**settings, template_file.RESPONSE_TEMPLATE_KEY: dict(template)}, ensure_ascii=False)
    return _copy(model_dir, {template_file.RESPONSE_TEMPLATE_FILE: text}, folder)


def without_keys(model_dir: Path, keys: Collection[str], folder: Path) -> Path:
    """Return a new folder in ``folder`` with the model's files, and ``config.json`` without keys.

    A base of positions gets its default: the classes of some engines demand a value.
    """
    config = config_of(model_dir)
    kept = {key: value for key, value in config.items() if key not in keys}
    kept |= {key: default_base(config.get(key)) for key in ROPE if key in keys}
    return _copy(model_dir, {CONFIG: json.dumps(kept)}, folder)


def default_base(value: object) -> object:
    """Return the base of positions of most classes, in the form of ``value``: alone, or in its object."""
    return {**value, ROPE[0]: 10_000.0} if isinstance(value, Mapping) else 10_000.0


def config_of(model_dir: Path) -> Mapping[str, object]:
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
