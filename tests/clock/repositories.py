"""Readers of what a repository holds: its card, its settings, its tokens, its file list, its template."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from importer.app.decide import fit
from importer.chat_template import find, learnt_format, markers, reasoning
from importer.chat_template.find import Template
from importer.chat_template.markers import Marks
from importer.chat_template.samples import Sample
from importer.chat_template.vocabulary import Token, Vocabulary, read_vocabulary
from importer.decisions.decision import Target
from importer.engines import registries
from importer.hub import content, endpoint, listing, reference, safetensors
from importer.hub.content import weight_files
from importer.hub.snapshot import RepoFile, Snapshot, parse_object
from importer.memory import devices, quantised, weights
from importer.memory.engine_keys import FitRequest
from importer.proof.result import own_renderer
from importer.proof.tokens import tokens_of
from importer.signals import (
    begin_token,
    card,
    code,
    comparison,
    context,
    control_tokens,
    declared_parsers,
    family,
    mistral_files,
    modalities,
    name,
    quantisation,
    quantised_variants,
    sampling,
    speculation,
    tasks,
    template_markers,
)
from importer.signals.card import blocks
from importer.signals.description import description
from importer.signals.engine_capabilities import Machine
from importer.signals.kind import find_kind
from importer.signals.name_likeness import closest


def pieces(text: str, each: int = 8) -> list[str]:
    """The text in many pieces, no two alike."""
    return [f"{text[i : i + each]}{i}" for i in range(0, len(text), each)]


def snapshot(**texts: Any) -> Snapshot:
    """A repository that holds these files: ``config_json={…}``."""
    named = {
        k.replace("__", "/").replace("_json", ".json").replace("_md", ".md"): v for k, v in texts.items()
    }
    files = {k: v if isinstance(v, str) else json.dumps(v) for k, v in named.items()}
    return Snapshot("a/b", "a/b", "0" * 40, tuple(RepoFile(p, 1) for p in files), files)


def listed(text: str) -> Snapshot:
    """A repository with as many files as the text has pieces, under the endings that readers look at."""
    ends = (".safetensors", ".py", ".json", ".gguf", "", "-00001-of-00002.safetensors")
    files = [RepoFile(piece + ends[i % len(ends)], 1) for i, piece in enumerate(pieces(text))]
    return Snapshot("a/b", "a/b", "0" * 40, (*files, RepoFile("config.json", 1)), {"config.json": '{"a": 1}'})


def config(text: str) -> Snapshot:
    """A repository whose settings hold the text wherever a text may stand, and pieces of it as keys and in lists."""
    parts = pieces(text)
    data: dict[str, Any] = dict.fromkeys(parts, 1) | {
        "model_type": text, "architectures": [text, *parts], "_name_or_path": text, "model_file": text,
        "auto_map": {"AutoConfig": text, **dict(zip(parts, parts, strict=True))},
        "quantization_config": {"quant_method": text, "bits": 4, "ignore": parts, "config_groups": {key: {} for key in parts}},
        "max_position_embeddings": 4096, "num_nextn_predict_layers": 1, "rope_scaling": {"type": text, **{key: {"type": key} for key in parts}},
    }  # fmt: skip
    index = {"weight_map": dict(zip(parts, parts, strict=True))}
    return snapshot(config_json=data, tokenizer_config_json=data, model_safetensors_index_json=index)


def tokenizer(text: str) -> Snapshot:
    """A repository that declares as many tokens as the text has pieces, in every list that there is."""
    parts = pieces(text)
    added = {str(i): {"content": p, "special": i % 2 == 0} for i, p in enumerate(parts)}
    data = {"added_tokens_decoder": added, "additional_special_tokens": parts, "eos_token": text}
    return snapshot(
        tokenizer_config_json=data,
        added_tokens_json={p: i for i, p in enumerate(parts)},
        generation_config_json={"eos_token_id": [*range(len(parts))]},
    )


def evidence(one: Snapshot) -> None:
    """All that looks at files and settings."""
    able, machine = registries.load_capabilities("vllm"), Machine("cpu")
    find_kind(one, able=able)
    family.evidence(one)
    quantisation.evidence(one)
    for module in (context, modalities, code):
        module.evidence(one, able)
    mistral_files.evidence(one, able)
    comparison.evidence(one, "mlx")
    speculation.evidence(one, able, machine)
    declared_parsers.model_type_match(
        one, "vllm", {"tool_parser": {"a": "A"}, "reasoning_parser": {"a": "A"}}, calls=True, thinks=True
    )
    declared_parsers.declared_parsers(one, "vllm")
    weights.files(one)
    weight_files(one.files)
    content.choose_files(one.files, "a/b")


def called(text: str) -> Sample:
    """A call whose text a template wrote."""
    return Sample("one-call", "", f"{text} get_weather city Paris {text}")


def marked(text: str) -> None:
    """Boundaries in a text, and what two texts share, with tokens that the text is made of."""
    half = len(text) // 2
    found = Marks([*pieces(text[: half // 4]), text[:40], text[:3]])
    for at in range(0, len(text), max(1, len(text) // 8)):
        found.boundary(text, at)
    found.prefix(text, text[:half] + "x" + text[half:])
    found.suffix(text, text[half:] + "x" + text[half:])
    found.suffix(text, text)


def declared(text: str) -> Marks:
    """Markers out of as many tokens as the text has pieces, asked at many places of another text."""
    found = Marks(pieces(text))
    other = "<a> b " * 60
    for at in range(0, len(other), 8):
        found.boundary(other, at)
    return found


def thought(text: str) -> None:
    """What thinking, its markers and its ends look like."""
    for marker in dict.fromkeys(markers.THINK.findall(text)):
        markers.mirror.__wrapped__(marker)
    markers.SHAPE.findall(text)
    markers.ENDS.search(text)
    markers.last_marker(text)
    markers.first_marker(text)
    reasoning.PART.search(text)
    reasoning.is_closed(text, ("<think>", "</think>"))
    reasoning.is_open(text, (text[:9], text[9:20]))


def template(text: str) -> None:
    """A repository's templates, many of them."""
    several = [{"name": piece, "template": piece} for piece in pieces(text)]
    one = snapshot(tokenizer_config_json={"chat_template": several})
    found = find.find(one)
    assert found is not None
    find.others(one, found)


