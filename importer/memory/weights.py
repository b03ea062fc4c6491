"""Bytes of the published weights, the source of the figure, and the rows of the embedding.

The rows of the embedding, by the tensors in the headers of the weights: one for each token number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.content import weight_files
from importer.hub.safetensors import BITS, Tensor
from importer.hub.snapshot import RepoFile, Snapshot
from importer.memory.config_keys import whole
from importer.memory.estimate_types import Amount, SizeReason, Unknown, UnknownReason
from importer.memory.pages import BYTES
from importer.memory.quantised import sizes
from importer.memory.shape import Shape
from importer.reasons import Reason
from importer.sentences import render
from importer.signals.comparison import INDEX, whole_copy

Source = Literal["headers", "index", "api", "files", "config"]
CALCULATED = {"F16", "BF16", "F32", "F64", "F8_E5M2", "F8_E4M3"}  # one value is one parameter
AGREES = 0.01  # headers and padding of files stay below this
# Errors of a count from config.json alone, over published repositories: see benchmarks/fit.md.
OFF, OFF_QUANTISED, OFF_UNSEEN = 0.02, 0.06, 0.20
DRAFT = re.compile(r"(?:^|\.)(?:mtp|nextn)[\w]*\.|(?:^|\.)layers\.(\d+)\.")
TOWER = re.compile(r"(?:^|\.)(?:visual|vision|audio)")


@frozen
class Weights:
    """All weights as published, before any split.

    ``source``  of the figure; ``dtypes`` bytes by type, where the source has them.
    ``drafts``  bytes of layers for multi-token prediction among them, where headers show them.
    ``active``  parameters that one token visits: fewer than ``parameters`` where a router selects experts.
    """

    amount: Amount
    parameters: int | None
    source: Source
    why: Reason
    dtypes: Mapping[str, int] = field(default_factory=dict)
    drafts: int | None = None
    active: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the weights as receipts hold them."""
        return {
            **self.amount.to_json(),
            "parameters": self.parameters,
            "active": self.active,
            "source": self.source,
            "why": render(self.why),
        }


