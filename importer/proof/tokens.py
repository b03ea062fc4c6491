"""The tokenizer that parsers are given: the repository's own where it is on disk, else declared markers."""

from __future__ import annotations

from importer.engines.parsers import Tokens
from importer.evidence.architecture import model_types
from importer.hub.snapshot import Snapshot
from importer.template.source import Template
from importer.template.vocabulary import Vocabulary

WHOLE = ("tokenizer.json", "tokenizer_config.json")


def tokens_of(snapshot: Snapshot, template: Template, vocabulary: Vocabulary) -> tuple[Tokens, bool]:
    """The tokenizer's description, and whether it is the repository's own word."""
    config = snapshot.json("tokenizer_config.json")
    folder = snapshot.directory  # the Hub client's cache may hold only some of the listed files
    here = folder if folder is not None and all((folder / f).is_file() for f in WHOLE) else None
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
