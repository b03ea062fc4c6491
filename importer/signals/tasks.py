"""Models that do not generate text from a conversation, but that vLLM serves: what they return, and how.

An embedding model returns a vector, a reranker a score for a pair of texts, a classifier a probability for
each class, a reward model a score for an answer. A transcription is text from sound.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from importer.hub.snapshot import Snapshot, listed, mapping, whole
from importer.reasons import Reason
from importer.signals.architecture import FILE, architectures, config_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import POOLS, TASKS, Evidence, Rule, warning
from importer.signals.reasons import TaskReason

RUNNER, CONVERT = "engine_args.runner", "engine_args.convert"
OUTPUTS = "outputs"
OVERRIDES = "engine_args.hf_overrides"
MODULES, LENGTH = "modules.json", "sentence_bert_config.json"
# Generating architectures whose rerankers answer yes or no, and vLLM's class that makes a score of that.
YES_OR_NO = {
    "Qwen3ForCausalLM": "Qwen3ForSequenceClassification",
    "Qwen3VLForConditionalGeneration": "Qwen3VLForSequenceClassification",
}
PER_TOKEN = ("late-interaction", "token-classify")  # one result for each token of a text
# Keys for the values of a token's vector, as vLLM reads them (``get_colbert_dim_from_config``).
OF_TOKEN = ("colbert_dim", "dim", "projection_dim")
WIDEST = 1 << 20  # values of a vector, tokens of a text


def evidence(snapshot: Snapshot, kind: str, able: Abilities) -> list[Evidence]:
    """Return the flags that vLLM needs for such a model, and the shape of what the model returns."""
    if kind not in TASKS:
        return []
    facts = [*_outputs(snapshot, kind, able)]
    if able.engine == "vllm" and kind in POOLS:
        facts += _flags(snapshot, kind, able)
    return facts


def backend(kind: str) -> list[Evidence]:
    """Return the evidence that vLLM alone serves such a model; the servers of MLX generate text only."""
    if kind not in TASKS:
        return []
    return [Evidence(Rule.FILES, "backend", "vllm", FILE, Reason(TaskReason.SERVED_BY, of=kind), kind)]


def labels(config: Mapping[str, Any]) -> int:
    """Return the number of classes of a config; transformers assumes two."""
    named = config.get("id2label")
    count = config.get("num_labels")
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        return count
    return len(named) if isinstance(named, Mapping) and named else 2


def _flags(snapshot: Snapshot, kind: str, able: Abilities) -> Iterator[Evidence]:
    from importer.signals.unserved import GENERATES

    named = architectures(snapshot)
    name = named[0] if named else ""
    reason = Reason(TaskReason.POOLS, of=kind)
    yield Evidence(Rule.ENGINE, RUNNER, "pooling", able.label, reason)
    if name and name not in able.pooling:
        convert = "embed" if kind == "embedding" else "classify"
        reason = Reason(TaskReason.CONVERTED, name=name, convert=convert)
        headless = kind == "reranker" and name.endswith(GENERATES)
        scores = YES_OR_NO.get(name) if headless else None
        unknown = Reason(TaskReason.NO_HEAD, name=name)
        yield Evidence(
            Rule.ENGINE, CONVERT, convert, able.label,
            warning(unknown) if headless and scores is None else reason,
        )  # fmt: skip
        if scores is not None:
            overrides = {
                "architectures": [scores], "classifier_from_token": ["no", "yes"],
                "is_original_qwen3_reranker": True,
            }  # fmt: skip
            reason = Reason(TaskReason.YES_OR_NO, name=name)
            yield Evidence(Rule.ENGINE, OVERRIDES, overrides, able.label, reason)


def _outputs(snapshot: Snapshot, kind: str, able: Abilities) -> Iterator[Evidence]:
    """Yield what a request returns: the values of a vector and whether its length is one, or the classes."""
    shape: dict[str, Any] = {}
    modules = _modules(snapshot)
    if kind == "embedding":
        width = _dense(snapshot, modules) or _width(snapshot)
        if width is not None:
            shape["dimensions"] = width
        if modules:
            shape["normalized"] = any(_ends(m, "Normalize") for m in modules)
    elif kind in {"classifier", "reranker"}:
        shape["labels"] = 1 if kind == "reranker" else labels(config_of(snapshot))
    if any(able.pooling.get(name) in PER_TOKEN for name in architectures(snapshot)):
        of_token = next((n for k in OF_TOKEN if (n := whole(config_of(snapshot).get(k), 1, WIDEST))), None)
        dimensions = {} if of_token is None or kind != "embedding" else {"dimensions": of_token}
        shape = {k: v for k, v in shape.items() if k == "labels"} | dimensions | {"each": "token"}
    if shape:
        source = MODULES if modules else FILE
        reason = Reason(TaskReason.OUTPUTS, file=source)
        yield Evidence(Rule.CONFIG, OUTPUTS, shape, source, reason)


def sentence_length(snapshot: Snapshot) -> int | None:
    """Return the tokens to which sentence-transformers cuts a text, where the repository has that file."""
    return whole(_object(snapshot, LENGTH).get("max_seq_length"), 1, WIDEST)


def _modules(snapshot: Snapshot) -> list[Mapping[str, Any]]:
    try:
        data = json.loads(snapshot.texts.get(MODULES, "[]"))
    except (ValueError, RecursionError):
        return []
    return [m for m in listed(data)[:32] if isinstance(m, Mapping)]


def _ends(module: Mapping[str, Any], name: str) -> bool:
    return str(module.get("type", "")).rpartition(".")[2] == name


def _dense(snapshot: Snapshot, modules: list[Mapping[str, Any]]) -> int | None:
    """Return the width of the last dense layer after the pooling, where its settings were read."""
    for module in reversed(modules):
        if _ends(module, "Dense"):
            return whole(
                _object(snapshot, f"{module.get('path')}/config.json").get("out_features"), 1, WIDEST
            )
    return None


def _width(snapshot: Snapshot) -> int | None:
    text = text_config(config_of(snapshot))
    return next((n for k in ("hidden_size", "d_model", "dim") if (n := whole(text.get(k), 1, WIDEST))), None)


def _object(snapshot: Snapshot, path: str) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(snapshot.texts.get(path, "{}")))
    except (ValueError, RecursionError):
        return {}
