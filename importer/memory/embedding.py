"""The rows of the embedding, by the tensors in the headers of the weights: one for each token number."""

from __future__ import annotations

import re
from collections.abc import Mapping

from importer.hub.safetensors import Tensor
from importer.memory.weights import TOWER

# The names that architectures give the table of token vectors; quantised tables keep a row for each token.
TABLE = re.compile(
    r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in|token_embedding|embeddings)\.weight\Z"
)


def rows(tensors: Mapping[str, Tensor]) -> int | None:
    """Return the rows of the largest table of token vectors; ``None`` where no tensor has such a name."""
    tables = [
        tensor.shape[0]
        for name, tensor in tensors.items()
        if TABLE.search(name) and not TOWER.search(name) and len(tensor.shape) > 1
    ]
    return max(tables, default=None)
