"""A model's folder with another chat template, for servers that take a template from nowhere else."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

TEMPLATE = "chat_template.jinja"
TEMPLATES = (TEMPLATE, "chat_template.json", "additional_chat_templates")
SETTINGS = ("tokenizer_config.json", "processor_config.json")  # which may hold a template under a key


def dressed(model_dir: Path, template: str, folder: Path) -> Path:
    """A new folder in ``folder`` with links to the model's files, and ``template`` in place of its own."""
    made = folder / model_dir.resolve().name
    made.mkdir()
    for file in model_dir.resolve().iterdir():
        if file.name in SETTINGS and (bare := _without_template(file)) is not None:
            (made / file.name).write_text(bare, encoding="utf-8")
        elif file.name not in TEMPLATES:
            (made / file.name).symlink_to(file)
    (made / TEMPLATE).write_text(template, encoding="utf-8")
    return made


def _without_template(file: Path) -> str | None:
    """The settings without a template; ``None`` where they hold none."""
    with suppress(OSError, ValueError, RecursionError):
        settings = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(settings, dict) and settings.pop("chat_template", None) is not None:
            return json.dumps(settings)
    return None
