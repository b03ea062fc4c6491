"""The lines of a list of imports, each accepted or refused alone; every fault of a request in one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from importer.config_file.grants import Grant, GrantReason
from importer.errors import ImporterError, ServiceError
from importer.hub import organisation, organisation_filters, parse
from importer.hub.reference import LONGEST
from importer.service import messages
from importer.service.domain.grants import Caller, admitted, need_approver
from importer.service.domain.import_request import SERVED, Import, filters_of
from importer.service.problems import problem
from importer.service.settings import Settings
from importer.storage.jobs import Job

# Options that are judged together, each group without the others, so that all faults are found.
GROUPS = (
    ("name",), ("backend",), ("device", "memory", "per_device"), ("template",), ("set", "unset"),
    ("engine_version", "frontend"),
)  # fmt: skip
PLACEHOLDER = "owner/name"  # a reference without a fault, to judge options alone
SHOWN = 200  # characters of a refused line


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 1, the reference as it was sent, and the problem where it is refused."""

    number: int
    reference: Any
    error: Mapping[str, Any] | None = None

    @property
    def refusal(self) -> dict[str, Any]:
        """Return what the list keeps of a refused line."""
        sent = self.reference if isinstance(self.reference, str) else repr(self.reference)
        return {"line": self.number, "reference": sent[:SHOWN], "error": self.error}

    def result(self, job: Job | None) -> dict[str, Any]:
        """Return the line's result, as an answer of its own would have it."""
        if job is None:
            return self.refusal | {"status": (self.error or {}).get("status", 400), "job": None, "href": None}
        return {
            "line": self.number, "reference": self.reference, "status": 202, "job": job.id,
            "href": f"/v1/jobs/{job.id}", "error": None,
        }  # fmt: skip


def check_request(body: Import, who: Caller, settings: Settings) -> None:
    """Raise the first fault of a request of one reference, with all faults in its ``errors``."""
    faults = [
        *_faults(str(body.reference), body.options["revision"], who, settings),
        *_option_faults(body, who, settings),
    ]
    _raise([("/reference", error) for error in faults])
    admitted(body, who, settings)


def check_organisation(body: Import, who: Caller, settings: Settings) -> None:
    """Raise the first fault of an organisation's import, with all faults in its ``errors``."""
    faults: list[tuple[str, ImporterError]] = []
    for check in (
        lambda: organisation.check_name(str(body.organisation)),
        lambda: organisation_filters.parse(filters_of(body)),
    ):
        try:
            check()
        except ImporterError as error:
            faults.append(("", error))
    _raise([*faults, *(("", error) for error in _option_faults(body, who, settings))])


def read_lines(body: Import, references: Sequence[Any], who: Caller, settings: Settings) -> list[Line]:
    """Return every line of a list with its problem, where it has one.

    Raises the first fault with all in its ``errors``: of an option, and where ``atomic`` or every line is
    refused.
    """
    if len(references) > settings.references:
        detail = f"a list has at most {settings.references} references"
        raise ServiceError(
            "bad-request", problem=detail, errors=[{"pointer": "/references", "detail": detail}]
        )
    found = [
        (f"/references/{place}", *_line(one, body.options["revision"], who, settings))
        for place, one in enumerate(references)
    ]
    lines_faults = [(pointer, error) for pointer, _, errors in found for error in errors]
    options = [("", error) for error in _option_faults(body, who, settings)]
    if options or (lines_faults and (body.atomic or all(errors for _, _, errors in found))):
        _raise([*options, *lines_faults])
    return [
        Line(number, reference, _problem(pointer, errors) if errors else None)
        for number, (pointer, reference, errors) in enumerate(found, 1)
    ]


def _line(
    sent: Any, revision: str | None, who: Caller, settings: Settings
) -> tuple[Any, list[ImporterError]]:
    """Return the reference and all its faults."""
    if not isinstance(sent, str):
        return sent, [_bad("must be a string")]
    reference = sent.strip()
    if not reference:
        return reference, [_bad("must not be empty")]
    if len(reference) > LONGEST:
        return reference, [_bad(f"must have at most {LONGEST} characters")]
    return reference, _faults(reference, revision, who, settings)


def _bad(detail: str) -> ServiceError:
    return ServiceError("bad-request", problem=detail)


def _faults(reference: str, revision: str | None, who: Caller, settings: Settings) -> list[ImporterError]:
    """Return all that is wrong with a reference for this caller."""
    found: list[ImporterError] = []
    try:
        directory = parse(reference, revision).directory
    except ImporterError as error:
        return [error]
    if directory is not None:
        for check in (
            lambda: need_approver(who, [Grant(GrantReason.FOLDER, reference)]),
            lambda: settings.places.folder(directory),
        ):
            try:
                check()
            except ImporterError as error:
                found.append(error)
    return found


def _option_faults(body: Import, who: Caller, settings: Settings) -> Iterator[ImporterError]:
    """Yield the fault of each group of options alone, then that of all together."""
    given = body.model_dump(exclude_unset=True)
    seen: set[tuple[str, str]] = set()
    alone = [{name: given[name] for name in group if name in given} for group in GROUPS]
    together = {word: given[word] for word in SERVED if word in given and word != "revision"}
    for options in (*filter(None, alone), together):
        try:
            admitted(Import(reference=PLACEHOLDER, **options), who, settings)
        except ImporterError as error:
            fault = (error.kind, repr(error.details))
            if fault not in seen and not (options is together and seen):
                seen.add(fault)
                yield error


def _raise(faults: Sequence[tuple[str, ImporterError]]) -> None:
    """Raise the first fault, if there is one; several are all in its ``errors``."""
    if not faults:
        return
    first = faults[0][1]
    raise first.but(errors=[one for pointer, error in faults for one in _errors(pointer, error)])


def _errors(pointer: str, error: ImporterError) -> list[dict[str, Any]]:
    """Return the faults of one failure with the field that each is about, for a line its place."""
    named = problem(error).get("errors") or [{"pointer": "", "detail": messages.detail(error)}]
    if not pointer:
        return [dict(one) for one in named]
    if pointer == "/reference":
        return [{**one, "pointer": one["pointer"] or pointer} for one in named]
    return [{"pointer": pointer, "detail": messages.detail(error)}]


def _problem(pointer: str, errors: Sequence[ImporterError]) -> dict[str, Any]:
    listed = [one for error in errors for one in _errors(pointer, error)]
    return problem(errors[0], listed)
