"""The command ``import``: decide, show, review, write and validate one model.

The output of an import: what requires attention, then key, value and source, with no figure cut.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer.app.decide import Decided, ImportRequest
from importer.app.import_ import Plan, Settled, build_plan, merge_plan, plan, write
from importer.app.session import ImportSession
from importer.cli import messages, output
from importer.cli.options import INSTALLED, chosen
from importer.config import now
from importer.config_file.attention import Attention
from importer.config_file.build import source, to_json
from importer.config_file.document_keys import IMPORTANT, REMARKS, UNWRITTEN, json_text
from importer.config_file.grants import set_values
from importer.config_file.merge import BOOKKEEPING
from importer.config_file.name_allocator import Names
from importer.config_file.store import Store
from importer.decisions.decide import PARSERS
from importer.decisions.decision import Decision
from importer.decisions.sampling import TEMPERATURE, SamplingReason
from importer.engines import get
from importer.errors import DocumentError, ImporterError, ValidationError
from importer.hub.local import ANYWHERE
from importer.memory.choose import Choice
from importer.memory.parallelism import cache_bytes
from importer.memory.plan_settings import gib
from importer.memory.plans import Plan as Deployment
from importer.sandbox import Sandbox
from importer.sentences import render
from importer.signals import speculation
from importer.signals.reasons import DraftReason

if TYPE_CHECKING:
    from importer.config_file.receipt import ReviewEntry


WIDTH, MIDDLE = 80, 20  # columns of a table where its cells fit, and of its values at least
ROWS = 16  # of a table; with what stands around it an ordinary import has 25 lines
HIDDEN = (*REMARKS, *UNWRITTEN, "quantization_scheme", "sampling_modes", "end_tokens")
FIRST = ("kind", "family", "backend", *IMPORTANT)


def import_lines(planned: Plan) -> Iterator[str]:
    """Yield the table, the number of values that it leaves out, the fit, and what is off and could be on."""
    rows = [tuple(map(output.plain, cells)) for cells in _rows(planned.decisions)]
    key, origin = (max(len(cells[at]) for cells in rows[:ROWS]) for at in (0, 2))
    room = max(MIDDLE, WIDTH - key - origin - 4)
    for name, value, text in rows[:ROWS]:
        head = f"{name:<{key}}  {value:<{room}}"
        if len(value) > room:  # the source has a line of its own: no figure is cut
            yield head
            head = " " * (key + 2 + room)
        yield f"{head}  {text}".rstrip()
    if len(rows) > ROWS:
        yield f"… and {len(rows) - ROWS} more: --explain prints all"
    yield output.plain(f"fit: {_fit(planned.fit)}")
    for word, layout in zip(
        ("plan", *["next"] * len(planned.fit.plans)), _compared(planned.fit), strict=False
    ):
        yield from map(output.plain, _plan(word, layout))
    temperature = planned.decisions.get(TEMPERATURE)
    drawn = (
        []
        if temperature is None
        else [one for one in temperature.why if one.kind is SamplingReason.SERVER_DRAWS]
    )
    yield from (output.plain(f"worth knowing: {messages.text(reason)}") for reason in drawn)
    yield from _offers(planned.decisions)


def _offers(decisions: Mapping[str, Decision]) -> Iterator[str]:
    decision = decisions.get(speculation.KEY)
    why = () if decision is None or decision.value is not None else decision.why
    if any(reason.kind is DraftReason.OFFERED for reason in why):
        yield messages.SPECULATION.format(key=speculation.KEY.partition(".")[2], method=speculation.OWN_HEADS)


def attention(warning: Attention) -> str:
    """Return a warning in one line, with the flags that help."""
    about = messages.ABOUT.get(warning.key, warning.key)
    return f"Needs attention: {about}: {messages.text(warning.reason)}"


def _rows(decisions: Mapping[str, Decision]) -> Iterator[tuple[str, str, str]]:
    for key in dict.fromkeys((*FIRST, *decisions)):
        decision = decisions.get(key)
        if decision is None or (key in HIDDEN and decision.status != "planned"):
            continue
        if decision.value is not None:
            yield key, _value(decision.value), source(decision)
        elif key in PARSERS:
            yield key, "–", "unknown" if decision.status == "unknown" else source(decision)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)


def _sizes(choice: Choice) -> str:
    """Return the sizes of a document that is for no device in particular."""
    if choice.fit is None:
        return "unknown"
    cache = cache_bytes(choice.fit)
    weights = choice.fit.term("weights")
    loaded = gib(0 if weights is None else weights.amount.likely)
    return f"no limits; weights {loaded}, cache {gib(cache)} for {choice.fit.load.context:,} tokens"


def _compared(choice: Choice) -> tuple[Deployment, ...]:
    """Return the plans where there are several: the document's, then the next-best."""
    return choice.plans if len(choice.plans) > 1 else ()


