"""The short forms of reasons that decide a value: what the comments of a YAML file and the import's table show.

Each names what decided, in at most three words, and never the value itself. The whole sentences are in the
receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from importer.messages import WORDS, worded_field
from importer.reasons import Reason, key_of

if TYPE_CHECKING:
    from importer.messages import Text

# The head of a YAML file names what needs attention; the rest is in the receipt.
HEADS: Mapping[str, str] = {
    "does-not-fit": "the model does not fit the device",
    "will-not-start": "the engine does not start with this model",
    "needs-code": "the engine may need the repository's own code",
    "grant": "it needs an approval",
    "foreign-code": "code of other repositories is named",
    "prompts": "the engine loses text of some prompts",
    "parser": "the engine and the {key} disagree",
    "limited-tools": "the {key} has limits",
    "no-tools": "no tools reach the prompt",
    "way-in": "the chat template loses parts of requests",
    "conflict": "an edit and an import changed one value",
    "other-device": "the document was for another device",
    "other": "see {key}",
}
MODES = {None: "", "thinking": ", thinking", "non_thinking": ", non-thinking"}


def _mode(fields: Mapping[str, Any]) -> str:
    """{family}, and the way of answering where the table has one of its own."""
    return f"{fields['family']}{MODES[fields['mode']]}"


def _card(where: str) -> Text:
    return lambda fields: where + MODES[fields["mode"]]


TEXTS: dict[str, dict[str, Text]] = {
    "Severity": {"warning": "{reason}"},
    "GatherReason": {"renamed": "{reason}"},
    "WeighReason": {"set-by-user": "set by user"},
    "ClaimReason": {"tool-parser-type": "{file}", "response-template": "{file}"},
    "GenerationReason": {"value": "{file}", "implied": "{file}"},
    "FormReason": {
        "only-own-tokenizer": "listed files",
        "both-tokenizers": "listed files",
        "no-config": "listed files",
        "no-other-weights": "listed files",
        "only-own-weights": "listed files",
        "both-forms": "listed files",
        "both-weights": "listed files",
    },
    "CacheReason": {
        "scales-to-set": "checkpoint's scales",
        "scales-taken": "checkpoint's scales",
        "prefix-caching": "{engine}",
        "chunked-prefill": "{engine}",
        "latent-attention": "without AMX",
    },
    "KinReason": {"named": "type {model_type}", "like": "model name"},
    "ShownReason": {
        "no-template": "no template",
        "made-for": "template {convention}",
        "no-calls": "no calls rendered",
        "unknown-calls": "unknown call format",
        "calls": "format {format}",
        "no-reasoning": "no reasoning rendered",
        "not-rendered": "template not rendered",
        "thinks": "chat template",
    },
    "ModelNameReason": {
        "family": "model name",
        "parser": "family {family}",
        "sampling": _mode,
        "model-type": "config.json",
    },
    "DraftReason": {"offered": "config.json"},
    "InputReason": {
        "key": "{file}",
        "file": "listed files",
        "takes": "repository files",
        "limited": "importer",
    },
    "StopReason": {"listed": "tokenizer", "end-of-turn": "chat template"},
    "KindReason": {
        "one-score": "one label",
        "architecture": "architecture",
        "key": "config.json",
        "file": "listed files",
        "name-says-kind": "model name",
        "tag": "Hub tags",
        "template": "chat template",
        "model-type": "config.json",
        "conversational": "Hub tags",
        "name-has-word": "model name",
        "family": "family {family}",
        "no-template": "no chat template",
        "nothing-else": "default",
    },
    "LengthReason": {
        "named": "{file}",
        "by-class": "{model_type}",
        "assumed": "{engine}",
        "in-it-already": "rope {rope}",
        "multiplied": "rope {rope}",
        "longrope": "longrope",
        "original": "{key}",
        "window": "sliding window",
        "stretchable": "model card",
        "tokenizer": "{file}",
        "after-padding": "positions after padding",
    },
    "CardReason": {
        "header": "card header",
        "recommends": _card("model card"),
        "example": _card("card example"),
    },
    "QuantReason": {"method": "{file}", "scheme": "{file}"},
    "TaskReason": {
        "pools": "no text",
        "converted": "converted",
        "no-head": "no head",
        "yes-or-no": "yes or no",
        "outputs": "{file}",
        "served-by": "no text",
    },
    "LoadReason": {
        "deprecated": "{engine} deprecation",
        "on-processors": "{engine}",
        "detected": "{engine}",
        "mlx-reads": "{engine}",
        "converted": "{engine}",
        "made-whole": "{engine}",
    },
    "BackendReason": {
        "mlx-weights": "weights' format",
        "mlx-origin": "repository for MLX",
        "mlx-is-native": "Apple machines",
        "vllm-serves": "CPU and CUDA",
        "other-could": "{engine}",
        "other-can": "weights' format",
    },
    "CodeReason": {"named": "{places}"},
    "SisterReason": {"named": "card", "listed": "Hub", "not-listed": "Hub", "repository": "Hub"},
    "FitReason": {
        "holds": "fits the device",
        "not-known": "fit unknown",
        "too-large": "does not fit",
        "more-cards": "does not fit",
        "no-bfloat16": "device lacks BF16",
        "no-bfloat16-overflows": "device lacks BF16",
        "halved": "half of {stored}",
        "overflows": "FP16 overflows",
        "stored": "{file}",
        "stored-otherwise": "{file}",
    },
    "PlanReason": {
        "tensor": "{heads} attention heads",
        "experts-whole": "whole experts",
        "stages": "layers in stages",
        "copies": "{copies} copies",
        "encoder": "whole encoder",
        "experts": "experts dealt out",
        "share": "usual share",
        "larger-share": "longer context",
        "cache": "{count} sequences",
        "fp8-cache": "half the memory",
        "slots": "as requested",
        "few-slots": "longer context",
        "tokens-parted": "longer sequences",
        "batched-less": "goal latency",
        "batched-more": "goal throughput",
        "asked": "as requested",
        "beyond": "the model's most",
        "fewer": "{held} held",
        "local-copies": "copies per machine",
        "idle": "idle cards",
        "not-even": "uneven parts",
        "more-than-device": "more cards",
    },
    "ParserReason": {
        "base-model": "base model",
        "guard-model": "guard model",
        "ocr-model": "OCR model",
        "translation-model": "translation model",
        "no-text": "no text",
        "transcript": "transcript",
    },
    "ProofReason": {
        "read": "{engine} {version}",
        "no-calls": "no calls rendered",
        "no-thinking": "no reasoning rendered",
    },
    "DerivedReason": {
        "derived": "derived template",
    },
    "PairReason": {"with-tools": "both kinds", "not-beside": "both kinds"},
    "PromptVerdict": {"format": "{engine}", "other-prompt": "prompts differ"},
    "FrontendReason": {
        "built-in": "{engine}",
        "one-for-both": "both kinds",
        "not-one-for-both": "both kinds",
    },
    "ForeignReason": {
        "of-a-file": "given template",
        "of-ours": "template {template}",
        "own-calls": "template own-calls",
    },
    "PinReason": {"default-unsaid": "template's default"},
    "SamplingReason": {
        "for-other-answers": "{reason}",
        "sets-of-both-ways": "both modes",
        "fills-context": "context is limit",
        "cut-by-server": "{engine}'s limit {tokens}",
    },
}


def short(reason: Reason) -> str | None:
    """Return the short form of a reason; ``None`` for a kind that decides nothing."""
    enumeration, _, kind = key_of(reason.kind).partition(".")
    text = TEXTS.get(enumeration, {}).get(kind)
    if text is None:
        return None
    fields = {name: _field(value) for name, value in reason.fields.items()}
    return (text(fields) if callable(text) else WORDS.vformat(text, (), fields)) or None


def _field(value: object) -> Any:
    return short(value) or "" if isinstance(value, Reason) else worded_field(value)
