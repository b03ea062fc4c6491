"""The check of a document's arguments by its engine's own parser and validators."""

from __future__ import annotations

from importer.engines import start_check
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import CheckSkipped, DoctorCase, Fine, Result, Trouble, TroubleSeverity
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.machine import has_gpu
from importer.errors import DocumentError
from importer.reasons import Reason


def arguments(case: DoctorCase) -> Result:
    """Return what the engine itself says to ``engine_args`` and ``env`` of the document.

    Without a card a build for cards gives warnings alone: some of its checks ask the card.
    """
    if case.document is None or not start_check.has_arguments(case.document):
        return CheckSkipped(Reason(DoctorReason.ARGUMENTS_NONE))
    if case.engine is None or case.installed is None:
        return CheckSkipped(Reason(DoctorReason.ENGINE_NOT_INSTALLED))
    at_home = not case.engine.needs_card or has_gpu(case.root / "dev")
    try:
        answer = start_check.ask(case.engine, case.installed, case.document, case.weights, card=at_home)
    except DocumentError as error:
        return Trouble(
            Reason(DoctorReason.ARGUMENTS_INVALID, problem=error.details["problem"]),
            Reason(DoctorRemedy.CHANGE_ARGUMENTS),
            part=CONFIGURATION,
        )
    if isinstance(answer, start_check.NotAsked):
        return CheckSkipped(Reason(DoctorReason.ARGUMENTS_UNKNOWN, reason=answer.reason))
    engine, version = case.engine.name, case.installed.version
    if isinstance(answer, start_check.Accepted):
        kind = DoctorReason.ARGUMENTS_VALID if answer.validators else DoctorReason.ARGUMENTS_PARSED
        return Fine(Reason(kind, engine=engine, version=version))
    refused = Reason(DoctorReason.ARGUMENTS_REFUSED, engine=engine, version=version, words=answer.words)
    severity = TroubleSeverity.STOPS if at_home else TroubleSeverity.WARNING
    return Trouble(refused, Reason(DoctorRemedy.CHANGE_ARGUMENTS), severity, CONFIGURATION)
