"""The checks of token numbers against the rows of the embedding, and of merges against the vocabulary."""

from __future__ import annotations

from importer.engines import token_merges, token_numbers
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import CheckSkipped, DoctorCase, Fine, Result, Trouble, TroubleSeverity
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.reasons import Reason


def numbers(case: DoctorCase) -> Result:
    """Return whether every token has a row; one that only a user may write is a warning."""
    if case.weights is None:
        return CheckSkipped(Reason(DoctorReason.FILES_AWAY))
    table = token_numbers.of_folder(case.weights)
    if table is None:
        return CheckSkipped(Reason(DoctorReason.ROWS_UNKNOWN))
    if not table.beyond:
        return Fine(Reason(DoctorReason.ROWS, highest=table.highest, rows=table.rows))
    first = table.beyond[0]
    reason = Reason(DoctorReason.ROW_LACKING, token=first.content, number=first.number, rows=table.rows)
    severity = TroubleSeverity.STOPS if first.needed else TroubleSeverity.WARNING
    return Trouble(reason, Reason(DoctorRemedy.DROP_ADDED, token=first.content), severity, CONFIGURATION)


def merges(case: DoctorCase) -> Result:
    """Return whether the merges yield the words of the vocabulary."""
    if case.weights is None:
        return CheckSkipped(Reason(DoctorReason.FILES_AWAY))
    words = token_merges.of_folder(case.weights)
    if words is None:
        return CheckSkipped(Reason(DoctorReason.MERGES_NONE))
    fields = {"unmade": words.unmade, "sampled": words.sampled}
    if not words.other_order:
        return Fine(Reason(DoctorReason.MERGES, **fields))
    reason = Reason(DoctorReason.MERGES_OTHER, example=words.example, **fields)
    return Trouble(reason, Reason(DoctorRemedy.FETCH_MERGES), TroubleSeverity.WARNING, CONFIGURATION)
