"""The kind of model in a repository: what it returns, and whether any engine here serves it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.content import LOADED, is_weights
from importer.hub.reference import FileRemedy, is_id, made_from
from importer.hub.snapshot import Snapshot, listed
from importer.reasons import Reason
from importer.signals import sentences
from importer.signals.architecture import FILE, MODES, architectures, config_of, model_types, text_config
from importer.signals.card import metadata
from importer.signals.comparison import folders
from importer.signals.engine_capabilities import UNKNOWN, Abilities
from importer.signals.evidence import TASKS, Evidence, Rule, Source, warning
from importer.signals.family import match, own_name
from importer.signals.name import normalise
from importer.signals.quantisation import MLX, read
from importer.signals.reasons import KindReason, KindRemedy, ModelNameReason
from importer.signals.speculation import Draft, of_speculators
from importer.signals.tables import parser_table
from importer.signals.tasks import GENERATES, labels

# Rates of sound that a speech model's config has at its top.
SOUND = ("sampling_rate", "sample_rate")
# Vocabularies: who has one has the repository's own files, and not only the settings that importer reads.
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
TOKENIZER = "tokenizer_config.json"
GENERATION = "generation_config.json"
MOST_FOLDERS = 6  # that a sentence names
FORMS = ("params.json", "model_index.json")  # other files that say what weights are
ADAPTER = "adapter_config.json"  # of peft, mlx-lm and adapters, at the top
ADAPTS = re.compile(
    r"adapter|(?:^|[._-])(?:q|do)?lora(?:[._-]|$)", re.IGNORECASE
)  # in names of their weights
BASES = ("base_model_name_or_path", "model", "model_name")  # keys of these libraries for the model
TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates/tool_use.jinja")


def by_architecture(snapshot: Snapshot, able: Abilities, *, speaks: bool) -> Evidence | None:
    """Return the evidence against classes that vLLM neither has nor can wrap; ``None`` where it may.

    ``speaks`` says that the model has a chat template. Code in the repository may generate.
    """
    named, config = architectures(snapshot), config_of(snapshot)
    if not able.architectures or not named or config.get("auto_map"):
        return None
    if any(a in known for a in named for known in (able.architectures, able.pooling, able.removed)):
        return None
    name = named[0]
    if config.get("is_encoder_decoder") is True:
        return _of_class("encoder-decoder", name)
    if name.endswith(GENERATES) or speaks:
        return None
    sounds = any(key in part for part in (config, text_config(config)) for key in SOUND)
    return _of_class("speech" if sounds else "no-text", name)


def by_config(snapshot: Snapshot) -> Evidence | None:
    """Return the evidence against weights beside a config that names no model type and no architecture."""
    config = snapshot.json(FILE)
    if not config or config.get("model_type") or config.get("auto_map") or architectures(snapshot):
        return None
    weights = any(is_weights(f.path, LOADED) for f in snapshot.files)
    if not weights or any(snapshot.has(form) for form in FORMS):
        return None
    return replace(_of_file(FILE, "unnamed"), rule=Rule.KIND_ARCHITECTURE)


def by_adapter(snapshot: Snapshot) -> Evidence | None:
    """Return the evidence for an adapter (LoRA) without the model that it changes; ``None`` otherwise.

    Beside an adapter at the top, folders hold its earlier states.
    """
    top = snapshot.has(ADAPTER)
    weights = [f.path for f in snapshot.files if is_weights(f.path) and not (top and "/" in f.path)]
    if any(not ADAPTS.search(path.rpartition("/")[2]) for path in weights):
        return None
    shown = ADAPTER if snapshot.has(ADAPTER) else min(weights, key=lambda w: w.count("/"), default=None)
    if shown is None or (_describes(snapshot) and not (weights and shown == ADAPTER)):
        return None
    return _of_file(shown, "adapter")


def reads_alone(name: str) -> bool:
    """Return whether a class of transformers reads pictures or sound, and makes neither."""
    return "For" in name and not name.endswith(GENERATES)


def of_adapter(snapshot: Snapshot) -> str | None:
    """Return the repository of the model that an adapter changes, by its settings."""
    settings = snapshot.json(ADAPTER)
    named = (settings.get(key) for key in BASES)
    return next((name for name in named if isinstance(name, str) and is_id(name)), None)


def holds_nothing(snapshot: Snapshot) -> bool:
    """Return whether nothing shows a model: no weights, no config, and no settings of a tokenizer.

    A folder with the settings that importer reads may lack the weights, the config, or both. One with a
    vocabulary holds the repository's own files, so its weights and config would be there.
    """
    if _describes(snapshot) or any(is_weights(f.path) for f in snapshot.files):
        return False
    settings = template_place(snapshot) or snapshot.json(TOKENIZER)
    return not settings or any(snapshot.has(path) for path in VOCABULARIES)


def _describes(snapshot: Snapshot) -> bool:
    """Return whether the repository describes a model: by its config, or by other files for weights."""
    told = config_of(snapshot) or snapshot.json(GENERATION)
    return bool(told) or any(snapshot.has(form) for form in FORMS)


def template_place(snapshot: Snapshot) -> str | None:
    """Return the file with a chat template, or the Hub's own words; ``None`` without one."""
    named = next((f for f in TEMPLATE_FILES if snapshot.has(f) or f in snapshot.texts), None)
    if named:
        return named
    folder = next((f.path for f in snapshot.files if f.path.startswith("additional_chat_templates/")), None)
    if folder:
        return folder
    for path in ("tokenizer_config.json", "processor_config.json"):
        if snapshot.json(path).get("chat_template"):
            return path
    config = snapshot.info.get("config")
    inside = config.get("tokenizer_config") if isinstance(config, dict) else None
    template = isinstance(inside, dict) and inside.get("chat_template")
    return Source.HUB if template else None