def _plan(word: str, plan: Deployment) -> Iterator[str]:
    """Yield the layout of a plan with the sequences that it holds, then the bounds of its times."""
    yield f"{word}: {output.layout(plan.to_json())}; {plan.sequences:,} sequences"
    if plan.step is not None:
        yield f"      at best {plan.step:.1f} ms/token, {plan.rate or 0:,.0f} tokens/s (calculated)"


def _fit(choice: Choice) -> str:
    """Return the device, and the share of its memory that the model needs."""
    if choice.device is None:
        return _sizes(choice)
    if (
        choice.verdict == "too-large"
        and choice.plans
        and choice.plans[0].device != choice.device.label
        and choice.fit is not None
        and choice.placed is not None
    ):
        each = f"{gib(choice.fit.total.likely)} of {gib(choice.placed.budget)} on each"
        return f"too large for {choice.device.label}; {choice.plans[0].device}: {each}"
    if choice.fit is None or choice.placed is None:
        return f"unknown on {choice.device.label}"
    cards = f" on each of {choice.placed.split.cards}" if choice.placed.split.cards > 1 else ""
    amounts = f"{gib(choice.fit.total.likely)} of {gib(choice.placed.budget)}"
    return f"{choice.verdict} on {choice.device.label}, about {amounts}{cards}"


def run(arguments: argparse.Namespace, sandbox: Sandbox) -> None:
    """Decide, show, write, validate; raises ImporterError."""
    store = Store(Path(arguments.folder))
    request = ImportRequest.of(arguments.reference, chosen(arguments))
    if arguments.validate not in (None, INSTALLED):
        get(arguments.validate)  # an unknown engine is an error before anything is done
    with output.progress(arguments.reference) as progress, ImportSession(sandbox=sandbox) as bench:
        planned = plan(request, names := Names(store), bench, ANYWHERE, progress)
    path = store.path(planned.name)
    first = names.first(planned.snapshot, planned.name)
    if first is not None and request.name is None:
        own = (planned.target.backend, planned.request.slot.own_device)
        has = (first.backend, None if own[1] is None else first.device)
        output.note(messages.variant(first.name, has, planned.name, own))
    settled = _settled(arguments, planned, store)
    planned = settled.plan
    for warning in (*settled.pending(request), *settled.warnings):
        output.note(attention(warning))
    if not arguments.json:
        _show(planned, path)
    _print_changes(request, settled)
    if arguments.explain:
        _explain(planned)
    if arguments.dry_run:
        output.note("Dry run: nothing was written.")
    elif (review := _review(arguments, request, settled)) is not False:
        _write(arguments, request, settled, store, review)
    if arguments.json:
        output.json_line(settled.report(path))


def _show(planned: Plan, path: Path) -> None:
    subject = planned.snapshot.model_id or str(planned.snapshot.directory)
    revision = f" at {planned.snapshot.revision}" if planned.snapshot.revision else ""
    output.line(output.plain(f"{subject}{revision} → {path}"))
    for text in import_lines(planned):
        output.line(text)


def _explain(planned: Plan) -> None:
    """Print every decision with its reasons, the evidence, the fit, the proof and the unknowns to stderr."""
    from importer.config_file.receipt import evidence_json

    worded = {key: to_json(decision, messages.INSTEAD) for key, decision in planned.decisions.items()}
    output.console(stderr=True).print(output.decisions(worded))
    proof = None if planned.proof is None else planned.proof.to_json()
    output.explain(evidence_json(planned.evidence), planned.fit.to_json(), proof)
    for name, reason in planned.snapshot.unknown.items():
        output.note(f"unknown: {name}: {render(reason)}")


def _review(arguments: argparse.Namespace, request: ImportRequest, settled: Settled) -> ReviewEntry | bool:
    """Return the approval of --yes or of the terminal; True leaves it pending, False stops."""
    from importer.config_file.receipt import ReviewEntry

    if arguments.yes:
        return settled.approval(_approval_by_option(), request) or True
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or arguments.json:
        return True
    answer = output.ask("Accept these decisions and write the document? [y/N] ") or ""
    if answer.strip().lower() in {"y", "yes"}:
        return ReviewEntry("approved", user(), now())
    output.note("Stopped: nothing was written.")
    return False


