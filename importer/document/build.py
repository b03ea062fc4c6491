"""From decisions to the document's data: LocalAI's keys, and our block under ``importer``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from importer import backends
from importer.decisions.decide import PinReason
from importer.decisions.decision import Decision, Decisions
from importer.decisions.frontends import FrontendReason
from importer.document import document_keys
from importer.document.attention import Attention
from importer.document.document import Document, document_of
from importer.document.document_keys import FACTS, OPTIONS, SAMPLING, UNWRITTEN, place
from importer.errors import one_line
from importer.frozen import frozen
from importer.reasons import Text
from importer.sentences import printable, render, short, worded
from importer.signals.evidence import TASKS
from importer.signals.reasons import QuantReason

if TYPE_CHECKING:
    from importer.document.records import DecisionRecord

LONGEST = 58  # characters of a comment behind its sign, 60 with it
USER = "set by user"
EDITED = "edited in this file"


def source(decision: Decision) -> str:
    """Return the status and what decided: ``table: qwen3, thinking``, ``proved (vllm 0.32.0)``."""
    if decision.status == "user":
        return USER
    words = _short(decision)
    if words and decision.status == "proved" and not isinstance(decision.why[0].kind, PinReason):
        return f"proved ({words})"
    return f"{decision.status}: {words}" if words else decision.status


def comment(decision: Decision) -> str:
    """Return the source, then what stands behind a proof, and the first number that lost; never cut."""
    text = source(decision)
    for forms in (_behind(decision), _lost(decision)):
        text += next((f"; {more}" for more in forms if len(text) + len(more) + 2 <= LONGEST), "")
    return text if len(text) <= LONGEST else decision.status


def heads(warnings: Iterable[Attention]) -> tuple[str, ...]:
    """Return the lines of the file's head, one for each kind."""
    texts = (f"attention: {worded(w.kind.short, {'key': w.key})}" for w in warnings)
    return tuple(dict.fromkeys(texts))


def edited(imported: str | None) -> str:
    """Return the comment at a value that a person wrote, with what the import has where that is short."""
    text = EDITED if imported is None else f"{EDITED}; imported: {imported}"
    return text if len(text) <= LONGEST else EDITED


def is_edit(comment: str) -> bool:
    """Return whether a comment is one of ``edited``."""
    return comment == EDITED or comment.startswith(f"{EDITED}; imported: ")


def _short(decision: Decision) -> str | None:
    return None if not decision.why else _line(short(decision.why[0]))


def _behind(decision: Decision) -> list[str]:
    """Return the claim that a proof confirms."""
    texts = (_line(short(reason)) for reason in decision.why[1:] if decision.status == "proved")
    return [text for text in texts if text][:1]


def _lost(decision: Decision) -> list[str]:
    """Return the first number that was offered and lost, with its source and without."""
    lost = next((o for o in decision.overruled if type(o.value) in (int, float)), None)
    return [] if lost is None else [f"not {lost.value} ({one_line(lost.source)})", f"not {lost.value}"]


def _line(text: str | None) -> str | None:
    return None if text is None else one_line(text)


def to_json(decision: Decision, instead: Mapping[str, Text] | None = None) -> DecisionRecord:
    """Return the frozen form: value, status, why, overruled; ``instead`` holds a front end's own
    sentences.
    """
    return {
        "value": decision.value,
        "status": decision.status,
        "why": [render(reason, instead) for reason in decision.why],
        "overruled": [
            {"value": o.value, "source": o.source, "why": render(o.why, instead)} for o in decision.overruled
        ],
    }


def kept(decision: Decision) -> DecisionRecord:
    """Return the same with ``reasons``, the kinds and fields of ``why``."""
    return {**to_json(decision), "reasons": [reason.to_json() for reason in decision.why]}


SCHEMA = 1
SCHEMA_FILE = ".importer/document.schema.json"  # for editors, beside the documents
# LocalAI's names of what a model is for, by its kind; all others chat.
USECASES = {
    "base": ["completion"],
    "embedding": ["embeddings"],
    "reranker": ["rerank"],
    "classifier": ["score"],
    "reward": ["score"],
    "transcription": ["transcript"],
}


@frozen
class DocumentSubject:
    """Which model the document is for.

    ``model`` is what the engine is told: a Hub id, or a directory.
    """

    name: str
    reference: str
    model: str
    model_id: str | None
    revision: str | None


@frozen
class Built:
    """The document's data, for each YAML path the comment on what decided, and the comments of the head."""

    data: Document
    comments: Mapping[tuple[str | int, ...], str]
    heads: tuple[str, ...] = ()


