"""Prompts as vLLM's Python frontend renders them, without weights.

The steps are those of 0.32 and 0.33 (``renderers/online_renderer.py``, ``renderers/hf.py``): the request is
validated, the form of contents is resolved from the template, messages are parsed into that form, and the
tokenizer applies the template. Media are neither fetched nor processed: a tracker counts them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.renderers import hf
from vllm.renderers.hf import resolve_chat_template_content_format, safe_apply_chat_template

from .wire import attempt

try:
    from vllm.renderers import chat_utils
except ImportError:  # before 0.32
    from vllm.entrypoints import chat_utils

PLACEHOLDER = "<##IMAGE##>"  # stands for the token of the model's own class, that is not loaded


class Tracker(chat_utils.MultiModalItemTracker):  # type: ignore[misc]  # mypy does not see the engine
    """Counts media and loads none."""

    def add(self, modality: str, _item: Any) -> str:
        """Return a placeholder in place of the model's."""
        return PLACEHOLDER if modality == "image" else f"<##{modality.upper()}##>"

    def create_parser(self, mm_processor_kwargs: Any = None) -> Any:
        """Return a parser of parts that fetches no image: its placeholder alone is added."""
        parser = super().create_parser(mm_processor_kwargs=mm_processor_kwargs)
        parser.parse_image = lambda *_: parser._add_placeholder("image", self.add("image", None))  # noqa: SLF001
        return parser

    def resolve_items(self) -> Any:
        """Return no media."""
        return None, None


def rendered(request: Mapping[str, Any], tokenizer: Any) -> Iterator[Any]:
    """Yield one item per form of contents: the form that applies, and the prompts of all conversations."""
    model = _model(request["tokenizer"])
    getattr(hf, "_CONTENT_FORMATS", {}).clear()  # by name, and every template here has the same
    tokenizer.name_or_path = tokenizer.name_or_path or "model"
    home = sys.modules[chat_utils.parse_chat_messages.__module__]  # from 0.33 on a module of the package
    tracker, home.MultiModalItemTracker = home.MultiModalItemTracker, Tracker  # type: ignore[attr-defined]
    try:
        for form in request["formats"]:
            yield [
                attempt(request["limit"], lambda: _prompt(one, form, tokenizer, model))  # noqa: B023
                for one in request["conversations"]
            ]
    finally:
        home.MultiModalItemTracker = tracker  # type: ignore[attr-defined]


def _model(description: Mapping[str, Any]) -> Any:
    """Return the part of the engine's configuration that rendering reads."""
    config = SimpleNamespace(model_type=description["model_type"] or "")
    return SimpleNamespace(
        model="model", tokenizer="model", revision=None, tokenizer_revision=None, code_revision=None,
        trust_remote_code=False, hf_config=config, hf_text_config=config, multimodal_config=None,
        enable_prompt_embeds=False, allowed_local_media_path="", allowed_media_domains=None,
    )  # fmt: skip


def _prompt(one: Mapping[str, Any], form: str, tokenizer: Any, model: Any) -> dict[str, Any]:
    """Return the text of one conversation, as the server would tokenise it."""
    request = ChatCompletionRequest(
        model="model",
        messages=one["messages"],
        tools=one["tools"] or None,
        chat_template_kwargs=one["kwargs"] or None,
    )
    tools = [tool.model_dump() for tool in request.tools] if request.tools else None
    params = request.build_chat_params(None, form).with_defaults({"tools": tools, "tokenize": False})
    resolved = resolve_chat_template_content_format(
        None, params.chat_template_kwargs.get("tools"), form, tokenizer, model_config=model
    )
    conversation, *_ = chat_utils.parse_chat_messages(request.messages, model, content_format=resolved)
    text = safe_apply_chat_template(model, tokenizer, conversation, **params.get_apply_chat_template_kwargs())
    return {"text": text, "format": resolved}
