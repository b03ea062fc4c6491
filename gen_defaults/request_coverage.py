"""``python -m gen_defaults request-coverage FOLDER``: what the templates of many repositories lose.

FOLDER holds ``repos/<org>__<name>/`` with a model's small files, as for ``score``. The table counts models
and different templates by severity, kind and field.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from importer.chat_template import find
from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.render import Renderer
from importer.chat_template.request_coverage.findings import (
    ORDER,
    CoverageFinding,
    CoverageSeverity,
    RequestCoverage,
)
from importer.chat_template.vocabulary import read_vocabulary
from importer.errors import ImporterError
from importer.hub import local

SHOWN = 3  # models named in a row


@dataclass(frozen=True, slots=True)
class Checked:
    """A model with its template; ``seconds`` the whole analysis took, 0 for a known one."""

    model: str
    template: Template
    request_coverage: RequestCoverage
    seconds: float


def read(folder: Path) -> Iterator[Checked]:
    """Yield every repository with a template; each different template is analysed once."""
    known: dict[tuple[str, str], RequestCoverage] = {}
    with Renderer() as renderer:
        for place in sorted((folder / "repos").iterdir()):
            model = place.name.replace("__", "/", 1)
            try:
                snapshot = local.resolve(model, place)
                template, tokens = find.find(snapshot), read_vocabulary(snapshot)
            except ImporterError:
                continue
            if template is None:
                continue
            key, begun, fresh = (template.digest, repr(tokens.variables)), time.perf_counter(), False
            if key not in known:
                request_coverage, fresh = analyze(template, tokens, renderer).request_coverage, True
                known[key] = request_coverage or RequestCoverage()
            seconds = time.perf_counter() - begun if fresh else 0.0
            yield Checked(model, template, known[key], seconds)


def main(arguments: list[str]) -> int:
    """Write the table, or with ``--json`` a line for each model; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gen_defaults request-coverage", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each model")
    options = parser.parse_args(arguments)
    if not (options.folder / "repos").is_dir():
        sys.stderr.write(f"request-coverage: {options.folder} has no folder repos\n")
        return 1
    checked = list(read(options.folder))
    if options.json:
        for one in checked:
            sys.stdout.write(json.dumps({"model": one.model, **one.request_coverage.to_json()}) + "\n")
    else:
        sys.stdout.write(table(checked))
    return 0


def table(checked: list[Checked]) -> str:
    """Return the counts of findings, and of templates by whether they show tools."""
    models: dict[tuple[str, str, str], list[Checked]] = defaultdict(list)
    for one in checked:
        for finding in one.request_coverage.findings:
            models[_key(finding)].append(one)
    lines = ["| severity | kind | field | models | templates | such as |", "|---|---|---|---|---|---|"]
    order = [severity.value for severity in ORDER]
    for key in sorted(models, key=lambda k: (order.index(k[0]), -len(models[k]), k)):
        found = models[key]
        names = ", ".join(one.model for one in found[:SHOWN])
        lines.append(f"| {' | '.join(key)} | {len(found)} | {_templates(found)} | {names} |")
    return "\n".join([*lines, "", *_totals(checked)]) + "\n"


def _key(finding: CoverageFinding) -> tuple[str, str, str]:
    return finding.severity.value, finding.kind.value, "" if finding.field is None else finding.field.value


def _templates(checked: list[Checked]) -> int:
    return len({one.template.digest for one in checked})


def _totals(checked: list[Checked]) -> Iterator[str]:
    tools: Mapping[str, int] = Counter(one.request_coverage.tools for one in checked)
    shown = [one for one in checked if one.request_coverage.tools == "shown"]
    sound = [one for one in shown if not _grave(one.request_coverage)]
    clean = [one for one in shown if not one.request_coverage.findings]
    yield f"models: {len(checked)}, templates: {_templates(checked)}"
    yield f"tools: {', '.join(f'{name} {count}' for name, count in sorted(tools.items()))}"
    yield f"tools shown, no error and no warning: {len(sound)} models, {_templates(sound)} templates"
    yield f"tools shown, no finding at all: {len(clean)} models, {_templates(clean)} templates"
    seconds = sorted(one.seconds for one in checked if one.seconds)
    if seconds:
        middle = seconds[len(seconds) // 2]
        yield f"seconds a template, the whole analysis: median {middle:.2f}, longest {seconds[-1]:.2f}"


def _grave(request_coverage: RequestCoverage) -> list[dict[str, Any]]:
    return [f.to_json() for f in request_coverage.findings if f.severity is not CoverageSeverity.NOTICE]
