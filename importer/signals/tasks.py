"""The settings of vLLM for a model that pools or transcribes, and what a request returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from importer import backends
from importer.hub.snapshot import Snapshot, whole
from importer.reasons import Reason
from importer.signals import sentences
from importer.signals.architecture import FILE, WIDEST, architectures, config_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import POOLS, TASKS, Evidence, Rule, warning
from importer.signals.reasons import TaskReason

RUNNER, CONVERT = "engine_args.runner", "engine_args.convert"
OUTPUTS = "outputs"
OVERRIDES = "engine_args.hf_overrides"
POOLER = "engine_args.pooler_config"
# Ends of class names of models that generate text.
GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
# Generating architectures whose rerankers answer yes or no, and vLLM's class that makes a score of that.
YES_OR_NO = {
    "Qwen3ForCausalLM": "Qwen3ForSequenceClassification",
    "Qwen3VLForConditionalGeneration": "Qwen3VLForSequenceClassification",
}
PER_TOKEN = ("late-interaction", "token-classify")  # one result for each token of a text
# Keys for the values of a token's vector, as vLLM reads them (``get_colbert_dim_from_config``).
OF_TOKEN = ("colbert_dim", "dim", "projection_dim")


def task_evidence(snapshot: Snapshot, kind: str, able: Abilities) -> list[Evidence]:
    """Return the flags that vLLM needs for such a model, and the shape of what the model returns."""
    if kind not in TASKS:
        return []
    facts = [*_outputs(snapshot, kind, able)]
    if backends.of(able.engine).tasks and kind in POOLS:
        facts += _flags(snapshot, kind, able)
    return facts


def task_backend(kind: str) -> list[Evidence]:
    """Return the evidence that vLLM alone serves such a model; the servers of MLX generate text only."""
    if kind not in TASKS:
        return []
    served = Reason(TaskReason.SERVED_BY, of=kind)
    return [Evidence(Rule.FILES, "backend", backends.DEFAULT, FILE, served, kind)]


def labels(config: Mapping[str, object]) -> int:
    """Return the number of classes of a config; transformers assumes two."""
    named = config.get("id2label")
    count = config.get("num_labels")
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        return count
    return len(named) if isinstance(named, Mapping) and named else 2


def _flags(snapshot: Snapshot, kind: str, able: Abilities) -> Iterator[Evidence]:
    named = architectures(snapshot)
    name = named[0] if named else ""
    reason = Reason(TaskReason.POOLS, of=kind)
    yield Evidence(Rule.ENGINE, RUNNER, "pooling", able.label, reason)
    if kind == "embedding":
        yield from _pooler(snapshot, able)
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


def _pooler(snapshot: Snapshot, able: Abilities) -> Iterator[Evidence]:
    """Yield the pooling where the version does not read it, and takes that of the architecture without a
    word; a warning for one that no setting gives.
    """
    sparse = sentences.described(snapshot, sentences.SPARSE)
    if sparse is not None:
        reason = Reason(TaskReason.SPARSE, file=sparse[0], quote=sparse[1], engine=able.label)
        yield Evidence(Rule.ENGINE, RUNNER, "pooling", able.label, warning(reason))
    pooling, reads = sentences.pooling(snapshot), able.pooler.get("reads", ())
    if pooling is None or not able.pooler:
        return
    if pooling.way not in able.pooler["ways"]:
        reason = Reason(TaskReason.NO_WAY, file=pooling.file, quote=pooling.quote, engine=able.label)
        yield Evidence(Rule.ENGINE, RUNNER, "pooling", able.label, warning(reason))
    elif pooling.module not in reads or (pooling.newer and sentences.OLD_FORM[:-1] not in reads):
        activates = "use_activation" if "use_activation" in able.pooler["settings"] else "normalize"
        settings = {"pooling_type": pooling.way, activates: sentences.normalises(snapshot)}
        reason = Reason(TaskReason.UNREAD_FORM, file=pooling.file, quote=pooling.quote, engine=able.label)
        yield Evidence(Rule.CONFIG, POOLER, settings, pooling.file, reason, pooling.quote)


def _outputs(snapshot: Snapshot, kind: str, able: Abilities) -> Iterator[Evidence]:
    """Yield what a request returns: the values of a vector and whether its length is one, or the classes."""
    shape: dict[str, object] = {}
    modules = sentences.modules(snapshot)
    if kind == "embedding":
        text = text_config(config_of(snapshot))
        widths = (whole(text.get(key), 1, WIDEST) for key in ("hidden_size", "d_model", "dim"))
        width = sentences.width(snapshot, next(filter(None, widths), None))
        if width is not None:
            shape["dimensions"] = width
        if modules:
            shape["normalized"] = sentences.normalises(snapshot)
    elif kind in {"classifier", "reranker"}:
        shape["labels"] = 1 if kind == "reranker" else labels(config_of(snapshot))
    if any(able.pooling.get(name) in PER_TOKEN for name in architectures(snapshot)):
        of_token = next((n for k in OF_TOKEN if (n := whole(config_of(snapshot).get(k), 1, WIDEST))), None)
        dimensions = {} if of_token is None or kind != "embedding" else {"dimensions": of_token}
        shape = {k: v for k, v in shape.items() if k == "labels"} | dimensions | {"each": "token"}
    if shape:
        source = sentences.MODULES if modules else FILE
        reason = Reason(TaskReason.OUTPUTS, file=source)
        yield Evidence(Rule.CONFIG, OUTPUTS, shape, source, reason)
