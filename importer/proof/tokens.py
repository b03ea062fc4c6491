"""The tokens of a repository as an engine's parsers and renderers are given them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from importer.chat_template.find import Template
from importer.chat_template.vocabulary import Vocabulary
from importer.engines.tokens import Tokens
from importer.hub.folders import has_files
from importer.hub.snapshot import Snapshot
from importer.signals.architecture import model_types

WHOLE = ("tokenizer.json", "tokenizer_config.json")


def tokens_of(snapshot: Snapshot, template: Template, vocabulary: Vocabulary) -> tuple[Tokens, bool]:
    """Return the tokenizer's description, and whether the repository declares it."""
    config = snapshot.json("tokenizer_config.json")
    folder = snapshot.directory  # the Hub client's cache may hold only some of the listed files
    here = folder if folder is not None and has_files(folder, *WHOLE) else None
    types = model_types(snapshot)
    tokens = Tokens(
        directory=here,
        tokens=tuple((t.content, t.special) for t in vocabulary.tokens),
        eos=vocabulary.named.get("eos_token"),
        bos=vocabulary.named.get("bos_token"),
        chat_template=template.text,
        model_type=types[0] if types else None,
        settings=config,
    )
    return tokens, here is not None or vocabulary.declared


def rendering_tokens(tokens: Tokens, template: Template, vocabulary: Vocabulary) -> Tokens:
    """Return the tokens with the template's set and named tokens, as our own rendering has them.

    A tokenizer on disk stays unread: it has the template of the repository, not one in its place.
    """
    texts: Any = template.text
    if template.plain:
        texts = {"default": template.plain, "tool_use": template.text}
    named = vocabulary.variables
    return replace(
        tokens, directory=None, chat_template=texts, bos=str(named["bos_token"]) or None,
        eos=str(named["eos_token"]) or None,
    )  # fmt: skip