def advised(text: str) -> None:
    """A sentence of a card, under every question that is asked of it."""
    card.read_advice(text)
    card.mode_of(text)
    card.scope_of(text)
    list(card.advised_values(text))
    list(card.sentences(text))
    card.quoted(text)


def header(text: str) -> Any:
    """A safetensors header with as many tensors as the text has pieces."""
    names_ = pieces(text)
    body = {n: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, n in enumerate(names_)}
    return json.dumps(body).encode()


def hub_answer(text: str) -> bytes:
    """The Hub's answer with as many files, tags and types of weights as the text has pieces."""
    parts = pieces(text)
    siblings = [{"rfilename": p, "size": 1} for p in parts]
    card = {"base_model": parts, "license": text[:40]}
    answer = {"id": "a/b", "sha": "0" * 40, "siblings": siblings, "tags": parts, "cardData": card}
    answer["safetensors"] = {"parameters": dict.fromkeys(parts, 1)}
    return json.dumps(answer).encode()


def quantised_names(text: str) -> Any:
    """The lists of modules in a quantised checkpoint's settings."""
    block = {
        "quant_method": "fp8", "ignore": pieces(text), "bits": 4,
        **{key: {"bits": 4} for key in pieces(text)},
    }  # fmt: skip
    return {"quantization_config": block}