def files(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the weight files that an engine loads, one copy of each weight."""
    listed = [f.path for f in weight_files(snapshot.files)]
    named = _mapped(snapshot)
    return tuple(p for p in listed if p in named) if named and named <= set(listed) else tuple(listed)


def read(
    snapshot: Snapshot, shape: Shape | Unknown, headers: Mapping[str, Tensor] | None = None
) -> Weights | Unknown:
    """Return the best figure: from headers, the index, the Hub's totals, listed sizes, then ``config.json``.

    The figures of the index and the Hub count only where they agree with the files' sizes: some indexes were
    copied from another repository, and the Hub counts packed values as parameters.
    """
    found = _read(snapshot, shape, headers)
    if isinstance(found, Unknown) or isinstance(shape, Unknown) or found.parameters is None:
        return found
    unused = _unvisited(shape) + sum(part.count for part in shape.drafts)
    return replace(found, active=max(0, found.parameters - unused))


def _unvisited(shape: Shape) -> int:
    """Return the parameters of the experts that the router of each layer does not select for a token."""
    total = 0
    for block in shape.blocks:
        counts = {part.role: part.count for part in block.parts}
        number = counts.get("router", 0) // shape.hidden if shape.hidden else 0
        if number > shape.experts > 0:
            total += counts.get("experts", 0) * (number - shape.experts) // number
    return total


def _read(
    snapshot: Snapshot, shape: Shape | Unknown, headers: Mapping[str, Tensor] | None
) -> Weights | Unknown:
    if headers:
        return _from_headers(headers, shape)
    listed = _listed(snapshot)
    for weights in (_from_index(snapshot, shape), _from_api(snapshot, listed is None)):
        if weights is not None and (listed is None or _agree(weights.amount.likely, listed)):
            return weights
    if listed is not None:
        why = Reason(SizeReason.FILES, count=len(files(snapshot)))
        amount = Amount(int(listed * (1 - AGREES)), listed, listed)
        return Weights(amount, _parameters(snapshot, shape), "files", why)
    if isinstance(shape, Unknown):
        return Unknown(Reason(UnknownReason.SIZE, why=shape.reason))
    return _from_config(shape)


def _from_headers(headers: Mapping[str, Tensor], shape: Shape | Unknown) -> Weights:
    total = sum(t.size for t in headers.values())
    dtypes: dict[str, int] = {}
    for tensor in headers.values():
        dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + tensor.size
    layers = 0 if isinstance(shape, Unknown) else len(shape.blocks)
    drafts = sum(t.size for name, t in headers.items() if _is_draft(name, layers))
    why = Reason(SizeReason.HEADERS, count=len(headers))
    parameters = None if isinstance(shape, Unknown) else _count(shape)
    return Weights(Amount.exactly(total), parameters, "headers", why, dtypes, drafts)


def _is_draft(name: str, layers: int) -> bool:
    """Return whether the tensor belongs to a drafting layer, beyond the model's own."""
    match = None if TOWER.search(name) else DRAFT.search(name)
    return match is not None and (match[1] is None or 0 < layers <= int(match[1][:6]))


def _from_index(snapshot: Snapshot, shape: Shape | Unknown) -> Weights | None:
    metadata = _index(snapshot).get("metadata")
    total = whole(metadata.get("total_size")) if isinstance(metadata, Mapping) else None
    if not total:
        return None
    why = Reason(SizeReason.INDEX, file=INDEX, size=total)
    return Weights(
        Amount.exactly(total), _parameters(snapshot, shape), "index", why, _bytes_by_type(snapshot)
    )


def _from_api(snapshot: Snapshot, alone: bool) -> Weights | None:
    """Return the weights by the Hub's parameters; packed types count only where the files' sizes agree."""
    by_type = _bytes_by_type(snapshot)
    if not by_type or (alone and not set(by_type) <= CALCULATED):
        return None
    total = sum(by_type.values())
    listed = [f"{n * 8 // BITS[t]:,} in {t}" for t, n in by_type.items()]
    parameters = snapshot.info.get("safetensors_total")
    return Weights(
        Amount.exactly(total), whole(parameters), "api", Reason(SizeReason.HUB, counts=listed), by_type
    )


def _from_config(shape: Shape) -> Weights:
    size = _described(shape)
    off = OFF if shape.scheme is None else OFF_QUANTISED
    name = shape.dtype or "16 bits" if shape.scheme is None else shape.scheme.name
    amount = Amount.about(size, off)
    why = Reason(SizeReason.CONFIG, parameters=_count(shape), dtype=name)
    if shape.unseen:
        amount = replace(amount, high=int(size * (1 + OFF_UNSEEN)))
        why = Reason(SizeReason.NO_TOWER, why=why)
    if shape.dtype is None and shape.scheme is None:
        amount = replace(amount, high=2 * amount.high)  # without a dtype the values may have 32 bits
    return Weights(amount, _count(shape), "config", why)


def _bytes_by_type(snapshot: Snapshot) -> dict[str, int]:
    """Return the bytes by type, from the Hub's parameters by type; empty for an unknown type."""
    parameters = snapshot.info.get("safetensors")
    counts = {t: whole(n) for t, n in parameters.items()} if isinstance(parameters, Mapping) else {}
    if not set(counts) <= set(BITS) or None in counts.values():
        return {}
    return {t: n * BITS[t] // 8 for t, n in counts.items() if n}


def _listed(snapshot: Snapshot) -> int | None:
    """Return the total size of the weight files, or ``None`` where a size is unknown or files are missing."""
    if not whole_copy(snapshot):
        return None
    chosen = set(files(snapshot))
    file_sizes = [f.size for f in snapshot.files if f.path in chosen]
    if not file_sizes:
        file_sizes = [f.size for f in _pickled(snapshot.files)]
    known = [s for s in file_sizes if s is not None]
    return sum(known) if known and len(known) == len(file_sizes) else None


def _pickled(listed: tuple[RepoFile, ...]) -> tuple[RepoFile, ...]:
    """Return the weight files in PyTorch's pickle format: counted, never read."""
    return tuple(f for f in listed if re.fullmatch(r"pytorch_model(?:-\d{5}-of-\d{5})?\.bin", f.path))


def _agree(size: int, listed: int) -> bool:
    return abs(listed - size) <= AGREES * listed + (1 << 20)


def _parameters(snapshot: Snapshot, shape: Shape | Unknown) -> int | None:
    total = whole(snapshot.info.get("safetensors_total"))
    return total or (None if isinstance(shape, Unknown) else _count(shape))


def _described(shape: Shape) -> int:
    return sizes(shape.parts + Counter(shape.drafts), shape.scheme, BYTES.get(shape.dtype or "", 2))


def _count(shape: Shape) -> int:
    return sum(p.count * number for p, number in (shape.parts + Counter(shape.drafts)).items())


def _index(snapshot: Snapshot) -> Mapping[str, object]:
    try:
        return snapshot.json(INDEX)
    except RepositoryError:  # the sizes of files do as well
        return {}


def _mapped(snapshot: Snapshot) -> set[str]:
    mapped = _index(snapshot).get("weight_map")
    return {v for v in mapped.values() if isinstance(v, str)} if isinstance(mapped, Mapping) else set()


# The names that architectures give the table of token vectors; quantised tables keep a row for each token.
TABLE = re.compile(
    r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in|token_embedding|embeddings)\.weight\Z"
)


def embedding_rows(tensors: Mapping[str, Tensor]) -> int | None:
    """Return the rows of the largest table of token vectors; ``None`` where no tensor has such a name."""
    tables = [
        tensor.shape[0]
        for name, tensor in tensors.items()
        if TABLE.search(name) and not TOWER.search(name) and len(tensor.shape) > 1
    ]
    return max(tables, default=None)
