"""Comparison of listing, index, headers, config and tokenizer: the tensors that are there, and what is wrong.

Each reader of one file alone believes it: a config keeps the towers of the model that a conversion left out,
an index keeps shards of another upload. Here the files are held against each other, before any decision.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from importer import backends
from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.content import FOREIGN, PART, TOKENIZERS, is_weights, missing_parts, weight_files
from importer.hub.snapshot import POINTER_SIZES, Snapshot, UnreadReason, parse_object, whole
from importer.reasons import Reason
from importer.signals import quantisation
from importer.signals.architecture import FILE, config_of, text_config
from importer.signals.evidence import Evidence, Rule, Source, warning
from importer.signals.reasons import WeightDoubt, WeightFault

KEY = "weights"
INDEX = "model.safetensors.index.json"
HEADERS = "the weights' headers"
SHOWN = 3  # names of files in a sentence
MOST_LISTED = 20  # names of files in a decision
HEADS = ("mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_modules")
# Names of the tensors and files of heads that draft; other families append layers behind the last.
NAMED = re.compile(r"(?:^|[._/-])(?:mtp|nextn|eh_proj)(?:[._/-]|$)|(?:^|\.)mtp_\w+\.", re.IGNORECASE)
LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,4})\.")
# Steps of a tensor's name, up to the number of its layer, that a language model has.
TEXT = re.compile(
    r"(?:language|lang|text)(?:_model)?|model|llm|transformer|backbone|decoder|gpt_neox|thinker|(?:lm_)?head"
    r"|output|layers|h|blocks?|(?:tok_|word_)?embeddings?|embed(?:_(?:tokens(?:_per_layer)?|in|out))?|wte|wpe"
    r"|(?:final_|embedding_)?norm(?:_f)?|ln_f|final_layernorm|rotary_emb|altup_(?:unembed_)?projections"
    r"|per_layer_(?:projection_norm|model_projection)|mtp\w*|nextn\w*"
)
VALUES = re.compile(r"(?:q?weight|bias|scale|qzeros|g_idx|input_|inv_freq|SCB|absmax|quant_)\w*")
# Words of towers; a step of neither kind may be of either.
TOWERS = {
    "image": re.compile(r"vis|image|img|video|vpm|sam_model|siglip|clip|\bvit", re.IGNORECASE),
    "audio": re.compile(r"audio|sound|speech|whisper|apm\b", re.IGNORECASE),
}
# Keys of a config that describe these towers.
DESCRIBED = {
    "image": re.compile(r"(?:mm_)?(?:vision|visual|image|img|video)(?:_\w+)?|mm_\w+|\w*projector\w*"),
    "audio": re.compile(r"(?:audio|sound|speech)(?:_\w+)?"),
}
PARTS = ("thinker_config", "llm_config", "text_config")
# Values that stand beside packed weights, by the names of MLX, GPTQ, AWQ, compressed-tensors and FP8.
PACKED = re.compile(r"\.(?:scales|biases|qweight|qzeros|weight_packed|weight_scale(?:_inv)?)$")
PACKING = (quantisation.MLX, "awq", "gptq")  # methods whose weights always have some of them
DESCRIBING = {"params.json", "model_index.json", "modules.json"}  # of models in several folders
PICKLE = re.compile(r"(?!model\.bin)[^/]+\.(?:bin|pt|pth)")  # but not CTranslate2's
UNLOADED = (".npz", *FOREIGN)  # safetensors and pickles aside
# What mlx-lm loads, and vllm-mlx with it: each of these files, whatever an index names
# (``mlx_lm.utils.load_model``). vLLM and SGLang load what the index names, or all files without an index
# (``DefaultModelLoader._prepare_weights``); mlx-vlm loads all where no file of the index is there.
GLOB = "model*.safetensors"
NEVER_ASKED = (UnreadReason.NOT_LISTED, UnreadReason.NOT_AMONG, UnreadReason.OFFLINE, UnreadReason.NOT_STORED)
# What is wrong with a copy of the files alone: another copy of the same repository may be whole.
OF_COPIES = frozenset({
    WeightFault.BROKEN, WeightFault.EMPTY, WeightFault.MISSING, WeightFault.PARTS_MISSING, WeightDoubt.STRAY,
})  # fmt: skip


@frozen
class Tensors:
    """Names of the tensors in the weights, and the source: headers, else the index.

    ``whole``  whether the source covers every file of weights.
    """

    names: Collection[str]
    source: str
    whole: bool = True


@frozen
class Finding:
    """A contradiction between the files of a repository: the files, and what is wrong."""

    files: tuple[str, ...]
    reason: Reason

    @property
    def stops(self) -> bool:
        """Return whether the engine does not start with the weights as they are."""
        return isinstance(self.reason.kind, WeightFault)


def tensors(snapshot: Snapshot) -> Tensors | None:
    """Return the tensors by the headers where they were read, else by an index of these files."""
    if snapshot.tensors is not None:
        return Tensors(snapshot.tensors, HEADERS)
    named = indexed(snapshot)
    weights = {f.path for f in weight_files(snapshot.files)}
    if not named or (weights and weights.isdisjoint(named.values())):
        return None
    return Tensors(named.keys(), INDEX, weights <= {*named.values()})


def indexed(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the tensors of the index with their files; empty where it was not read or is malformed."""
    text = snapshot.texts.get(INDEX)
    return {} if text is None else _parsed(text)