def only_gguf(snapshot: Snapshot) -> bool:
    """Return whether the only weights are GGUF files."""
    paths = [f.path.lower() for f in snapshot.files]
    return any(p.endswith(".gguf") for p in paths) and not any(is_weights(p, LOADED) for p in paths)


# What serves a kind that no engine here serves, where the Hub names no library.
INSTEAD = {
    "speech": ("vLLM-Omni", "mlx-audio", "transformers"),
    "image": ("vLLM-Omni", "diffusers"),
    "encoder-decoder": ("transformers",),
    "no-text": ("transformers",),
}
NOT_CHAT = frozenset({*INSTEAD, "draft", "mlx-task", "unnamed", "adapter"})
# Libraries of any model: a page that names one of them names no engine.
GENERAL_LIBRARIES = frozenset({"transformers", "sentence-transformers", "safetensors", "pytorch", MLX})
LIBRARY = re.compile(r"[A-Za-z][\w.-]{1,39}", re.ASCII)
# What an architecture of the engine's registry returns, and the kind of such a model.
_POOLED = {
    "embed": "embedding",
    "late-interaction": "embedding",
    "classify": "reranker",
    "token-classify": "classifier",
    "reward": "reward",
}

# Parts of class names that show the kind; the first kind that fits wins.
_ARCHITECTURES = {
    "draft": "eagle(?!2) speculator medusa dflash mtpmodel draft",
    "reward": "reward",
    "reranker": "forsequenceclassification fortokenclassification formultiplechoice forranking rerank",
    "speech": "whisper wav2vec hubert asr tts speecht5 granitespeech voxtralrealtime transcribe parakeet"
    " forspeech fortextto voicegen",
    "image": "stablediffusion flux unet transformer2d controlnet forsegmentation forobjectdetection"
    " forimageclassification fordepthestimation",
    "embedding": "embed(?!ded) ^col(?:pali|qwen|idefics|smol) bidirectional formaskedlm sentencetransformer"
    " ^(?:modern|distil|nomic|xlm)?(?:bert|roberta|mpnet|electra)(?!.*for(?!maskedlm|pretraining))"
    " ^clip ^siglip ^t5encodermodel"
    " ^(?:qwen[23]|llama|mistral|gemma[23]?|gemma3text|gte(?:new)?|new)model$",
    "ocr": "ocr docling",
    "translation": "^m2m100 ^marian ^nllb",
}

