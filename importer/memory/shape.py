"""The shape of a model from ``config.json``: the caches and the parameters of each layer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache

from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.memory import experts, layers, parameters
from importer.memory.attention import attention, state
from importer.memory.config_keys import HIDDEN, LAYERS, MOST_LAYERS, VOCABULARY, Keys, whole
from importer.memory.estimate_types import Unknown, UnknownReason
from importer.memory.layers import Attention, Cache, Cross, Kind, Latent, Layer, Part, Pictures, State
from importer.memory.quantised import Scheme, scheme
from importer.reasons import Reason, ReasonKind
from importer.signals.architecture import text_config
from importer.signals.comparison import held_config
from importer.signals.quantisation import MODELOPT_FILE, own_file, own_object
from importer.signals.quantisation import read as read_quantised

DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2}
KV_FORMATS = {"fp8", "nvfp4"}
CONTEXT = ("max_position_embeddings", "max_sequence_length", "seq_length", "n_positions", "model_max_length")


class ShapeField(ReasonKind):
    """Required fields of a language model's config."""

    LAYERS = "the number of layers"
    HIDDEN = "the hidden size"
    VOCABULARY = "the vocabulary's size"


@frozen
class Shape:
    """The language model, its towers and its drafting layers.

    ``around``   parameters before and after the layers; ``tower`` of vision and sound;
    ``pictures`` what the encoder of pictures holds while it runs.
    ``drafts``   of the layers for multi-token prediction, loaded only for speculation.
    ``unseen``   whether there is a tower that the keys do not describe.
    ``experts``  number of experts that a token visits, ``expert_width`` their width.
    ``scheme``   of quantisation, ``kv_dtype`` the checkpoint's dtype of keys and values.
    ``layers``   the caches of each layer; empty where it shares another layer's or has none.
    ``caches``   the number of each; ``parts`` the same for all parameters that an engine loads by default.
    """

    blocks: tuple[Layer, ...]
    around: tuple[Part, ...]
    hidden: int
    vocabulary: int
    heads: int
    context: int | None
    dtype: str | None
    tower: tuple[Part, ...] = ()
    pictures: Pictures | None = None
    drafts: tuple[Part, ...] = ()
    unseen: bool = False
    experts: int = 0
    expert_width: int = 0
    model_type: str = ""
    kv_dtype: str | None = None
    scheme: Scheme | None = None
    layers: tuple[tuple[Cache, ...], ...] = field(default=(), init=False, repr=False, compare=False)
    caches: Counter[Cache] = field(default_factory=Counter, init=False, repr=False, compare=False)
    parts: Counter[Part] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Count caches and parameters once: a plan asks for them thousands of times."""
        object.__setattr__(self, "layers", tuple(block.caches for block in self.blocks))
        self.caches.update(c for layer in self.layers for c in layer)
        self.parts.update((*self.around, *self.tower, *(p for block in self.blocks for p in block.parts)))

    def __hash__(self) -> int:
        """Return a hash without the layers, cheap for memos."""
        return hash((self.model_type, self.hidden, self.vocabulary, self.context, len(self.blocks)))

    def kinds(self) -> dict[str, int]:
        """Return the number of caches of each kind, see ``kind_of``."""
        kinds: Counter[str] = Counter()
        for cache, number in self.caches.items():
            kinds[kind_of(cache)] += number
        return dict(kinds)

    @property
    def drafting(self) -> tuple[Cache, ...]:
        """Return the caches of the drafting layers: each has those of the last layer with attention."""
        attends = [x for x in self.layers if any(not isinstance(c, State) for c in x)]
        last = [c for c in attends[-1] if not isinstance(c, State)] if attends else []
        return tuple(last * len(self.drafts))


def kind_of(cache: Cache) -> str:
    """Return the name of a cache's kind: ``full``, ``window``, ``latent``, ``cross``, a state's …"""
    if isinstance(cache, Attention):
        return "window" if cache.window else "chunk" if cache.chunk else "full"
    if isinstance(cache, State):
        return cache.kind
    if isinstance(cache, Latent):
        return "latent window" if cache.window else "latent"
    return "cross" if isinstance(cache, Cross) else "indexer"


def read(snapshot: Snapshot) -> Shape | Unknown:
    """Return the shape that ``config.json`` describes, or the reason why it is unknown."""
    config = held_config(snapshot)
    if not config:
        return Unknown(Reason(UnknownReason.CONFIG, label=snapshot.label))
    quantised = read_quantised(snapshot)
    if quantised is not None and quantised.beside:
        config = {**config, "quantization_config": own_file(snapshot)[1]}
    return describe(config, own_object(snapshot, MODELOPT_FILE))


def describe(config: Mapping[str, object], modelopt: Mapping[str, object] | None = None) -> Shape | Unknown:
    """Return the shape from a config and ModelOpt's file."""
    return _described(json.dumps([config, modelopt or None]))