@lru_cache(maxsize=8)  # an import asks for them ten times
def _parsed(text: str) -> Mapping[str, str]:
    try:
        mapped = parse_object(text, INDEX, "").get("weight_map")
    except RepositoryError:
        return {}
    found = mapped if isinstance(mapped, Mapping) else {}
    return {name: file for name, file in found.items() if isinstance(file, str) and "/" not in file}


def _unread_index(snapshot: Snapshot) -> Reason | None:
    """Return why the index of the listing tells nothing; ``None`` where it was read or never asked for."""
    text, unknown = snapshot.texts.get(INDEX), snapshot.unknown.get(INDEX)
    if unknown is not None:
        return None if unknown.kind in NEVER_ASKED else unknown
    if text is None or _parsed(text):
        return None
    try:
        parse_object(text, INDEX, "")
    except RepositoryError as error:
        problem = error.details["problem"]
        return problem if isinstance(problem, Reason) else None
    return Reason(UnreadReason.NO_MAP)


def held_config(snapshot: Snapshot) -> Mapping[str, object]:
    """Return ``config.json`` without the towers and drafting layers that no tensor is of."""
    config, gone = config_of(snapshot), absent(snapshot)
    known = tensors(snapshot)
    shapes = [shape for name, shape in DESCRIBED.items() if name in gone]
    headless = known is not None and head_tensor(snapshot) is None
    return config if not (shapes or headless) else _without(config, shapes, headless)


def _without(
    config: Mapping[str, object], shapes: list[re.Pattern[str]], headless: bool
) -> Mapping[str, object]:
    kept = {k: v for k, v in config.items() if not any(shape.fullmatch(k) for shape in shapes)}
    for key, value in kept.items():
        if key in PARTS and isinstance(value, Mapping):
            kept[key] = _without(value, shapes, headless)
    return {k: v for k, v in kept.items() if not (headless and k in HEADS)}


def absent(snapshot: Snapshot) -> frozenset[str]:
    """Return the towers, of ``image`` and ``audio``, that no tensor can be of.

    A tensor under an unknown name may be of either, so that nothing is known to be absent.
    """
    known = tensors(snapshot)
    others = frozenset() if known is None else _others(tuple(known.names))
    if known is None or not known.whole:
        return frozenset()
    if any(not any(shape.search(o) for shape in TOWERS.values()) for o in others):
        return frozenset()
    return frozenset(name for name, shape in TOWERS.items() if not any(shape.search(o) for o in others))


@lru_cache(maxsize=8)
def _others(names: tuple[str, ...]) -> frozenset[str]:
    """Return the beginnings of the tensors' names that are not those of a language model."""
    starts = {_start(name) for name in names if not NAMED.search(name)}
    return frozenset(".".join(steps) for steps in starts if not all(TEXT.fullmatch(step) for step in steps))


def _start(name: str) -> tuple[str, ...]:
    """Return the steps of a name up to the first number, or to what is kept of a layer."""
    steps = name.split(".")
    number = next((i for i, step in enumerate(steps) if step.isdecimal()), None)
    if number is None and VALUES.fullmatch(steps[-1]):
        number = len(steps) - 1
    return tuple(steps[:number])


