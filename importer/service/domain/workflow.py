"""The way of a document to its release as a typed state machine: its steps, and the actions that lead on.

What a reviewer is shown of a document beside its decisions: values, losses, one rendered case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal

from importer.app.overview import PublicationState, entry_of, publication_state
from importer.app.parser_choice import lacking
from importer.document import schema
from importer.document.document_keys import KeyPath, same
from importer.document.effective import Editor, effective, value_at
from importer.document.store import StoredDocument
from importer.document.validation_state import validation
from importer.engines.registries import sampling_defaults
from importer.errors import ServiceError
from importer.frozen import frozen
from importer.reasons import Reason
from importer.sentences import render
from importer.service.domain.fixes import fix_of
from importer.service.domain.gallery import DocumentVersion, Gallery, intact
from importer.service.domain.grants import Caller, need_approval
from importer.storage import documents, releases

Step = Literal["import", "review", "validation", "release"]
StepState = Literal["done", "now", "later", "blocked"]
Action = Literal["approve", "reject", "validate", "release", "withdraw", "reimport", "delete"]


class Obstacle(StrEnum):
    """What keeps an action from being done, beside the reasons of a publication."""

    INVALID = "invalid"
    NO_RECEIPT = "no-receipt"
    ALREADY = "already"
    CODE_NOT_APPROVED = "code-not-approved"
    NO_WORKER = "no-worker"
    OPEN_JOB = "open-job"
    NOTHING_SERVED = "nothing-served"
    NOT_RUNNABLE = "not-runnable"
    WRONG_SCOPE = "wrong-scope"


@frozen
class Situation:
    """A document, the digest that is served, and what its validation would wait for.

    ``refused``  is the kind of the problem that keeps a validation from being ordered.
    ``left``     the version that was rolled back, where it has the document's data.
    """

    stored: StoredDocument
    served: str | None
    caller: Caller
    able: bool
    open_job: str | None
    refused: str | None = None
    left: int | None = None

    @property
    def state(self) -> PublicationState:
        """Return the state of its publication."""
        return publication_state(self.stored, self.served)


@frozen
class Blocked:
    """What keeps an action from being done: its kind with fields; a message where the kind has one."""

    kind: str
    fields: Mapping[str, object]
    message: str | None = None


@frozen
class WorkflowStep:
    """One step of the way to a release: ``now`` is the next one, ``blocked`` the next one with obstacles."""

    step: Step
    state: StepState
    action: Action
    scope: str
    blocked: list[Blocked]


@frozen
class PossibleAction:
    """An action: the state after it, where that is certain, and what keeps this caller from it.

    ``primary``  whether it is the one that leads on to a release.
    """

    action: Action
    scope: str
    to: str | None
    allowed: bool
    blocked: list[Blocked]
    primary: bool


@frozen
class NextStep:
    """What a person does next. ``fields`` of a failure: probe, reason, remedy, and ``fix`` with a merge patch
    (``change``) or a ``command``; of a rejection who said so, when and why; of a roll-back the release that
    was left.
    """

    kind: Literal["failed", "rejected", "rolled-back", "import", "review", "validation", "release", "done"]
    fields: Mapping[str, object]


def steps(at: Situation) -> list[WorkflowStep]:
    """Return the steps to a release in their order, each with its state and what it needs."""
    state, found, reached = at.state, list[WorkflowStep](), False
    for step, done, action, scope in _steps(at, state):
        blocked = [] if done else [*_of(at, action, state)]
        status: StepState = "done" if done else "later" if reached else "blocked" if blocked else "now"
        reached = reached or not done
        found.append(WorkflowStep(step, status, action, scope, blocked))
    return found


def _steps(at: Situation, state: PublicationState) -> Iterator[tuple[Step, bool, Action, str]]:
    yield "import", at.stored.receipt is not None, "reimport", "import"
    yield "review", state.review == "approved", "approve", "approve"
    yield "validation", state.validation == "passed", "validate", "import"
    yield "release", state.state == "published", "release", "approve"


def next_step(at: Situation) -> NextStep:
    """Return kind and fields of what a person does next: the gravest fact comes before the order of steps.

    ``failed``  of a validation of these data: the probe, its reason, its remedy and the fix. ``rejected``,
    ``rolled-back`` from the release with these data. Then ``step`` that is not done, or ``done``.
    """
    state = at.state
    if state.validation == "failed" and at.stored.receipt is not None:
        run = validation(at.stored.receipt, at.stored.data, at.stored.digest).run
        lost = [one for one in ({} if run is None else run).get("outcomes", ()) if one["outcome"] == "fail"]
        first = next((one for one in lost if one.get("remedy_message")), lost[0] if lost else None)
        fields: dict[str, object] = {} if first is None else {
            "probe": first.get("probe"), "reason": first.get("reason"),
            "remedy": first.get("remedy_message") or None, "fix": fix_of(first, at.stored),
        }  # fmt: skip
        return NextStep("failed", fields | {"more": max(0, len(lost) - 1)})
    if state.review == "rejected" and at.stored.receipt is not None:
        said: Mapping[str, object] = at.stored.receipt.last_review(at.stored.digest) or {}
        return NextStep("rejected", {key: said.get(key) for key in ("by", "at", "note")})
    if at.left is not None:
        return NextStep("rolled-back", {"left": at.left})
    return NextStep(next((one.step for one in steps(at) if one.state in ("now", "blocked")), "done"), {})


SCOPES: dict[Action, str] = {
    "approve": "approve", "reject": "approve", "validate": "import", "release": "approve",
    "withdraw": "approve", "reimport": "import", "delete": "approve",
}  # fmt: skip
PRIMARY: tuple[Action, ...] = ("release", "approve", "validate")  # as the steps name what is next


def actions(at: Situation) -> list[PossibleAction]:
    """Return each action with its scope, its obstacles, the state after it, and which one leads on."""
    state = at.state
    blocked = {action: [*_of(at, action, state)] for action in SCOPES}
    for action, scope in SCOPES.items():
        if not at.caller.may(scope):
            blocked[action].append(_obstacle(Obstacle.WRONG_SCOPE, scope=scope))
    leading = next((one for one in PRIMARY if not blocked[one] and _leads(at, one, state)), None)
    return [
        PossibleAction(one, scope, _after(one, state), not blocked[one], blocked[one], one == leading)
        for one, scope in SCOPES.items()
    ]


def _leads(at: Situation, action: Action, state: PublicationState) -> bool:
    """Return whether an action leads on to a release.

    An approval does only where the document can have an entry: else it ends without a release. Nothing does
    after a roll-back, and only another validation after one that failed.
    """
    if at.left is not None or state.state == "published" or (action == "approve" and not listed(at.stored)):
        return False
    return action == "validate" or state.validation != "failed"


def listed(stored: StoredDocument) -> bool:
    """Return whether LocalAI can have an entry of a document."""
    return not isinstance(entry_of(stored), Reason)


def _after(action: Action, state: PublicationState) -> str | None:
    """Return the state after an action, where that is certain."""
    if action == "approve" and state.validation in ("never", "failed"):
        return "approved"
    known = {"reject": "rejected", "release": "published", "delete": "deleted"}
    return known.get(action)


def _of(at: Situation, action: Action, state: PublicationState) -> Iterator[Blocked]:
    if at.stored.receipt is None and action != "delete":
        yield _obstacle(Obstacle.NO_RECEIPT)
        return
    if action in ("approve", "validate"):
        known = schema.problems(at.stored.text, model=at.stored.facts)
        if faults := [*known, *lacking(at.stored.data)]:
            yield _obstacle(Obstacle.INVALID, number=len(faults))
    if action == "approve" and state.review == "approved":
        yield _obstacle(Obstacle.ALREADY)
    if action == "reject" and state.review == "rejected":
        yield _obstacle(Obstacle.ALREADY)
    if action == "validate":
        yield from _validation(at)
    if action == "release" and state.state == "published":
        yield _obstacle(Obstacle.ALREADY)
    elif action == "release" and state.state != "ready" and state.reason is not None:
        yield _reason(state.reason)
    if action == "withdraw" and at.served is None:
        yield _obstacle(Obstacle.NOTHING_SERVED)


def _validation(at: Situation) -> Iterator[Blocked]:
    try:
        need_approval(at.stored)
    except ServiceError:
        yield _obstacle(Obstacle.CODE_NOT_APPROVED)
    if at.refused is not None:
        yield _obstacle(Obstacle.NOT_RUNNABLE, problem=at.refused)
    if at.open_job is not None:
        yield _obstacle(Obstacle.OPEN_JOB, job=at.open_job)
    elif not at.able:
        yield _obstacle(Obstacle.NO_WORKER, engine=at.stored.backend)


def _obstacle(kind: Obstacle, **fields: object) -> Blocked:
    return Blocked(kind.value, fields)


def _reason(reason: Reason) -> Blocked:
    fields = {key: value for key, value in reason.to_json().items() if key != "kind"}
    return Blocked(str(reason.kind.value), fields, render(reason))


def values_of(gallery: Gallery, stored: StoredDocument) -> list[dict[str, object]]:
    """Return each key as it is now, in the import, and in the release that is served, with its editor."""
    with gallery.database.reading() as connection:
        served = releases.served(connection, stored.name)
        history = _History(lambda: documents.makers(connection, stored.name))
        past = None if served is None else documents.version(connection, stored.name, served.version)
        data = None if past is None else DocumentVersion.of(past).document
        return [
            value.to_json()
            for value in effective(
                stored.data, stored.need_receipt(), data, history.editor, sampling_defaults(stored.data)
            )
        ]


class _History:
    """Who made which version of a document; read once, and only where a value was edited."""

    def __init__(self, read: Any) -> None:
        self._read = read
        self._makers: list[tuple[Mapping[str, object], Editor]] | None = None

    def editor(self, path: KeyPath) -> Editor | None:
        """Return who made the oldest of the newest versions with one value at a path."""
        if self._makers is None:
            read = ((intact(data, known), Editor(by, at)) for data, known, by, at in self._read())
            self._makers = [(data, editor) for data, editor in read if data is not None]
        found = None
        for data, maker in self._makers:
            if not _same(value_at(data, path), value_at(self._makers[0][0], path)):
                return found
            found = maker
        return found


def _same(one: Any, other: Any) -> bool:
    return one is other or same(one, other)
