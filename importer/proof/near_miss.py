"""The parser that would read the calls of a template with another spelling of one marker."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from importer.chat_template.learnt_format import learn_format
from importer.chat_template.markers import mirror
from importer.chat_template.samples import Sample
from importer.engines.parsers import EngineParser, ParserWorker, Tokens
from importer.proof.result import ProofReason
from importer.proof.verdicts import Question, ask_whole
from importer.reasons import Reason
from importer.signals.template_markers import KINDS, load_parser_markers

ALIKE = 0.75  # likeness of two spellings of one marker
MOST = 8  # parsers that are tried


def near_miss(
    samples: Sequence[Sample], ways: Sequence[Tokens], parsers: Sequence[EngineParser], worker: ParserWorker
) -> Reason | None:
    """Return the first parser that reads a call with one marker, or its pair, in the parser's spelling.

    Raises EngineError("worker-failed").
    """
    one = next((s for s in samples if s.case == "one-call"), None)
    learnt = learn_format(samples)
    if one is None or learnt is None:
        return None
    known = load_parser_markers(worker.engine, KINDS["tool_parser"])
    tried = 0
    for parser in (p for p in parsers if p.kind == KINDS["tool_parser"] and p.name in known):
        changes = _changes(learnt.markers, known[parser.name].markers)
        if not changes or tried >= MOST:
            continue
        tried += 1
        text = one.completion
        for written, read in changes.items():
            text = text.replace(written, read)
        question = Question("tool_parser", (replace(one, completion=text),), ("one-call",))
        spelled = [replace(w, tokens=(*w.tokens, *((m, False) for m in changes.values()))) for w in ways]
        verdict = ask_whole(question, spelled, [parser], worker)[parser.name]
        if verdict.reads:
            return Reason(
                ProofReason.NEAR_MISS,
                parser=parser.name,
                written=tuple(changes),
                read=tuple(changes.values()),
            )
    return None


def _changes(written: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return the spelling of the parser for one foreign marker, or for both of a pair; else nothing."""
    foreign = [marker for marker in written if marker not in known]
    pair = len(foreign) == 2 and mirror(foreign[0]) == foreign[1]
    if len(foreign) != 1 and not pair:
        return {}
    close = {m: difflib.get_close_matches(m, known, 1, ALIKE) for m in foreign}
    return {m: found[0] for m, found in close.items()} if all(close.values()) else {}