def head_tensor(snapshot: Snapshot) -> str | None:
    """Return a file or a tensor of heads that draft; ``None`` where neither is known."""
    files = (f.path for f in snapshot.files if f.path.endswith(".safetensors"))
    named, known = next((path for path in files if NAMED.search(path)), None), tensors(snapshot)
    if named is not None or known is None:
        return named
    return _drafting(tuple(known.names), whole(text_config(config_of(snapshot)).get("num_hidden_layers")))


@lru_cache(maxsize=8)
def _drafting(names: tuple[str, ...], layers: int | None) -> str | None:
    """Return a tensor that is named so, or lies behind the last layer: ``model.layers.61.…`` of 61 layers."""
    last = 10_000 if layers is None else layers
    return next(
        (t for t in names if NAMED.search(t) or ((n := LAYER.search(t)) is not None and int(n[1]) >= last)),
        None,
    )


def evidence(snapshot: Snapshot, engine: str) -> list[Evidence]:
    """Return the findings as warnings on one key, whose value names the files."""
    found = [*findings(snapshot, engine)]
    files = list(dict.fromkeys(file for one in found for file in one.files))[:MOST_LISTED]
    return [Evidence(Rule.FILES, KEY, files, Source.LISTING, warning(one.reason)) for one in found]


def findings(snapshot: Snapshot, engine: str) -> Iterator[Finding]:
    """Yield what is wrong with the weights for an engine, the gravest first; nothing without weights.

    A folder may hold nothing but the settings that decisions need.
    """
    yield from _unsound(snapshot)
    for path, problem in quantisation.broken_files(snapshot):
        yield Finding((path,), Reason(WeightDoubt.UNREAD, file=path, problem=problem))
    weights = tuple(f.path for f in weight_files(snapshot.files))
    if weights:
        yield from _incomplete(snapshot, weights, engine)
        if backends.of(engine).globs and not any(fnmatchcase(w, GLOB) for w in weights):
            fields = {"engine": engine, "names": GLOB, "file": weights[0]}
            yield Finding(weights, Reason(WeightFault.OTHER_NAMES, **fields))
        yield from _contradicted(snapshot)
    else:
        yield from _elsewhere(snapshot, engine)


def whole_copy(snapshot: Snapshot) -> bool:
    """Return whether the listed sizes are those of all weights."""
    return not any(one.stops and one.reason.kind in OF_COPIES for one in findings(snapshot, ""))