STANDING = {"draft": "a draft", "stale": "not what was approved", "rejected": "what was rejected"}


def _settled(arguments: argparse.Namespace, planned: Plan, store: Store) -> Settled:
    try:
        return merge_plan(planned, store, arguments.take)
    except DocumentError as error:
        for conflict in error.details.get("conflicts", ()) if not arguments.json else ():  # type: ignore[attr-defined]
            output.note(render(conflict.reason))
        raise


def _print_changes(typed: ImportRequest, settled: Settled) -> None:
    """Print the settings and edits that are kept from before, and the changes of the file's values."""
    whole = settled.planned.request
    brought = {warning.key for warning in settled.pending(typed)}  # a stranger's file may have said it
    remembered = [
        f"{key}={output.value(value)}" for key, value in whole.added(typed).items()
        if not any(grant.key in brought for grant in set_values({key: value}, settled.plan.built.data))
    ]  # fmt: skip
    if typed.template is None and whole.template is not None:
        word = whole.template.word
        output.note(f"As you said at an earlier import: --template {word}. --template none takes it back.")
    if remembered:
        output.note(f"As you said at an earlier import: {', '.join(remembered)}. --unset KEY takes it back.")
    for title, changes in (("Your edit stays", settled.edits), ("Changes", settled.changes)):
        for change in changes:
            if change.path[0] not in BOOKKEEPING:
                output.note(f"{title}: {change.line()}")


def _write(
    arguments: argparse.Namespace,
    request: ImportRequest,
    settled: Settled,
    store: Store,
    review: ReviewEntry | bool,
) -> None:
    from importer.app import approvals
    from importer.cli.validating import after_import
    from importer.config_file.receipt import ReviewEntry
    from importer.hub import digests

    planned = settled.plan
    with output.progress("import") as progress:
        digests.imported(planned.snapshot, progress)  # read before the lock, and kept for the receipt
    with store.locked():
        receipt = write(settled, store, review if isinstance(review, ReviewEntry) else None)
    state = receipt.state(planned.digest)
    if state == "approved" and approvals.missing(store.load(planned.name)):
        state = "draft"  # as a run and an export have it
    same = settled.old is not None and settled.old.text == settled.text
    wrote = f"{store.path(planned.name)} stays as it is" if same else f"Wrote {store.path(planned.name)}"
    output.note(f"{wrote}; review: {'pending' if state == 'draft' else state}.")
    if state in STANDING:
        how = output.typed("review", planned.name, arguments.folder)
        output.note(f"It is {STANDING[state]}: {how} shows it and asks.")
    try:
        after_import(arguments, planned, store, request.preferences.values)
    except ValidationError:
        if arguments.json:  # the line is always printed; the exit code has the result
            output.json_line(settled.report(store.path(planned.name)))
        raise


def error_line(reference: str | None, error: ImporterError) -> str:
    """Return the frozen line of --json for a failure."""
    members = messages.error_json(error, reference)
    conflicts = error.details.get("conflicts")
    if isinstance(conflicts, list):
        members["conflicts"] = [conflict.to_json() for conflict in conflicts]
    troubles = error.details.get("troubles")
    if isinstance(troubles, tuple):
        members["troubles"] = [one.to_json(messages.text) for one in troubles]
    return json_text({"schema": 1, "reference": reference, "error": members})


def written(decided: Decided, names: Names, store: Store, arguments: argparse.Namespace) -> Settled:
    """Plan a document of a list, and write it where this is no dry run."""
    with nullcontext() if arguments.dry_run else store.locked():
        settled = merge_plan(build_plan(decided, names), store, arguments.take)
        if not arguments.dry_run:
            approval = _approval_by_option() if arguments.yes else None
            write(settled, store, settled.approval(approval, ImportRequest.of("", chosen(arguments))))
    return settled


def _approval_by_option() -> ReviewEntry:
    """Return the review that --yes records."""
    from importer.config_file.receipt import ReviewEntry

    return ReviewEntry("approved", f"{user()} (--yes)", now())


def user() -> str:
    """Return the user's name, for the receipt."""
    from importer.storage.actors import NOBODY

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return NOBODY
