"""The parser ``hf`` with a derived response template, where no parser reads the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from importer.chat_template.study import TemplateAnalysis
from importer.decisions.derived import HF
from importer.engines.parsers import EngineParser, ParserWorker, Tokens
from importer.proof.completeness import complete
from importer.proof.result import DerivedTemplate, ParserVerdict
from importer.proof.template_proof import prove_template, with_template
from importer.proof.verdicts import Question, ask_parsers
from importer.signals.parser_markers import KINDS


def unread(verdicts: Mapping[str, Sequence[ParserVerdict]]) -> bool:
    """Return whether no parser reads the calls; without calls, whether none reads the reasoning.

    A liberal parser reads anything that looks like a call, so it does not count.
    """
    of_field = verdicts.get("tool_parser") or verdicts.get("reasoning_parser") or ()
    liberal = {v.parser for v in of_field if v.liberal}
    return bool(of_field) and not any(name not in liberal for name in complete(of_field))


def parser_as_data(
    analysis: TemplateAnalysis, tokens: Tokens, parsers: Sequence[EngineParser], worker: ParserWorker
) -> DerivedTemplate | None:
    """Return the template for the parser ``hf``; ``None`` without this parser, or without a complete one.

    Raises EngineError("worker-failed").
    """
    if not any(p.name == HF for p in parsers):
        return None
    proof = prove_template(analysis, tokens, [worker])
    if proof is None or not proof.complete:
        return None
    return DerivedTemplate(proof.template, proof.fields, proof.passed)


def judged_as_data(
    data: DerivedTemplate,
    questions: Sequence[Question],
    ways: Sequence[Tokens],
    verdicts: Sequence[ParserVerdict],
    parsers: Sequence[EngineParser],
    worker: ParserWorker,
) -> tuple[ParserVerdict, ...]:
    """Return the verdicts of one field, that on ``hf`` with the template in place of that without.

    It stands last among the parsers that read, for it rejects some requests.

    Raises EngineError("worker-failed").
    """
    of_kind = [p for p in parsers if p.kind == KINDS[questions[0].key] and p.name == HF]
    templated = [with_template(way, data.template) for way in ways]
    others = [v for v in verdicts if v.parser != HF]
    judged = [*others, *ask_parsers(questions, templated, of_kind, worker)]
    return tuple(sorted(judged, key=lambda verdict: not verdict.reads))
