"""Checks of vLLM's frontend in Rust, whose start ends where a document has what it lacks."""

from __future__ import annotations

from collections.abc import Iterator

from importer.chat_template.conventions import PYTHONIC
from importer.config_file import document_keys
from importer.decisions.decision import RUST
from importer.engines import registries
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import VLLM, CheckSkipped, DoctorCase, Fine, Result, Trouble, version
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.packages import again
from importer.engines.vllm_frontends import SINCE, is_rust
from importer.errors import UsageError
from importer.reasons import Reason

BINARY = "vllm/vllm-rs"
PYTHON_REMEDY = Reason(DoctorRemedy.PYTHON_FRONTEND)


def frontend(case: DoctorCase) -> Result:
    """Return whether the installed build has the frontend of the document, and can start it."""
    if case.document is None or not case.runs(*VLLM) or not is_rust(case.document):
        return CheckSkipped(Reason(DoctorReason.FRONTEND_ELSEWHERE))
    if case.installed is None:
        return CheckSkipped(Reason(DoctorReason.ENGINE_NOT_INSTALLED))
    here = case.installed.version
    if version(here)[: len(SINCE)] < SINCE:
        old = Reason(DoctorReason.FRONTEND_OLD, engine=case.installed.engine, version=here)
        return Trouble(old, PYTHON_REMEDY, part=CONFIGURATION)
    if case.places() and not any(case.files(BINARY)):
        return Trouble(Reason(DoctorReason.FRONTEND_MISSING, version=here), again(case))
    for problem in _unfit(case, here):
        return Trouble(problem, PYTHON_REMEDY, part=CONFIGURATION)
    return Fine(Reason(DoctorReason.FRONTEND, version=here))


def _unfit(case: DoctorCase, here: str) -> Iterator[Reason]:
    """Yield what the frontend rejects, at its start or with each request."""
    document = case.document or {}
    tool = document_keys.parser(document, "tool_parser")
    reasoning = document_keys.parser(document, "reasoning_parser")
    if tool == PYTHONIC:
        yield Reason(DoctorReason.FRONTEND_PLUGIN, parser=tool)
    try:
        joint = registries.load("vllm", here, RUST).joint
    except UsageError:
        return
    if tool != reasoning and (one := next((n for n in (tool, reasoning) if n in joint), None)):
        yield Reason(DoctorReason.FRONTEND_HALF, parser=one)