@lru_cache(maxsize=128)  # an import reads a shape three times
def _described(files: str) -> Shape | Unknown:
    config, modelopt = json.loads(files)
    text = text_config(config)
    keys = Keys.of(text)
    number = keys.count(*LAYERS) or layers.length(keys)
    hidden, vocabulary = keys.count(*HIDDEN), keys.count(*VOCABULARY) or Keys.of(config).count(*VOCABULARY)
    sought = {ShapeField.LAYERS: number, ShapeField.HIDDEN: hidden, ShapeField.VOCABULARY: vocabulary}
    for name, value in sought.items():
        if not value:
            return Unknown(Reason(UnknownReason.SHAPE_FIELD, field=Reason(name)))
    if number is None or hidden is None or vocabulary is None or number > MOST_LAYERS:
        return Unknown(Reason(UnknownReason.TOO_MANY_LAYERS, number=number, most=MOST_LAYERS))
    blocks = tuple(_layer(keys, i, kind, hidden) for i, kind in enumerate(layers.kinds(keys, number)))
    tower = parameters.parts(config, hidden)
    shape = Shape(
        blocks=blocks,
        around=parameters.around(keys, hidden, vocabulary, number, _tied(config, keys)),
        hidden=hidden,
        vocabulary=vocabulary,
        heads=parameters.head_count(keys),
        context=_context(config, keys),
        dtype=_dtype(config, keys),
        tower=tower,
        pictures=parameters.pictures(config),
        unseen=not tower and parameters.hinted(config),
        experts=experts.chosen(keys) if experts.count(keys) > 1 else 0,
        expert_width=experts.expert_width(keys) if experts.count(keys) > 1 else 0,
        model_type=keys.word("model_type"),
        scheme=scheme(config, text, modelopt or {}, number),
        kv_dtype=_kv_dtype((config.get("quantization_config"), keys.get("quantization_config"), modelopt)),
    )
    return replace(shape, drafts=_drafts(keys, shape))


def _layer(keys: Keys, number: int, kind: Kind, hidden: int) -> Layer:
    caches: tuple[Cache, ...] = ()
    if kind in {"state", "both"}:
        recurrence = state(keys, hidden)
        caches = (recurrence,) if recurrence else ()
    if kind not in {"state", "none"}:
        caches += attention(keys, number, "full" if kind == "both" else kind, hidden)
    parts = parameters.layer_parts(keys, number, kind, caches, hidden)
    return Layer(caches, parts, _active(keys, number, caches, hidden))


def _active(keys: Keys, number: int, caches: tuple[Cache, ...], hidden: int) -> int:
    """Return the values that one token has side by side in the widest step of a layer."""
    widest = [hidden]
    for cache in caches:
        if isinstance(cache, Attention):
            widest.append((2 * cache.heads + 2 * cache.kv_heads) * cache.head_size)
        elif isinstance(cache, Latent):
            widest.append(4 * cache.heads * max(cache.rank // 4, 128))
        elif isinstance(cache, State):
            widest.append(4 * max((t.parts * t.size for t in cache.tensors if not t.recurrent), default=0))
    if not experts.single(keys) and not experts.routed(keys, number):  # see ``rest`` for experts
        widest.append(3 * experts.width(keys, number, hidden))
    return max(widest) + 3 * hidden


def _drafts(keys: Keys, shape: Shape) -> tuple[Part, ...]:
    """Return the drafting layers: each like the last layer, with a projection of two hidden states to one."""
    number = min(parameters.drafts(keys), MOST_LAYERS)
    if not number or not shape.blocks:
        return ()
    last = next((x for x in reversed(shape.blocks) if x.caches), shape.blocks[-1])
    count = sum(p.count for p in last.parts)
    return tuple(Part("draft", count + 2 * shape.hidden**2) for _ in range(number))


def _tied(config: Mapping[str, object], keys: Keys) -> bool:
    """Return whether embedding and head are tied: by the outer config, the inner one, then defaults."""
    declared = (config.get("tie_word_embeddings"), keys.config.get("tie_word_embeddings"))
    defaults = (Keys.of(config).get("tie_word_embeddings"), keys.get("tie_word_embeddings"))
    return next((v for v in (*declared, *defaults) if isinstance(v, bool)), False)


def _context(config: Mapping[str, object], keys: Keys) -> int | None:
    return keys.count(*CONTEXT) or Keys(config, {}).count(*CONTEXT)


def _kv_dtype(blocks: Iterable[object]) -> str | None:
    """Return ``fp8`` or ``nvfp4`` for keys and values that the first block quantises, or ``None``.

    compressed-tensors and ModelOpt write it. vLLM accepts ModelOpt's form only in a block with ModelOpt's
    method or its nested form.
    """
    block = next((b for b in blocks if isinstance(b, Mapping) and b), {})
    inner = block.get("quantization")
    owner = inner if isinstance(inner, Mapping) else block
    scheme = owner.get("kv_cache_scheme") or owner.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping) and scheme.get("type") == "float":
        return {8: "fp8", 4: "nvfp4"}.get(whole(scheme.get("num_bits")) or 0)
    is_modelopt = owner is inner or str(block.get("quant_method", "")).startswith("modelopt")
    return (
        scheme.lower() if is_modelopt and isinstance(scheme, str) and scheme.lower() in KV_FORMATS else None
    )


def _dtype(config: Mapping[str, object], keys: Keys) -> str | None:
    for value in (
        keys.config.get("dtype"),
        keys.config.get("torch_dtype"),
        config.get("dtype"),
        config.get("torch_dtype"),
    ):
        if isinstance(value, str) and value.removeprefix("torch.") in DTYPES:
            return value.removeprefix("torch.")
    return None
