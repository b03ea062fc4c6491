"""Sentences about evidence: what files, tables, templates and engines say of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text

KINDS = {
    "chat": "a chat model",
    "embedding": "an embedding model",
    "reranker": "a reranker",
    "classifier": "a classifier",
    "reward": "a reward model",
    "transcription": "a model for transcription",
    "speech": "a speech or audio model",
    "image": "an image or video model",
    "draft": "a draft model for speculative decoding",
    "mlx-task": "a model with MLX weights that returns no text of a chat",
    "encoder-decoder": "a model with an encoder and a decoder that vLLM lacks",
    "no-text": "a model without a head for text",
    "unnamed": "a model whose config.json names no model type and no architecture",
    "adapter": "an adapter (LoRA) without the model that it changes",
    "base": "a base model",
    "guard": "a guard model",
    "ocr": "an OCR model",
    "translation": "a translation model",
}
NOT_CHAT = ("speech", "image", "draft", "mlx-task", "encoder-decoder", "no-text", "unnamed", "adapter")
FIELDS = {"tool_parser": "tool parser", "reasoning_parser": "reasoning parser"}
WAYS = {
    "decoder": "a decoder",
    "hybrid": "a hybrid of attention and state-space or linear layers",
    "attention_free": "a model without attention",
    "encoder_decoder": "an encoder with a decoder",
}
THINKING = {
    "rendered": "renders reasoning in a block",
    "prompt": "writes a block into the prompt",
    "stripped": "cuts reasoning blocks out of past turns",
    "instructed": "asks for reasoning in its system prompt",
    None: "shows reasoning",
}
MODES = {None: "", "thinking": " with thinking", "non_thinking": " without thinking"}


def _of_kind(text: str) -> Text:
    """A format string in which ``{of}`` is the kind of model with its article."""
    return lambda fields: text.format_map({**fields, "of": KINDS[fields["of"]]})


def _whose(base: str | None) -> str:
    return "its name" if base is None else f"the model it was made from, {base},"


def _parser(fields: Mapping[str, Any]) -> str:
    noun, note = FIELDS[fields["field"]], ""
    if fields["bare"]:
        note = " (a bare name is the base model's)"
    elif fields["note"]:
        note = f" ({fields['note']})"
    says = f"{_whose(fields['base'])} says {fields['family']}, known to"
    if fields["parser"] is None:
        return f"{says} have no {noun}{note}"
    return f"{says} need the {noun} {fields['parser']}{note}"


def _row(fields: Mapping[str, Any]) -> str:
    way = "" if fields["mode"] is None else f" when {fields['mode'].replace('_', '-')}"
    origin = f", from {fields['origin']}" if fields["origin"] else ""
    return f"the sampling table has {fields['key']} {fields['value']} for {fields['family']}{way}{origin}"


def _recommended(start: str) -> Text:
    return lambda fields: f"{start} {fields['key']} {fields['value']}{MODES[fields['mode']]}"


def _unclear(start: str) -> Text:
    return lambda fields: (
        f"{start} {fields['key']} {' and '.join(map(str, fields['values']))}{MODES[fields['mode']]}, "
        "and nothing tells which is meant"
    )


def _no_calls(fields: Mapping[str, Any]) -> str:
    problem = f" ({fields['problem']})" if fields["problem"] else ""
    asked = f", but asks for them in the format {fields['asked']}" if fields["asked"] else ""
    return f"the template renders no tool calls{problem}{asked}"


def _thinks(fields: Mapping[str, Any]) -> str:
    says = f"the template {'opens a block in the prompt' if fields['opened'] else THINKING[fields['by']]}"
    if fields["switch"]:
        default = {True: "on", False: "off", None: "unsaid"}[fields["default"]]
        return f"{says}, switched by {fields['switch']}, by default {default}"
    if fields["alike"]:
        return f"{says}, in a block of its own"
    if fields["idle"]:
        return f"{says}, but neither opens one nor switches it: nothing shows that this model thinks"
    return says


def _ends(fields: Mapping[str, Any]) -> str:
    says = "the tokenizer's eos_token"
    if fields["file"] is not None:
        says = f"eos_token_id in {fields['file']} and {says}"
    return f"{says}, and the template's end of turn" if fields["template"] else says


def _repository(fields: Mapping[str, Any]) -> str:
    """Return a repository with the method and the bits of its weights."""
    bits = "" if fields["bits"] is None else f", {fields['bits']} bits"
    return f"{fields['name']} ({fields['method']}{bits})"


def _end_of_turn(fields: Mapping[str, Any]) -> str:
    how = "ends an answer with" if fields["ends"] else "goes straight on with"
    listed = ", ".join(fields["listed"]) or "none is listed"
    return f"the template {how} {' and '.join(fields['words'])}, which no list of end tokens has ({listed})"


def _by_itself(what: str) -> Text:
    return lambda fields: (
        f"{fields['engine']} has {what} {'on' if fields['on'] else 'off'} by itself for {WAYS[fields['way']]}"
    )


def _scheme(fields: Mapping[str, Any]) -> str:
    weights = f"weights of {fields['bits']} bits" if fields["bits"] else "weights of mixed precision"
    groups = f" in groups of {fields['group']}" if fields["group"] else ""
    return f"{weights}{groups}, by {fields['file']}"


def _card(fields: Mapping[str, Any]) -> str:
    least = "" if fields["least"] is None else f" of compute capability {fields['least']:.1f} or more"
    return f"it needs an NVIDIA card{least}"


_UNSEEN = "whether its weights still hold them was not seen (no {file} was read)"
_ALLOWED = "the document's trust_remote_code: true allows it, after a look at the files"

TEXTS: dict[str, dict[str, Text]] = {
    "Severity": {"warning": "warning: {reason}"},
    "GatherReason": {"renamed": "{reason}, which is {parser} on {engine}"},
    "ClaimReason": {
        "tool-parser-type": "the repository's {file} says {quote}",
        "response-template": "the repository's {file} has a response_template with {field}",
    },
    "GenerationReason": {
        "value": "the vendor's {file} says {quote}",
        "unusable": "the vendor's {file} says {quote}, which is no value that an engine takes",
        "implied": "the vendor's {file} says {quote} and no temperature, which is 1 in transformers",
        "new-tokens": "the vendor's {file} says {quote} (new tokens), "
        "a limit for transformers' own generate()",
        "all-tokens": "the vendor's {file} says {quote} (tokens of prompt and answer together), "
        "a limit for transformers' own generate()",
        "not-done": "the vendor's {file} says {quote}, which no engine here does",
    },
    "FormReason": {
        "only-own-tokenizer": "its only tokenizer is Mistral's own",
        "both-tokenizers": "it has both tokenizers, and the chat template goes with this one",
        "no-config": "it has params.json and no config.json",
        "no-other-weights": "it has params.json and no other weights",
        "only-own-weights": "its only weights are Mistral's own (consolidated)",
        "both-forms": "it has Mistral's own form too, which versions of vLLM would take by themselves",
        "both-weights": "it has Mistral's own form too, which versions of vLLM would take by themselves; "
        "only these are downloaded",
    },
    "CacheReason": {
        "scales-to-set": "the checkpoint has scales for a KV cache in {cache}, which {engine} must be told",
        "scales-taken": "the checkpoint has scales for a KV cache in {cache}, which {engine} takes by itself",
        "prefix-caching": _by_itself("prefix caching"),
        "chunked-prefill": _by_itself("chunked prefill"),
        "latent-attention": "on processors without AMX it is off for models with multi-head latent attention "
        "(kv_lora_rank)",
    },
    "KinReason": {
        "named": "config.json says model_type: {model_type}, for which the parser {parser} is named",
        "like": "the parser {parser} has the name of {name}, with its version or an earlier one",
    },
    "ShownReason": {
        "no-template": "the repository has no chat template that could be read",
        "made-for": "the chat template {convention} of ours writes calls for {parser}",
        "no-calls": _no_calls,
        "unknown-calls": "the template renders tool calls in a format that is not known by its markers",
        "calls": "the template writes tool calls in the format {format}",
        "no-reasoning": "the template renders no reasoning",
        "not-rendered": lambda fields: (
            f"the template could not be rendered: {fields['problem'] or 'unknown'}"
        ),
        "thinks": _thinks,
        "switches": "the template has a switch for reasoning, {switch}, and renders none",
    },
    "ModelNameReason": {
        "family": lambda fields: f"{_whose(fields['base'])} belongs to the family {fields['family']}",
        "parser": _parser,
        "sampling": _row,
        "model-type": "config.json says {quote}, which is {family}",
    },
    "DraftReason": {
        "not-of-this-type": "config.json says {quote}, and {engine} does not draft with this model type's "
        "own heads",
        "not-on-processors": "config.json says {quote}, and {engine} does not draft on processors",
        "not-held": "config.json says {quote}, but {how}, so nothing is drafted",
        "offered": "off: config.json says {quote}, and {how}. {offer} drafts a token a step, for faster single "
        "answers; vLLM then refuses every request with min_p or logit_bias",
        "file-holds": "the weights hold them ({file})",
        "tensor-holds": "the weights hold them ({tensor})",
        "no-tensor": "none of the {count} tensors in {file} is of such heads",
        "made-from": "it was made from {base}, and " + _UNSEEN,
        "quantised-later": "it was quantised after its training ({method}), and " + _UNSEEN,
        "as-trained": "nothing shows that its weights were made again without them",
    },
    "InputReason": {
        "key": "{file} has {key}",
        "file": "it has {file}",
        "takes": "it takes {names} beside text: {shown:;}",
        "limited": "a chat sends its images again with every turn; {engine} would take {usual} of each",
    },
    "TokenNumberReason": {
        "beyond": "the embedding has {rows} rows, and none for {tokens:and}: a message with it may end the engine",
        "beyond-config": "config.json names {rows} tokens, and {tokens:and} lies beyond: its weights may have no row",
    },
    "StopReason": {"listed": _ends, "end-of-turn": _end_of_turn, "unnamed": "token {id}"},
    "NotChat": {kind: KINDS[kind] for kind in NOT_CHAT},
    "KindRemedy": {
        "drafted": "Import the model that it drafts for.",
        "adapted": "Import {repo}, its base model, and serve both: vLLM takes --enable-lora and --lora-modules"
        " NAME=PATH, with the path of this adapter.",
        "adapted-unnamed": "Import its base model, and serve both: vLLM takes --enable-lora and --lora-modules"
        " NAME=PATH, with the path of this adapter.",
        "image-engine": "Serve it with vLLM-Omni, or with diffusers, also behind LocalAI.",
        "speech-engine": "Serve it with vLLM-Omni, mlx-audio or transformers, also behind LocalAI.",
        "transformers": "Serve it with transformers, also behind LocalAI.",
        "ctranslate2": "Serve it with CTranslate2 or, for Whisper, faster-whisper; or import the repository with the"
        " original weights.",
        "own-library": "Serve it with the library that wrote its files, or import the repository with the original"
        " config.json.",
        "library": "Serve it with {library}, the library that its page on the Hub names.",
        "no-mlx": "Import the repository with the original weights for vLLM; mlx-embeddings and mlx-audio serve"
        " MLX weights.",
        "made-from": "Serve the GGUF files with llama.cpp, or import {repo}, which they were made from.",
        "original": "Serve the GGUF files with llama.cpp, or import the repository with the original safetensors"
        " weights; the card does not name it.",
    },
    "UnservedReason": {
        "encoder-decoder": "{name} has an encoder and a decoder, and {engine} wraps decoders alone",
        "no-head": "{name} has no head for text, and {engine} does not know it",
        "adapts": "it has {file} and no weights of a model",
        "names-nothing": "{file} names no model type and no architecture",
    },
    "KindReason": {
        "architecture": _of_kind("the architecture {name} is that of {of}"),
        "key": "config.json has {key}",
        "file": _of_kind("it has {file}, as {of} has"),
        "name-says-kind": _of_kind("its name says that it is {of}"),
        "tag": "the Hub's {field} says {tag}",
        "template": "it has a chat template in {where}",
        "model-type": "config.json says {quote}, which is {family}",
        "conversational": "the Hub's tags say conversational",
        "name-has-word": "its name says {word}",
        "family": "its name belongs to the family {family}",
        "no-template": "it has a {file} and no chat template anywhere",
        "nothing-else": "nothing says that it is anything but a chat model",
        "one-score": "{name} with one label and a chat template ranks texts, or scores answers as a reward model;"
        " nothing says which",
        "only-gguf": "its only weights are GGUF files",
    },
    "TaskReason": {
        "pools": _of_kind("{of} returns no text, so vLLM pools"),
        "converted": "vLLM converts {name} with {convert}",
        "outputs": "{file} describes what a request returns",
        "no-head": "{name} has no trained layer for scores: vLLM needs the tokens of its answers in hf_overrides",
        "yes-or-no": "a reranker of {name} answers yes or no, and vLLM makes a score of the two tokens",
        "served-by": _of_kind("of the engines here vLLM alone serves {of}"),
    },
    "LengthReason": {
        "named": "{file} says {quote}",
        "by-class": "{file} names no {key}; {model_type} has {tokens} by default",
        "assumed": "{file} names no length, and {engine} then assumes {tokens}",
        "in-it-already": "rope scaling {rope} with factor {factor:g} is in this length already",
        "multiplied": "rope scaling {rope} multiplies {tokens} by {factor:g}",
        "longrope": "with longrope up to {tokens} can be asked for, at some cost to short prompts",
        "original": "{key}: {tokens}",
        "window": "layers with a sliding window look back {tokens} tokens only (sliding_window)",
        "stretchable": "the card tells how YaRN stretches it to {tokens}, at a cost to short prompts; "
        "it stays off",
        "tokenizer": "{file} says model_max_length: {tokens}, which engines do not heed when they generate",
        "after-padding": "of {rows} positions the first {first} belong to padding, so a text has the others",
    },
    "SisterReason": {
        "named": "the card names {names:and}",
        "listed": "the Hub lists {names:and} as quantised from it; not checked",
        "not-listed": "its quantised repositories are unknown: {problem}",
        "repository": _repository,
    },
    "CardReason": {
        "header": "the card's header says {quote}",
        "recommends": _recommended("the card recommends"),
        "example": _recommended("the card's example has"),
        "unclear": _unclear("the card recommends"),
        "unclear-example": _unclear("the card's example has"),
    },
    "CodeReason": {
        "named": "code of the repository is named in {places:and} for {parts}",
        "unlisted": "the repository does not list {files}",
        "elsewhere": "code of other repositories is named, which no commit pins: {repos}",
        "needed": "{engine} will not start without this code: " + _ALLOWED,
        "own-type": "{engine} has the model type {model_type} itself, so the code is not needed for it",
        "not-known": "whether {engine} starts without this code is not known; the document's "
        "trust_remote_code: true allows it",
        "lacking": lambda fields: (
            f"{fields['engine']} has no {' and no '.join(fields['parts'])} of its own; "
            f"it will not start without this code: {_ALLOWED}"
        ),
        "not-needed": "{engine} has all of it itself, so the code is not needed and not run",
        "configuration": "configuration for {model_type}",
        "model": "model for it",
        "tokenizer": "tokenizer for it",
    },
    "QuantReason": {"method": "{file} says {quote}", "scheme": _scheme},
    "LoadReason": {
        "together": "{reasons:;}",
        "deprecated": "{engine} refuses {method}, which it means to drop, unless it is told to allow it",
        "removed": "{engine} does not serve {architecture} any more; {last} was the last that did",
        "not-its-own": "{engine} has no {architecture} of its own; it would try transformers' code for it",
        "no-code": "{engine} has neither {architecture} nor the model type {model_type}, and the repository has"
        " no code for them; a newer version may",
        "no-model-type": "{engine} has no model type {model_type}",
        "mlx-weights": "{engine} does not read weights in MLX's own quantisation",
        "no-method": "{engine} has no quantisation method {method}",
        "refused": "{engine} refuses {quantisation}: {words}",
        "not-named": "{engine} takes the weights for whole: nothing in the files names modelopt where it is "
        "looked for",
        "not-tried": "whether {engine} runs {quantisation} on processors was not tried; it detects the "
        "method by itself",
        "trial-failed": "{engine} does not run {quantisation} on processors: a trial ended with “{words}”; "
        "{needs}",
        "on-processors": "{engine} loads {quantisation} on processors and detects it by itself",
        "too-old-a-card": "{engine} needs compute capability {least:.1f} or more for {quantisation}; "
        "{device} has {capability:.1f}",
        "detected": "{engine} detects it by itself; {needs}",
        "needs-card": _card,
        "mlx-reads": "weights in MLX's own quantisation, which {engine} reads",
        "does-not-read": "{engine} does not read {quantisation}",
        "not-the-format": "{engine} does not read compressed-tensors in the format {format}",
        "nvfp4-only": "{engine} reads ModelOpt's NVFP4 alone, not {scheme}",
        "converted": "{engine} turns {quantisation} into its own quantisation while it loads",
        "made-whole": "{engine} turns {quantisation} of {model_type} into whole weights while it loads",
        "fp8-not-known": "{engine} reads FP8 weights of some model types; {model_type} is not known to be "
        "one",
    },
    "TemplateFault": {
        "entry": "{file} has a list of chat templates with an entry that lacks its name or its template;"
        " no engine loads this tokenizer",
        "not-text": "the chat template in {file} is not text; engines refuse every conversation",
        "empty": "the chat template in {file} is empty, and engines use it in place of any other",
    },
    "BackendReason": {
        "mlx-weights": "the weights are in MLX's own quantisation ({quote})",
        "mlx-origin": "the repository is made for MLX ({quote})",
        "mlx-is-native": "MLX is native to Apple machines",
        "vllm-serves": "vLLM serves on CPU and CUDA machines",
        "other-could": "{engine} could load it there",
        "other-can": "{refusal}; {engine} can load it",
    },
}