def _unsound(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield weights and tokenizers that are links without a target, pointers, empty, cut or broken."""
    empty = {f.path for f in snapshot.files if f.size == 0}
    for path, problem in snapshot.broken.items():
        if path not in empty:
            yield Finding((path,), Reason(WeightFault.BROKEN, file=path, problem=problem))
    for file in snapshot.files:
        weights = file.path.endswith(".safetensors") or PICKLE.fullmatch(file.path)
        if file.size is None or "/" in file.path or (file.path in snapshot.broken and file.size):
            continue
        if not (weights or TOKENIZERS.fullmatch(file.path)):
            continue
        if file.size == 0:
            yield Finding((file.path,), Reason(WeightFault.EMPTY, file=file.path))
        elif weights and snapshot.revision and file.size in POINTER_SIZES and len(file.hash or "") != 64:
            reason = Reason(WeightFault.POINTER_SIZE, file=file.path, size=file.size)
            yield Finding((file.path,), reason)


def _incomplete(snapshot: Snapshot, weights: tuple[str, ...], engine: str) -> Iterator[Finding]:
    """Yield weights that index or numbered names require and the listing lacks, and a foreign index."""
    unread = _unread_index(snapshot)
    if unread is not None:
        yield Finding((INDEX,), Reason(WeightDoubt.UNREAD, file=INDEX, problem=unread))
    named = tuple(dict.fromkeys(indexed(snapshot).values()))
    lacking = tuple(sorted({*named} - {*weights}))
    foreign = named and len(lacking) == len(named)
    if foreign:
        kind = WeightFault.FOREIGN_INDEX if backends.of(engine).on_cards else WeightDoubt.FOREIGN_INDEX
        yield Finding((INDEX,), Reason(kind, index=INDEX, file=lacking[0], count=len(named)))
    elif lacking:
        yield _missing(WeightFault.MISSING, lacking, len(named), index=INDEX)
    if foreign or not named:
        parts, count = missing_parts(snapshot.files)
        if parts:
            yield _missing(WeightFault.PARTS_MISSING, parts, count)
        elif len({*map(_set_of, weights)}) > len({PART.sub("", weight) for weight in weights}):
            yield Finding(weights, Reason(WeightDoubt.SETS, files=weights[:SHOWN], count=len(weights)))
    elif backends.of(engine).globs:
        stray = tuple(w for w in weights if w not in named and fnmatchcase(w, GLOB) and not NAMED.search(w))
        if stray:
            fields = {"files": stray[:SHOWN], "index": INDEX, "engine": engine, "names": GLOB}
            yield Finding(stray, Reason(WeightDoubt.STRAY, **fields))


def _set_of(path: str) -> str:
    """Return the path with its number left out: one for each set of weights."""
    return re.sub(r"-\d{5}(?=-of-\d{5}\.)", "", path)


def _missing(kind: WeightFault, files: tuple[str, ...], count: int, **fields: object) -> Finding:
    return Finding(files, Reason(kind, files=files[:SHOWN], missing=len(files), count=count, **fields))


def _elsewhere(snapshot: Snapshot, engine: str) -> Iterator[Finding]:
    """Yield the reason why no safetensors lie at the top, where there are other weights or an index."""
    foreign = next((f.path for f in snapshot.files if is_weights(f.path, UNLOADED)), None)
    pickles = [f.path for f in snapshot.files if PICKLE.fullmatch(f.path) and is_weights(f.path)]
    folders = dict.fromkeys(f.path.partition("/")[0] for f in snapshot.files
                            if "/" in f.path and f.path.endswith(".safetensors"))  # fmt: skip
    named = tuple(dict.fromkeys(indexed(snapshot).values()))
    parts, count = missing_parts(snapshot.files)
    if parts:
        yield _missing(WeightFault.PARTS_MISSING, parts, count)
    if pickles:
        kind = WeightFault.PICKLES if backends.of(engine).on_apple else WeightDoubt.PICKLES
        yield Finding((pickles[0],), Reason(kind, file=pickles[0], engine=engine))
    elif folders:
        yield Finding(tuple(folders), Reason(WeightFault.IN_FOLDERS, folders=tuple(folders)[:SHOWN]))
    elif named and snapshot.info:  # the Hub's own listing
        yield _missing(WeightFault.MISSING, named, len(named), index=INDEX)
    elif foreign is not None:
        yield Finding((foreign,), Reason(WeightFault.OTHER_FORMAT, file=foreign))


def _contradicted(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield packed weights without a quantisation, the reverse, and tensors that the index alone names."""
    known, named, described = tensors(snapshot), indexed(snapshot), quantisation.read(snapshot)
    if known is None or not snapshot.json(FILE):
        return
    packed = next((name for name in known.names if PACKED.search(name)), None)
    if packed is not None and not _quantised(snapshot):
        reason = Reason(WeightFault.UNQUANTISED, tensor=packed, source=known.source, file=FILE)
        yield Finding((FILE,), reason)
    elif packed is None and known.whole and described is not None and described.method in PACKING:
        fields = {"file": described.source, "quote": described.quote, "source": known.source}
        yield Finding((FILE,), Reason(WeightDoubt.PLAIN, count=len(known.names), **fields))
    ghosts = named.keys() - {*known.names}
    if ghosts and {*named.values()} <= {f.path for f in snapshot.files}:
        yield Finding(
            (INDEX,), Reason(WeightDoubt.GHOSTS, index=INDEX, count=len(ghosts), tensor=min(ghosts))
        )


def _quantised(snapshot: Snapshot) -> bool:
    """Return whether a file describes a quantisation, known or not."""
    return (
        quantisation.read(snapshot) is not None
        or quantisation.has_block(snapshot)
        or snapshot.has(quantisation.MODELOPT_FILE)
        or any(
            quantisation.OWN_FILE.fullmatch(f.path) and f.path not in snapshot.texts for f in snapshot.files
        )
    )


def folders(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the folders that each hold a model, where no model lies at the top; else nothing."""
    top = {f.path for f in snapshot.files if "/" not in f.path}
    if "config.json" in top or any(is_weights(path) for path in top) or top & DESCRIBING:
        return ()
    paths = [f.path.rpartition("/") for f in snapshot.files if "/" in f.path]
    weights = {folder for folder, _, name in paths if is_weights(name)}
    return tuple(
        dict.fromkeys(folder for folder, _, name in paths if name == "config.json" and folder in weights)
    )
