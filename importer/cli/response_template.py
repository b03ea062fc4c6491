"""The command ``response-template``: derive, prove, and print or write the tokenizer's configuration."""

from __future__ import annotations

import argparse
from pathlib import Path

from importer.app.decide import ImportRequest
from importer.app.export import DerivedParser, derive_parser
from importer.app.session import ImportSession
from importer.cli import output
from importer.cli.options import chosen
from importer.config_file.store import write_all
from importer.errors import DocumentError
from importer.hub.local import ANYWHERE
from importer.proof.template_proof import TemplateReason
from importer.reasons import Reason
from importer.sandbox.pool import borrowed
from importer.sentences import render


def run(arguments: argparse.Namespace) -> None:
    """Print the change for the model's repository, or write the whole file; raises ImporterError."""
    request = ImportRequest.of(arguments.reference, {**chosen(arguments), "backend": "vllm"})
    with (
        borrowed(arguments.sandbox) as sandbox,
        output.progress(arguments.reference) as progress,
        ImportSession(sandbox=sandbox) as bench,
    ):
        derived = derive_parser(request, bench, ANYWHERE, progress)
    proof, target = derived.proof, derived.target
    proved = Reason(
        TemplateReason.PROVED, cases=len(proof.passed), fields=proof.fields,
        engine=target.engine, frontend=target.frontend,
    )  # fmt: skip
    output.note(render(proved))
    output.note(render(Reason(TemplateReason.LIMITS)))
    if arguments.output is None:
        output.line(derived.change.rstrip("\n"))
    else:
        _write(derived, Path(arguments.output))


def _write(derived: DerivedParser, path: Path) -> None:
    """Write the file, over no file of another content; raises DocumentError."""
    text = derived.overlay
    if path.exists() and path.read_bytes() != text.encode():
        raise DocumentError("exists", path=path)
    write_all({path: text})
    output.note(f"Wrote {path}.")