_FILES = {
    sentences.MODULES: "embedding",
    sentences.SETTINGS: "embedding",
    "sentence_bert_config.json": "embedding",
    "1_Pooling/config.json": "embedding",
    "model_index.json": "image",
}

_TAGS = {
    "feature-extraction": "embedding",
    "sentence-similarity": "embedding",
    "sentence-transformers": "embedding",
    "text-ranking": "reranker",
    "text-classification": "classifier",
    "token-classification": "classifier",
    "zero-shot-classification": "classifier",
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

CONVERSATIONAL = "conversational"  # a tag of the Hub
TASK = "pipeline_tag"  # the task of a model on the Hub, by its vendor or its architecture
NO_TEXT = re.compile(r"-to-(?!text|any)\w+$")  # tasks are named by what a model takes and returns

_DRAFT_KEYS = ("speculators_model_type", "speculators_config", "dflash_config", "eagle_config")
_CHAT_WORDS = re.compile(r"(?:^|-)(?:instruct|chat|it|think(?:ing)?|reasoning|assistant|sft|dpo|rlhf)(?:-|$)")


@frozen
class KindFinding:
    """``kind`` and the facts that decided it, the deciding one first.

    ``kind`` is ``chat``, ``base``, ``guard``, ``ocr``, ``translation``, one of ``TASKS`` or of ``NOT_CHAT``,
    ``in-folders`` or ``gguf-only``. For that and an adapter ``made_from`` names the repository with the
    original weights, if the card, a tag of the Hub or the adapter's settings do.
    ``draft`` names the model that a draft is for, where its config does.
    ``libraries`` are what serves the model: its own by the Hub, where that is made for one kind of model, or
    by its files, where that is another than is usual for the kind.
    """

    kind: str
    evidence: tuple[Evidence, ...]
    made_from: str | None = None
    libraries: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    draft: Draft | None = None

    def error(self, repo: str) -> RepositoryError | None:
        """Return the error for a kind without a document, or ``None``."""
        if self.kind == "gguf-only":
            original = Reason(FileRemedy.ORIGINAL)
            if self.made_from:
                original = Reason(FileRemedy.MADE_FROM, repo=self.made_from)
            return RepositoryError("gguf-only", repo=repo, next=original)
        if self.kind == "in-folders":
            return RepositoryError("in-folders", repo=repo, folders=self.folders, first=self.folders[0])
        if self.kind in NOT_CHAT:
            what = Reason(KindReason.IS, of=self.kind)
            return RepositoryError("not-chat", repo=repo, what=what, next=self._instead(repo))
        return None

    def _instead(self, repo: str) -> Reason:
        """Return what serves such a model: its own library, else engines for its kind."""
        if self.kind == "draft" and self.draft is not None:
            pair = json.dumps(self.draft.settings)
            return Reason(KindRemedy.DRAFTED_FOR, repo=self.draft.verifier, settings=pair)
        if self.kind == "adapter" and self.made_from:
            return Reason(KindRemedy.ADAPTED, repo=self.made_from, adapter=repo)
        alone = {
            "draft": KindRemedy.DRAFTED, "adapter": KindRemedy.ADAPTED_UNNAMED, "mlx-task": KindRemedy.NO_MLX,
        }  # fmt: skip
        if self.kind in alone:
            return Reason(alone[self.kind])
        libraries = self.libraries or INSTEAD.get(self.kind)
        return (
            Reason(KindRemedy.SERVED_BY, libraries=libraries) if libraries else Reason(KindRemedy.OWN_LIBRARY)
        )


def find_kind(snapshot: Snapshot, ignore_name: bool = False, able: Abilities = UNKNOWN) -> KindFinding:
    """Return the kind of model; ``ignore_name`` leaves out id, card and tags.

    ``able`` has the architectures of vLLM that pool or transcribe.
    """
    adapter = by_adapter(snapshot)
    if adapter is not None:
        return KindFinding("adapter", (adapter,), of_adapter(snapshot) or _original(snapshot, ignore_name))
    inside = folders(snapshot)
    if inside:
        reason = Reason(KindReason.IN_FOLDERS, folders=inside[:MOST_FOLDERS])
        fact = _fact(Rule.KIND_FILES, "in-folders", Source.LISTING, reason, inside[0])
        return KindFinding("in-folders", (fact,), folders=inside[:MOST_FOLDERS])
    strong = [*_from_architecture(snapshot, able), *_from_files(snapshot)]
    strong = [*_unserved(snapshot, able, strong), *strong]
    weak: list[Evidence] = []
    if not ignore_name:
        strong += _from_name(snapshot)
        weak += _from_tags(snapshot)
    strong = [_doubted(snapshot, e, weak, able) for e in _ranking_first(strong, weak)]
    decided = next((e for e in strong if e.value in NOT_CHAT or e.value in TASKS), None)
    if decided is None and only_gguf(snapshot):
        return _gguf(snapshot, ignore_name)
    libraries = () if ignore_name else _library(snapshot)
    quantised = read(snapshot)
    of_mlx = quantised is not None and quantised.method == MLX  # its servers return text alone
    if decided is not None and decided.value in TASKS and of_mlx:
        decided = replace(decided, value="mlx-task")
        strong = [decided]
    if strong:
        first = decided or strong[0]
        others = tuple(e for e in strong if e is not first)
        return KindFinding(
            first.value, (first, *others), libraries=libraries or _by_class(first),
            draft=of_speculators(snapshot) if first.value == "draft" else None,
        )  # fmt: skip
    chats = tuple(_chats(snapshot, ignore_name))
    if chats and not ignore_name and (other := _returns_no_text(snapshot, weak)) is not None:
        chats = (replace(chats[0], reason=warning(other)), *chats)
    if chats:
        return KindFinding("chat", (*chats, *weak))
    if weak:
        return KindFinding(weak[0].value, tuple(weak), libraries=libraries)
    return KindFinding(*_without_template(snapshot))


def _unserved(snapshot: Snapshot, able: Abilities, strong: list[Evidence]) -> Iterator[Evidence]:
    """Yield the fact that no engine here generates text with the model, unless files show what it is."""
    if any(e.value in NOT_CHAT or e.value in TASKS for e in strong):
        return
    speaks = template_place(snapshot) is not None
    fact = by_architecture(snapshot, able, speaks=speaks) or (None if speaks else by_config(snapshot))
    if fact is not None:
        yield fact


def _by_class(fact: Evidence) -> tuple[str, ...]:
    """Return what serves the model by its class, where its kind alone does not say it."""
    alone = fact.value in ("image", "speech") and reads_alone(str(fact.quote))
    return ("transformers",) if alone else ()


def _ranking_first(strong: list[Evidence], weak: list[Evidence]) -> list[Evidence]:
    """Return the facts with those of a reranker before the files that all sentence encoders have.

    A card whose task is ranking stands before an architecture that generates: such a reranker answers yes or
    no.
    """
    by_files = [e for e in strong if e.rule is Rule.KIND_FILES and e.value in ("embedding", "reranker")]
    ranks = [e for e in (*strong, *weak) if e.value == "reranker"]
    said = [e for e in ranks if e.source == TASK]
    first = ranks if by_files else said if all(e.value not in NOT_CHAT for e in strong) else []
    return [first[0], *(e for e in strong if e is not first[0])] if first else strong


def _doubted(snapshot: Snapshot, fact: Evidence, weak: list[Evidence], able: Abilities) -> Evidence:
    """Return the fact, with a warning for one score of a decoder that nothing says to rank texts.

    Reward models have the same class. They score a conversation, so they have a chat template.
    """
    if fact.value != "reranker" or fact.rule is not Rule.KIND_ARCHITECTURE:
        return fact
    name = str(fact.quote)
    decoder = name.replace("ForSequenceClassification", "ForCausalLM")
    ranks = "sentence_transformers" in config_of(snapshot) or any(e.value == "reranker" for e in weak)
    if decoder == name or decoder not in able.architectures or ranks or template_place(snapshot) is None:
        return fact
    return replace(fact, reason=warning(Reason(KindReason.ONE_SCORE, name=name)))


def _returns_no_text(snapshot: Snapshot, weak: list[Evidence]) -> Reason | None:
    """Return a task that returns no text; a tag counts where the model has no other special task."""
    card = metadata(snapshot)
    of_text = (snapshot.info.get(TASK) or card.get(TASK)) in (None, "text-generation")
    named = [(e.source, e.quote) for e in weak if of_text or e.source == TASK]
    named += [("tags", str(tag)) for tag in listed(card.get("tags")) if of_text and str(tag) in _TAGS]
    found = next(((field, tag) for field, tag in named if NO_TEXT.search(tag)), None)
    return None if found is None else Reason(KindReason.TAGGED, field=found[0], tag=found[1])


def _library(snapshot: Snapshot) -> tuple[str, ...]:
    name = snapshot.info.get("library_name")
    known = isinstance(name, str) and LIBRARY.fullmatch(name) and name not in GENERAL_LIBRARIES
    return (str(name),) if known else ()


def _from_architecture(snapshot: Snapshot, able: Abilities) -> Iterator[Evidence]:
    config = config_of(snapshot)
    for name in architectures(snapshot):
        shown = next(
            (k for k, parts in _ARCHITECTURES.items() if re.search(parts.replace(" ", "|"), name.lower())),
            None,
        )
        kind = _by_registry(shown, name, config, able)
        if kind:
            yield _of_class(kind, name)
    for key in _DRAFT_KEYS:
        if key in config:
            yield _fact(Rule.KIND_ARCHITECTURE, "draft", "config.json", Reason(KindReason.KEY, key=key), key)


def _by_registry(shown: str | None, name: str, config: Mapping[str, object], able: Abilities) -> str | None:
    """Return the kind by registry, else by class name; labels separate scores and classes."""
    if able.transcribes.get(name) == "only" or (shown == "speech" and name in able.transcribes):
        return "transcription"
    kind = shown or _POOLED.get(able.pooling.get(name, ""))
    if kind == "reranker" and not re.search("forranking|rerank", name.lower()):
        return "classifier" if "ForTokenClassification" in name or labels(config) != 1 else kind
    return kind


def _from_files(snapshot: Snapshot) -> Iterator[Evidence]:
    crosses = sentences.described(snapshot, sentences.CROSSES)
    if crosses is not None:
        file, quote = crosses
        reason = Reason(KindReason.SCORES, file=file, quote=quote)
        yield _fact(Rule.KIND_FILES, "reranker", file, reason, quote)
        return
    for path, kind in _FILES.items():
        if snapshot.has(path):
            yield _of_file(path, kind)


def _from_name(snapshot: Snapshot) -> Iterator[Evidence]:
    row_match = match(parser_table(), own_name(snapshot))
    if row_match is not None and row_match.kind != "chat":
        reason = Reason(KindReason.NAME_SAYS_KIND, of=row_match.kind)
        yield _fact(Rule.KIND_NAME, row_match.kind, "parser_defaults.json", reason, row_match.quote)


def _from_tags(snapshot: Snapshot) -> Iterator[Evidence]:
    info = snapshot.info
    tags = info.get("tags")
    card = metadata(snapshot)
    fields = [(key, info.get(key) or card.get(key)) for key in (TASK, "library_name")]
    fields += [("tags", tag) for tag in tags] if isinstance(tags, (list, tuple)) else []
    for source, tag in fields:
        kind = _TAGS.get(tag) if isinstance(tag, str) else None
        if kind is not None:
            yield _fact(Rule.KIND_TAG, kind, source, Reason(KindReason.TAG, field=source, tag=tag), str(tag))


def _chats(snapshot: Snapshot, ignore_name: bool) -> Iterator[Evidence]:
    """Yield facts that a chat model has and a base model mostly lacks."""
    where = template_place(snapshot)
    if where:
        yield _fact(Rule.KIND_TEMPLATE, "chat", where, Reason(KindReason.TEMPLATE, where=where), where)
    for model_type in model_types(snapshot):
        row = parser_table().find_type(model_type)
        if row is not None:
            quote = f"model_type: {model_type}"
            reason = Reason(ModelNameReason.MODEL_TYPE, quote=quote, family=row.label)
            yield _fact(Rule.KIND_MODEL_TYPE, "chat", "config.json", reason, quote)
    if ignore_name:
        return
    tags = snapshot.info.get("tags")
    if isinstance(tags, (list, tuple)) and CONVERSATIONAL in tags:
        reason = Reason(KindReason.TAG, field="tags", tag=CONVERSATIONAL)
        yield _fact(Rule.KIND_TAG, "chat", "tags", reason, CONVERSATIONAL)
    words = _CHAT_WORDS.search(normalise(own_name(snapshot)).name)
    if words:
        quote = words.group().strip("-")
        yield _fact(Rule.KIND_NAME, "chat", Source.NAME, Reason(KindReason.NAME_HAS_WORD, word=quote), quote)
    row_match = match(parser_table(), own_name(snapshot))
    if row_match is not None and row_match.kind == "chat" and row_match.parsers:
        reason = Reason(ModelNameReason.FAMILY, base=None, family=row_match.row.label)
        yield _fact(Rule.KIND_NAME, "chat", "parser_defaults.json", reason, row_match.quote)


def _without_template(snapshot: Snapshot) -> tuple[str, tuple[Evidence, ...]]:
    """Return ``base`` where the tokenizer's settings have no template; ``chat`` where nothing is known.

    An architecture that vLLM renders by its own code has a template in no repository.
    """
    file = "tokenizer_config.json"
    if snapshot.json(file) and MODES.keys().isdisjoint(architectures(snapshot)):
        reason = Reason(KindReason.NO_TEMPLATE, file=file)
        return "base", (_fact(Rule.KIND_TEMPLATE, "base", file, reason, ""),)
    reason = Reason(KindReason.NOTHING_ELSE)
    return "chat", (_fact(Rule.KIND_DEFAULT, "chat", Source.REPOSITORY, reason, ""),)


def _gguf(snapshot: Snapshot, ignore_name: bool) -> KindFinding:
    named = _original(snapshot, ignore_name)
    quote = next(f.path for f in snapshot.files if f.path.lower().endswith(".gguf"))
    fact = _fact(Rule.KIND_FILES, "gguf-only", quote, Reason(KindReason.ONLY_GGUF), quote)
    return KindFinding("gguf-only", (fact,), named)


def _original(snapshot: Snapshot, ignore_name: bool) -> str | None:
    return None if ignore_name else made_from(snapshot, metadata(snapshot))


def _of_class(kind: str, name: str) -> Evidence:
    reason = Reason(KindReason.ARCHITECTURE, name=name, of=kind)
    return _fact(Rule.KIND_ARCHITECTURE, kind, FILE, reason, name)


def _of_file(path: str, kind: str) -> Evidence:
    return _fact(Rule.KIND_FILES, kind, path, Reason(KindReason.FILE, file=path, of=kind), path)


def _fact(rule: Rule, kind: str, source: str, reason: Reason, quote: str) -> Evidence:
    return Evidence(rule, "kind", kind, source, reason, quote)