def sizes(text: str) -> Snapshot:
    """A repository whose shape is told in as many words as the text has pieces, and whose weights are, too."""
    parts = pieces(text)
    config = {
        "model_type": "llama", "num_hidden_layers": 500, "hidden_size": 64, "vocab_size": 64,
        "max_position_embeddings": 4096, "architectures": parts, "num_attention_heads": [*range(len(parts))],
        "layer_types": parts, "mlp_layer_types": parts, "moe_layers": [*range(len(parts))], "num_experts": 8,
        "block_configs": [{"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 2.5}} for _ in parts],
        "cross_attention_layers": [10**400 for _ in parts], "num_nextn_predict_layers": 500,
        "quantization_config": {"quant_method": "fp8", "ignore": parts, "weight_block_size": [128 for _ in parts]},
        "vision_config": {"depth": 9, "hidden_size": 9, "deepstack_visual_indexes": [*range(len(parts))]},
    }  # fmt: skip
    index = {"metadata": {"total_size": 9}, "weight_map": dict.fromkeys(parts, "model.safetensors")}
    one = snapshot(config_json=config, tokenizer_config_json={"a": parts}, model_safetensors_index_json=index)
    return replace(one, info={"safetensors": dict.fromkeys(parts, 1), "config": config})


def indexed(text: str) -> Snapshot:
    """Weights whose index names as many tensors and files as the text has pieces, beside a config with towers."""
    parts = pieces(text)
    index = {"weight_map": {part: f"{part}.safetensors" for part in parts}}
    one = snapshot(
        config_json=BASE | {"vision_config": {text: 1}, text: 1}, model_safetensors_index_json=index
    )
    files = (*one.files, *(RepoFile(f"{part}.safetensors", 130) for part in parts[1:]))
    return replace(one, files=files, model_id=f"a/{text}", tensors=tuple(parts[:-1]))


def returned(text: str) -> None:
    """The modules of a sentence transformer, with a text for each of their words."""
    layer = {"type": f"a.{text}", "path": text}
    able = registries.load_capabilities("vllm")
    for modules in (text, [layer] * 40):
        tasks.task_evidence(
            snapshot(modules_json=modules, config_json={"id2label": {text: text}}), "embedding", able
        )


def edges(text: str) -> None:
    """The beginning and the end of a tokenizer's file."""
    for tail in (f'"special_tokens": [{text}', f'"post_processor": {{{text}'):
        control_tokens.read(tail.encode())
        begin_token.added(tail.encode(), "<s>")


def fitted(one: Snapshot) -> None:
    """What the importer reads outside the sandbox: what fits on a device, who renders, which tokens there are."""
    for backend, device in (("vllm", "8xh100-80g"), ("mlx", "m3-max-64g")):
        wanted = FitRequest({"max_model_len": 4096})
        fit(one, device, None, backend, wanted, exact=False, offline=True, progress=len)
    own_renderer(one, (), Target("vllm", None))
    tokens_of(one, Template("a", "b"), Vocabulary(tuple(Token(p, False) for p in one.info["safetensors"])))


def as_is(text: str) -> str:
    """The text itself."""
    return text


READERS = (
    ("markdown.blocks", lambda t: list(blocks(t)), "signals.card", 20_000, as_is),
    ("card", lambda t: card.evidence(snapshot(README_md=t)), "signals.card", 6_000, as_is),
    ("description", lambda t: description(snapshot(README_md=t)), "signals.description", 20_000, as_is),
    ("sisters", lambda t: quantised_variants.evidence(snapshot(README_md=t)), "signals.quantised_variants", 20_000, as_is),
    ("what a model returns", returned, "signals.tasks signals.sentences signals.architecture", 6_000, as_is),
    ("a tokenizer's edges", edges, "signals.begin_token signals.control_tokens", 20_000, as_is),
    ("card under a heading", lambda t: card.evidence(snapshot(README_md=f"# A\n## Best practices\n{t}")),
     "signals.card", 6_000, as_is),
    ("card, said of temperature", lambda t: card.evidence(snapshot(README_md=f"# A\n## Tips\n{t} temperature=1 {t}")),
     "signals.card", 1_500, as_is),
    ("advice", advised, "signals.card", 4_000, lambda t: t[:4_000] * (len(t) // 4_000 or 1)),
    ("name", name.normalise.__wrapped__, "signals.name", 10_000, as_is),
    ("a name in the tables", lambda t: family.match_names([t]), "signals.name signals.tables", 2_000, as_is),
    ("settings", evidence, "signals.code signals.kind signals.architecture signals.declared_parsers signals.modalities signals.quantisation",
     1_500, config),
    ("files", evidence, "signals.loading signals.mistral_files signals.speculation signals.comparison hub.content memory.weights hub.content signals.kind signals.architecture",
     4_000, listed),
    ("tensors of an index", evidence, "signals.comparison", 4_000, indexed),
    ("context of a card", lambda t: context.evidence(snapshot(config_json={"n_positions": 9}, README_md=t),
     registries.load_capabilities("vllm")), "signals.context", 10_000, as_is),
    ("vocabulary", read_vocabulary, "chat_template.vocabulary", 6_000, tokenizer),
    ("stops", lambda s: sampling.stop_word_evidence(s, None), "chat_template.vocabulary", 6_000, tokenizer),
    ("markers", marked, "chat_template.markers", 2_000, as_is),
    ("markers out of many tokens", declared, "chat_template.markers", 800, as_is),
    ("thinking", thought, "chat_template.markers chat_template.reasoning chat_template.tool_calls chat_template.probe", 10_000, as_is),
    ("templates", template, "chat_template.find", 3_000, as_is),
    ("formats", lambda t: (learnt_format.learn_format([called(t)]), learnt_format.unmarked(called(t))),
     "chat_template.learnt_format", 10_000, as_is),
    ("markers of parsers", lambda t: (template_markers.fitting("vllm", "tool", [t[:99]], t),
     [*template_markers.markers_in(t, "vllm", "tool")]), "", 20_000, as_is),
    ("likeness of names", lambda t: closest(t, {"qwen3": "A", "hy_v3": "B"}), "signals.name_likeness", 2_000,
     as_is),
    ("a file of JSON", lambda t: parse_object(t, "f", "a/b"), "hub.snapshot", 20_000, as_is),
    ("reference", reference.parse, "hub.reference", 2_000, as_is),
    ("revision", lambda t: reference.parse("a/b", t), "hub.reference", 2_000, as_is),
    ("address", lambda t: (endpoint.plain(t), endpoint.redirected("https://a/b", t)), "hub.endpoint", 10_000, as_is),
    ("safetensors", lambda b: safetensors.parse(b, None), "hub.safetensors hub.tensor_headers", 6_000, header),
    ("safetensors, any bytes", lambda t: safetensors.parse(t.encode("utf-8", "replace"), None), "hub.safetensors",
     20_000, as_is),
    ("the Hub's answer", lambda b: listing.parse(b, "a/b", None), "hub.listing", 6_000, hub_answer),
    ("quantised modules", lambda c: quantised.scheme(c, {}, {}, 9), "memory.quantised memory.parameters", 4_000, quantised_names),
    ("fit", fitted, "memory.layers memory.shape memory.case", 20_000, sizes),
    ("device", devices.named, "memory.devices", 10_000, as_is),
    ("memory", devices.size, "memory.devices", 10_000, as_is),
)  # fmt: skip


BASE = {
    "model_type": "llama", "num_hidden_layers": 500, "hidden_size": 64, "vocab_size": 64,
    "num_attention_heads": 8, "max_position_embeddings": 4096,
}  # fmt: skip
# Settings as long as they are read, each with most of its length under one key.
LONGEST: dict[str, Callable[[], Any]] = {
    "layer_types": lambda: ["a"] * 400_000,
    "block_configs": lambda: [{}] * 500_000,
    "num_attention_heads": lambda: [10**400] * 5_000,
    "quantization_config": lambda: {
        "quant_method": "compressed-tensors",
        "config_groups": {str(i): {"weights": {"num_bits": 4}} for i in range(60_000)},
    },
    "hybrid_override_pattern": lambda: "M" * 2_000_000,
    "weight_map": lambda: {f"t{i}": "a.safetensors" for i in range(60_000)},
}


def at_limit(key: str) -> Snapshot:
    """A repository whose settings are that long, and of which the Hub tells as much."""
    index = {"weight_map": LONGEST["weight_map"]()}
    one = snapshot(config_json=BASE | {key: LONGEST[key]()}, model_safetensors_index_json=index)
    return replace(one, info={"safetensors": {f"t{i}": 1 for i in range(900_000)}})