def build(
    subject: DocumentSubject,
    decisions: Decisions,
    engine: Mapping[str, object],
    findings: Mapping[str, object],
) -> Built:
    """Lay the decisions out as LocalAI reads them.

    ``engine`` is ``{"name", "version"}`` and more for our block; ``findings`` are further entries there.
    """
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    data: dict[str, object] = {
        "name": subject.name,
        "description": imported_description(subject.model_id or subject.model),
        "backend": engine["name"],
        "known_usecases": _usecases(decisions),
        "parameters": {"model": subject.model},
    }
    comments: dict[tuple[str | int, ...], str] = {}
    if kind == "embedding":
        data["embeddings"] = True  # LocalAI serves vectors of a model with this key alone
    if kind not in USECASES:
        data["template"] = {"use_tokenizer_template": True}
    entries: list[str] = []
    for key in OPTIONS:
        decision = decisions[key]
        if decision.value is not None:
            comments[document_keys.KEY, len(entries)] = comment(decision)
            entries.append(document_keys.write(key, decision.value))
    if entries:
        data[document_keys.KEY] = entries
    for key in _ordered(decisions):
        path, decision = place(key), decisions[key]
        apart = key in (*OPTIONS, *FACTS) or (key in UNWRITTEN and decision.status == "engine-default")
        if path is not None and decision.value is not None and not apart:
            put(data, path, decision.value)
            comments[_first(path, decision.value)] = comment(decision)
    told = decisions.get(QUANTIZATION)
    takes = backends.of(engine["name"]).takes_quantization
    if told is not None and told.value is not None and takes and _is_for_engine(told):
        data[QUANTIZATION], comments[QUANTIZATION,] = told.value, comment(told)
    if subject.model_id is not None and subject.revision is not None:
        source = {"type": "huggingface", "repo": subject.model_id, "revision": subject.revision}
        data["artifacts"] = [{"name": "model", "target": "model", "source": source}]
    data["importer"] = _block(subject, decisions, engine, findings)
    return Built(document_of(data), comments)


def imported_description(model: str) -> str:
    """Return the description that an import writes; a card may change without a change of the document.

    A folder's name may hold characters that nobody sees, and a description none.
    """
    return f"Imported from {printable(model)}"


QUANTIZATION = "quantization"  # a fact of the weights, that engines detect


def _is_for_engine(quantization: Decision) -> bool:
    """Return whether the engine is started with it: a person's value, or that of a file of its own."""
    return quantization.status == "user" or any(r.kind is QuantReason.OWN_FILE for r in quantization.why)


def _usecases(decisions: Decisions) -> list[str]:
    """As LocalAI names them: what sees has vision, what hears takes more than that."""
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    takes = decisions["modalities"].value if "modalities" in decisions else None
    found = [*USECASES.get(str(kind), ["chat"])]
    if kind in TASKS:
        return found
    for usecase, needs in (("vision", {"image", "video"}), ("multimodal", {"audio"})):
        if needs & {*(takes or ())}:
            found.append(usecase)
    return found


def _first(path: tuple[str, ...], value: Any) -> tuple[str | int, ...]:
    """Return where a comment can stand: at the value, or at the first inside it."""
    if isinstance(value, dict) and value:
        key = next(iter(value))
        return _first((*path, key), value[key])
    return (*path, 0) if isinstance(value, list) else path


def _ordered(decisions: Decisions) -> list[str]:
    """Return sampling in LocalAI's order first, then the rest as decided."""
    sampling = [f"parameters.{k}" for k in SAMPLING if f"parameters.{k}" in decisions]
    return sampling + [k for k in decisions if k not in sampling]


def _block(
    subject: DocumentSubject,
    decisions: Decisions,
    engine: Mapping[str, object],
    findings: Mapping[str, object],
) -> dict[str, object]:
    block: dict[str, object] = {"schema": SCHEMA, "reference": subject.reference}
    if subject.model_id is not None:
        block |= {"model_id": subject.model_id, "revision": subject.revision}
    block |= {k: decisions[k].value for k in FACTS if k in decisions and decisions[k].value is not None}
    unset = [
        k
        for k in SAMPLING
        if f"parameters.{k}" in decisions and decisions[f"parameters.{k}"].status == "none"
    ]
    if unset:
        block["unset"] = unset
    unsaid = {k: _unsaid(decisions[k]) for k in OPTIONS if decisions[k].value is None}
    if unsaid:
        block["no_parser"] = unsaid
    block["engine"] = {k: v for k, v in engine.items() if v is not None}
    return block | dict(findings)


def _unsaid(decision: Decision) -> str:
    """Return why there is no parser."""
    by_frontend = bool(decision.why) and decision.why[0].kind is FrontendReason.BUILT_IN
    return "built-in" if by_frontend else decision.status


def put(data: dict[str, object], path: tuple[str, ...], value: Any) -> None:
    """Set a nested key, making the maps on the way."""
    for step in path[:-1]:
        inner = data.get(step)
        if not isinstance(inner, dict):
            inner = data[step] = {}
        data = inner
    data[path[-1]] = value
