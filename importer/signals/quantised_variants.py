"""Quantised repositories of the same model: those that the card names, and those that the Hub lists."""

from __future__ import annotations

import re
from collections.abc import Mapping

from importer.hub.related import RelatedRepositories, RelatedRepository
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.card import quoted
from importer.signals.engine_capabilities import Abilities, Machine
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.family import own_name
from importer.signals.loading import ALIASES, loads
from importer.signals.name import normalise, words_of
from importer.signals.quantisation import BITS, MLX, Quantised, read
from importer.signals.reasons import SisterReason

KEY, LISTED = "sisters", "listed_sisters"
FILE = "README.md"
TAGGED_BITS = re.compile(r"([2-8])-?bit", re.ASCII)  # the Hub's own tags: ``4-bit``, ``8-bit``
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
    return [Evidence(Rule.CARD, KEY, ids, FILE, Reason(SisterReason.NAMED, names=tuple(ids)))]


def listed(
    related: RelatedRepositories, snapshot: Snapshot, able: Abilities, machine: Machine
) -> list[Evidence]:
    """Return one fact with the listed repositories that the engine's version reads, the same owner's first.

    The value of an unknown list is ``None``, with the reason.
    """
    if related.problem is not None:
        why = Reason(SisterReason.NOT_LISTED, problem=related.problem)
        return [Evidence(Rule.HUB_LISTING, LISTED, None, Source.HUB, why)]
    rows = [row for one in related.repositories if (row := _row(one, snapshot, able, machine)) is not None]
    owner = str(snapshot.model_id).partition("/")[0].lower()
    rows.sort(key=lambda row: str(row["repo"]).partition("/")[0].lower() != owner)
    if not rows:
        return []
    why = Reason(SisterReason.LISTED, names=tuple(described(row) for row in rows[:MOST]))
    return [Evidence(Rule.HUB_LISTING, LISTED, rows[:MOST], Source.HUB, why)]


def described(row: Mapping[str, object]) -> Reason:
    """Return a row of the fact as a reason, such as ``acme/Anvil-AWQ (awq, 4 bits)``."""
    return Reason(SisterReason.REPOSITORY, name=row["repo"], method=row["method"], bits=row["bits"])


def _row(
    one: RelatedRepository, snapshot: Snapshot, able: Abilities, machine: Machine
) -> dict[str, object] | None:
    """Return name, method, bits, downloads and parameters by type, where the engine may read the weights."""
    quantised = _quantised(one, able)
    if quantised is None or loads(quantised, snapshot, able, machine).can is False:
        return None
    tagged = next((int(m[1]) for tag in one.tags if (m := TAGGED_BITS.fullmatch(tag))), None)
    named = BITS.match(quantised.method)
    bits = quantised.bits or (int(named[1]) if named else tagged)
    return {
        "repo": quoted(one.repo),
        "method": quantised.method,
        "bits": bits,
        "downloads": one.downloads,
        "parameters": dict(one.parameters),
    }


def _quantised(one: RelatedRepository, able: Abilities) -> Quantised | None:
    """Return the quantisation by the configuration that the Hub shows, else by a tag with a method's name."""
    shown = read(Snapshot(one.repo, one.repo, None, (), {}, {"config": {"quantization_config": one.block}}))
    if shown is not None:
        return shown
    tags = [tag.lower() for tag in one.tags]
    known = (tag for tag in tags if tag == MLX or ALIASES.get(tag, tag) in able.methods)
    method = MLX if MLX in tags else next(known, None)
    return None if method is None else Quantised(method, None, Source.HUB, method)


def _is_quantised(name: str, bare: str) -> bool:
    """Return whether the name has a suffix beyond the model's own that is a quantisation."""
    more = words_of(name[len(bare) :].replace("_", "-").replace(".", "-").strip("-"))
    return (
        bool(more)
        and not FORMATS & {*more}
        and any(any(c.isdigit() for c in word) or word in METHODS for word in more)
    )
