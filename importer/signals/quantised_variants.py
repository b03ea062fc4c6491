"""Quantised repositories of the same model: those that its card names."""

from __future__ import annotations

import re

from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.card import quoted
from importer.signals.evidence import Evidence, Rule
from importer.signals.family import own_name
from importer.signals.name import normalise, words_of
from importer.signals.quantisation import VARIANTS, read
from importer.signals.reasons import SisterReason

FILE = "README.md"
# Formats of files without a quantisation that vLLM or MLX reads, and methods without a digit in the name.
FORMATS = {
    "gguf",
    "ggml",
    "onnx",
    "openvino",
    "ov",
    "coreml",
    "exl2",
    "exl3",
    "llamafile",
    "ct2",
    "bf16",
    "fp16",
}
METHODS = {"awq", "gptq", "hqq", "aqlm", "bnb", "autoround", "modelopt", "quantized", "qat"}
LONGEST = 200_000  # characters of a card that are searched
MOST = 8
# An id on the Hub: in a link, in a command, or by itself.
HUB_ID = re.compile(r"(?<![\w./-])(?:https?://(?:www\.)?huggingface\.co/|hf\.co/)?"
                    r"([A-Za-z0-9][\w.-]{0,40}/[A-Za-z0-9][\w.-]{0,95}\w)(?![\w/])", re.ASCII)  # fmt: skip


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return one fact with the ids, where the card names any; none for a quantised repository.

    An id counts whose name is this model's own with the suffix of a quantisation.
    """
    own, card = own_name(snapshot), snapshot.texts.get(FILE)
    if not own or not card or read(snapshot) is not None:
        return []
    mine = normalise(own)
    named = dict.fromkeys(match[1] for match in HUB_ID.finditer(card[:LONGEST]))
    found = [
        name
        for name in named
        if normalise(name).name == mine.name and _is_quantised(name.rpartition("/")[2].lower(), mine.name)
    ][:MOST]
    if not found:
        return []
    ids = [quoted(name) for name in found]
    return [Evidence(Rule.CARD, VARIANTS, ids, FILE, Reason(SisterReason.NAMED, names=tuple(ids)))]


def _is_quantised(name: str, bare: str) -> bool:
    """Return whether the name has a suffix beyond the model's own that is a quantisation."""
    more = words_of(name[len(bare) :].replace("_", "-").replace(".", "-").strip("-"))
    return (
        bool(more)
        and not FORMATS & {*more}
        and any(any(c.isdigit() for c in word) or word in METHODS for word in more)
    )
