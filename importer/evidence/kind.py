"""What kind of model a repository holds: architecture, files, name and tags, heard together.

Architecture, files and name are strong facts, heard in this order. The Hub's tags are often wrong or
missing: they are heard only where no strong fact speaks and nothing says that the model chats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from importer.errors import RepositoryError
from importer.evidence.architecture import architectures, config_of, model_types
from importer.evidence.fact import Evidence
from importer.evidence.name import joined, normalise
from importer.evidence.names import base_models, match, own_name
from importer.evidence.tables import parser_table
from importer.hub.snapshot import Snapshot

NOT_CHAT = {
    "embedding": "an embedding model",
    "reranker": "a reranker or classifier",
    "reward": "a reward model",
    "speech": "a speech or audio model",
    "image": "an image or video model",
    "draft": "a draft model for speculative decoding",
}
NEXT = {"draft": "Import the model that it drafts for."}

# Parts of class names that tell the kind; the first kind that fits is meant.
_ARCHITECTURES = {
    "draft": "eagle(?!2) speculator medusa dflash mtpmodel draft",
    "reward": "reward",
    "reranker": "forsequenceclassification fortokenclassification formultiplechoice",
    "speech": "whisper wav2vec hubert asr tts speecht5 granitespeech voxtralrealtime transcribe parakeet"
    " forspeech fortextto voicegen",
    "image": "stablediffusion flux unet transformer2d controlnet forsegmentation forobjectdetection"
    " forimageclassification fordepthestimation",
    "embedding": "embed(?!ded) ^col(?:pali|qwen|idefics|smol) bidirectional formaskedlm sentencetransformer"
    " ^(?:modern|distil|nomic|xlm)?(?:bert|roberta|mpnet|electra) ^clip ^siglip ^t5encodermodel"
    " ^(?:qwen[23]|llama|mistral|gemma[23]?|gemma3text|gte(?:new)?|new)model$",
    "ocr": "ocr docling",
    "translation": "^m2m100 ^marian ^nllb",
}

_FILES = {
    "modules.json": "embedding",
    "config_sentence_transformers.json": "embedding",
    "sentence_bert_config.json": "embedding",
    "1_Pooling/config.json": "embedding",
    "model_index.json": "image",
}

_TAGS = {
    "feature-extraction": "embedding",
    "sentence-similarity": "embedding",
    "sentence-transformers": "embedding",
    "text-ranking": "reranker",
    "text-classification": "reranker",
    "token-classification": "reranker",
    "automatic-speech-recognition": "speech",
    "text-to-speech": "speech",
    "text-to-audio": "speech",
    "text-to-image": "image",
    "text-to-video": "image",
    "image-to-image": "image",
    "image-to-video": "image",
    "image-classification": "image",
    "image-segmentation": "image",
    "object-detection": "image",
    "diffusers": "image",
    "translation": "translation",
}

_DRAFT_KEYS = ("speculators_model_type", "speculators_config", "dflash_config", "eagle_config")
_CHAT_WORDS = re.compile(r"(?:^|-)(?:instruct|chat|it|think(?:ing)?|reasoning|assistant|sft|dpo|rlhf)(?:-|$)")
_TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates/tool_use.jinja")


@dataclass(frozen=True, slots=True)
class KindFinding:
    """``kind`` and the facts that decided it, the deciding one first.

    ``kind`` is ``chat``, ``base``, ``guard``, ``ocr``, ``translation``, one of ``NOT_CHAT``, or
    ``gguf-only``; then ``made_from`` names the repository with the original weights, if the card does.
    """

    kind: str
    evidence: tuple[Evidence, ...]
    made_from: str | None = None

    def error(self, repo: str) -> RepositoryError | None:
        """Why no document can be made, or ``None``."""
        if self.kind == "gguf-only":
            hint = "Import the repository with the original safetensors weights; the card does not name it."
            if self.made_from:
                hint = f"Import {self.made_from}, which it was made from."
            return RepositoryError("gguf-only", repo=repo, next=hint)
        if self.kind in NOT_CHAT:
            hint = NEXT.get(self.kind, "Serve it with an engine for that kind of model.")
            return RepositoryError("not-chat", repo=repo, what=NOT_CHAT[self.kind], next=hint)
        return None


def find_kind(snapshot: Snapshot, ignore_name: bool = False) -> KindFinding:
    """The kind of model. What is missing is no fact; ``ignore_name`` leaves out id, card and tags."""
    strong = [*_from_architecture(snapshot), *_from_files(snapshot)]
    weak: list[Evidence] = []
    if not ignore_name:
        strong += _from_name(snapshot)
        weak += _from_tags(snapshot)
    refused = next((e for e in strong if e.value in NOT_CHAT), None)
    if refused is None and _only_gguf(snapshot):
        return _gguf(snapshot, ignore_name)
    if strong:
        first = refused or strong[0]
        return KindFinding(first.value, (first, *(e for e in strong if e is not first)))
    chats = tuple(_chats(snapshot, ignore_name))
    if chats:
        return KindFinding("chat", (*chats, *weak))
    if weak:
        return KindFinding(weak[0].value, tuple(weak))
    return KindFinding(*_without_template(snapshot))


def _from_architecture(snapshot: Snapshot) -> Iterator[Evidence]:
    for name in architectures(snapshot):
        kind = next((k for k, parts in _ARCHITECTURES.items() if _has(name.lower(), parts)), None)
        if kind:
            says = f"the architecture {name} is that of {_a(kind)}"
            yield _fact("architecture", kind, "config.json", says, name)
    config = config_of(snapshot)
    for key in _DRAFT_KEYS:
        if key in config:
            yield _fact("architecture", "draft", "config.json", f"config.json has {key}", key)


def _has(name: str, parts: str) -> bool:
    return any(re.search(part, name) for part in parts.split())


def _from_files(snapshot: Snapshot) -> Iterator[Evidence]:
    for path, kind in _FILES.items():
        if snapshot.has(path):
            yield _fact("files", kind, path, f"it has {path}, as {_a(kind)} has", path)


def _from_name(snapshot: Snapshot) -> Iterator[Evidence]:
    found = match(parser_table(), own_name(snapshot))
    if found is not None and found.kind != "chat":
        says = f"its name says that it is {_a(found.kind)}"
        yield _fact("name", found.kind, "parser_defaults.json", says, found.quote)


def _from_tags(snapshot: Snapshot) -> Iterator[Evidence]:
    info = snapshot.info
    tags = info.get("tags")
    told = [("pipeline_tag", info.get("pipeline_tag")), ("library_name", info.get("library_name"))]
    told += [("tags", tag) for tag in tags] if isinstance(tags, (list, tuple)) else []
    for source, tag in told:
        if isinstance(tag, str) and tag in _TAGS:
            yield _fact("tag", _TAGS[tag], source, f"the Hub's {source} says {tag}", tag)


def _chats(snapshot: Snapshot, ignore_name: bool) -> Iterator[Evidence]:
    """Facts that a chat model has and a base model mostly lacks."""
    where = _template_place(snapshot)
    if where:
        yield _fact("template", "chat", where, f"it has a chat template in {where}", where)
    for model_type in model_types(snapshot):
        row = parser_table().find_type(model_type)
        if row is not None:
            quote = f"model_type: {model_type}"
            says = f"config.json says {quote}, which is {row.label}"
            yield _fact("model-type", "chat", "config.json", says, quote)
    if ignore_name:
        return
    tags = snapshot.info.get("tags")
    if isinstance(tags, (list, tuple)) and "conversational" in tags:
        yield _fact("tag", "chat", "tags", "the Hub's tags say conversational", "conversational")
    words = _CHAT_WORDS.search(normalise(own_name(snapshot)).name)
    if words:
        quote = words.group().strip("-")
        yield _fact("name", "chat", "name", f"its name says {quote}", quote)
    found = match(parser_table(), own_name(snapshot))
    if found is not None and found.kind == "chat" and found.parsers:
        says = f"its name belongs to the family {found.row.label}"
        yield _fact("name", "chat", "parser_defaults.json", says, found.quote)


def _template_place(snapshot: Snapshot) -> str | None:
    listed = next((f for f in _TEMPLATE_FILES if snapshot.has(f) or f in snapshot.texts), None)
    if listed:
        return listed
    folder = next((f.path for f in snapshot.files if f.path.startswith("additional_chat_templates/")), None)
    if folder:
        return folder
    for path in ("tokenizer_config.json", "processor_config.json"):
        if snapshot.json(path).get("chat_template"):
            return path
    told = snapshot.info.get("config")
    inside = told.get("tokenizer_config") if isinstance(told, dict) else None
    told_template = isinstance(inside, dict) and inside.get("chat_template")
    return "the Hub's answer" if told_template else None


def _without_template(snapshot: Snapshot) -> tuple[str, tuple[Evidence, ...]]:
    """A tokenizer's settings without any template are a base model's; without them nothing is known."""
    file = "tokenizer_config.json"
    if snapshot.json(file):
        return "base", (
            _fact("template", "base", file, f"it has a {file} and no chat template anywhere", ""),
        )
    says = "nothing says that it is anything but a chat model"
    return "chat", (_fact("default", "chat", "the repository", says, ""),)


def _only_gguf(snapshot: Snapshot) -> bool:
    weights = {f.path.rpartition(".")[2].lower() for f in snapshot.files}
    return "gguf" in weights and not weights & {"safetensors", "bin", "pt", "pth", "npz"}


def _gguf(snapshot: Snapshot, ignore_name: bool) -> KindFinding:
    made_from = None if ignore_name else next(iter(base_models(snapshot)), None)
    quote = next(f.path for f in snapshot.files if f.path.lower().endswith(".gguf"))
    fact = _fact("files", "gguf-only", quote, "its only weights are GGUF files", quote)
    named = made_from if made_from and "/" in joined(normalise(made_from)) else None
    return KindFinding("gguf-only", (fact,), named)


def _a(kind: str) -> str:
    others = {
        "base": "a base model",
        "guard": "a guard model",
        "ocr": "an OCR model",
        "translation": "a translation model",
    }
    return NOT_CHAT.get(kind) or others[kind]


def _fact(rule: str, kind: str, source: str, says: str, quote: str) -> Evidence:
    return Evidence(f"kind-{rule}", "kind", kind, source, says, quote)
