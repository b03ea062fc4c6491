"""A context and a journal for the frame of a validation."""

from __future__ import annotations

import json
from pathlib import Path

from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.expectations import Expectations


def context(render: object = None, **more: object) -> Context:
    return Context(Expectations(tool_parser="x"), "m", Client("http://127.0.0.1:1"), render=render, **more)  # type: ignore[arg-type]


def repository(tmp_path: Path, template: str, **settings: object) -> Path:
    (tmp_path / "chat_template.jinja").write_text(template)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    return tmp_path
