"""The command ``validate``, and the validation after an import."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from importer.app.import_ import Plan
from importer.app.local_evidence import recorded_proof
from importer.app.validate import ready, record, validate_against, validate_document
from importer.cli import messages, output, validation_options
from importer.cli.options import INSTALLED
from importer.cli.reporting import place, write_file
from importer.cli.validation_options import Server, chosen_server
from importer.document.grants import Grant, set_values
from importer.document.records import FormRecord, Report
from importer.document.store import Store, StoredDocument, named
from importer.errors import EngineError, UsageError, ValidationError
from importer.hub.local import ANYWHERE
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.reports import of_file, report_model, terminal
from importer.sentences import render

if TYPE_CHECKING:
    from importer.transport.command import RemoteCommand
    from importer.validation.probe import ProbeOptions

    Limits = Callable[[output.Progress], ProbeOptions]  # of a run whose steps are shown


def after_import(
    arguments: argparse.Namespace, planned: Plan, store: Store, values: Mapping[str, object]
) -> None:
    """Validate by default where engine and weights are here; fetch only on ``--validate``.

    ``values``  settings that the user has just typed, so that what they grant needs no approval.
    """
    if arguments.no_validate:
        return
    requested = arguments.validate is not None
    name = planned.target.backend if arguments.validate in (None, INSTALLED) else arguments.validate
    missing = None if requested else _missing(planned.snapshot, name)
    if missing:
        output.note(f"Not validated: {missing}")
        return
    from importer.validation.probe import ProbeOptions

    stored = store.load(planned.name)
    typed = set_values(values, stored.data)
    report = _run(
        stored, store, name, ProbeOptions.of, fetch=requested, snapshot=planned.snapshot, typed=typed
    )
    _verdict(report, stored, name)
    if not arguments.json:
        _show(report, stored)
    _passed(report, stored)


def validate(arguments: argparse.Namespace) -> None:
    """Run the command ``validate NAME|FILE``; every option is checked before anything starts."""
    if arguments.list_probes:
        _list(as_json=arguments.json)
        return
    from importer.transport.command import parse_command
    from importer.validation import registry
    from importer.validation.probe import ProbeOptions

    if arguments.name is None:
        raise UsageError("bad-option", option="NAME|FILE", problem="is required")
    validation_options.check(arguments)
    server, probes = chosen_server(arguments), registry.named(arguments.probe) if arguments.probe else None
    options = partial(
        ProbeOptions.of, probes=probes, thorough=arguments.thorough, seconds=arguments.time_limit
    )
    command = None if arguments.on is None else parse_command(arguments.on)
    places = {place(name): of_file(name) for name in arguments.report}
    store, stored = named(arguments.name, arguments.folder)
    stored.check()
    if isinstance(unread := recorded_proof(stored), Reason):
        output.note(f"Warning: {render(unread)}.")
    engine = arguments.engine or stored.backend
    if command is not None:
        report = _elsewhere(stored, store, command, engine, arguments)
        engine = command.where
    elif server is not None:
        engine = server.url
        report = _ask(stored, store, server, arguments.model, options)
    else:
        report = _run(stored, store, engine, options, fetch=arguments.fetch, port=arguments.port)
    _verdict(report, stored, engine)
    if arguments.json:
        output.json_line(report)
    else:
        _show(report, stored)
    model = report_model.sheet(store.find(stored.name) or stored, [report])
    for path, write in places.items():
        write_file(path, write.write(model))
    _passed(report, stored)


def _show(report: Report, stored: StoredDocument) -> None:
    """Print the verdicts, a block for each cause, and one line for the rest; of some probes, each one."""
    from importer.reasons import key_of
    from importer.sentences import counted
    from importer.validation.expectations import CommonReason
    from importer.validation.probes import every

    console, run = output.console(), report_model.run(report, stored.digest)
    unasked = [one for one in run.outcomes if (one.cause or {}).get("kind") == key_of(CommonReason.NOT_ASKED)]
    asked = tuple(one for one in run.outcomes if one not in unasked)
    part = report.get("partial") or {}
    chosen = bool(part) and len(part.get("probes") or ()) < len(every())  # some by name: each is shown
    if chosen:
        console.print(terminal.outcomes(asked, console.width))
    else:
        output.line(run.verdict)
        if run.causes:
            console.print(terminal.causes(replace(run, outcomes=asked)))
    if unasked:
        output.line(f"not asked: {counted(len(unasked), 'probe', 'probes')}; {unasked[0].reason}")
    if not chosen:
        output.line(f"probes: {terminal.counted(run)}")


def _list(*, as_json: bool) -> None:
    from importer.validation.probes import BY_NAME
    from importer.validation.registry import listed

    rows = [{"probe": name, "needs": needs, "lesson": lesson} for name, needs, lesson in listed()]
    output.parts(BY_NAME, rows, ("probe", "applies", "lesson"), json=as_json)


def _missing(snapshot: Snapshot, name: str) -> str | None:
    """Return why a validation does not run by default: what ``--validate`` would require or fetch."""
    from importer.engines import get, install
    from importer.hub.weights import locate_weights, weights_size

    try:
        install.need(get(name))
    except EngineError as error:
        return messages.line(error)
    if locate_weights(snapshot) is None:
        size = weights_size(snapshot)
        amount = "of unknown size" if size is None else f"of {size / 1e9:.2f} GB"
        where = "fetch weights" if snapshot.model_id else "need weights"
        return f"the weights are not on this disk; --validate would {where} {amount}."
    return None


def _run(
    stored: StoredDocument,
    store: Store,
    engine: str,
    options: Limits,
    *,
    fetch: bool,
    port: int | None = None,
    snapshot: Snapshot | None = None,
    typed: Collection[Grant] = (),
) -> Report:
    """Print what the doctor warns of, then validate; raises EngineError before anything is fetched."""
    from importer.engines import get, install
    from importer.validation.probes import BY_NAME

    install.need(get(engine))
    output.unusable(BY_NAME)
    for finding in ready(stored, engine, ANYWHERE, port=port):
        warning = finding.to_json(messages.text)
        output.note(f"Warning: {warning['message']}. {warning['remedy']}")
    with output.progress(f"{stored.name} on {engine}") as progress:
        return validate_document(
            stored, store, engine, ANYWHERE, options(progress),
            fetch=fetch, port=port, snapshot=snapshot, typed=typed,
        )  # fmt: skip


def _ask(stored: StoredDocument, store: Store, server: Server, model: str | None, options: Limits) -> Report:
    """Validate against a running server; return its report."""
    from importer.validation.probes import BY_NAME

    output.unusable(BY_NAME)
    if server.exposed:
        output.note("Warning: key and headers go to another machine over http, where others can read them.")
    with output.progress(f"{stored.name} against {server.url}") as progress:
        return validate_against(
            stored, store, server.url, model, ANYWHERE, options(progress),
            key=server.key, headers=server.headers,
        )  # fmt: skip


def _elsewhere(
    stored: StoredDocument, store: Store, command: RemoteCommand, engine: str, arguments: argparse.Namespace
) -> Report:
    """Validate by a command and return the report."""
    from importer.app.remote import report_of
    from importer.transport.exchange import START_SECONDS

    with output.progress(f"{stored.name} by {command.where}") as progress:
        report = report_of(
            stored, command, engine, progress, start_seconds=arguments.on_timeout or START_SECONDS,
            thorough=arguments.thorough, time_limit=arguments.time_limit, probes=arguments.probe or None,
        )  # fmt: skip
    record(report, store, stored.name, stored.digest)
    return report


def _verdict(report: Report, stored: StoredDocument, engine: str) -> None:
    """Print the result in one line."""
    called = (report.get("partial") or {}).get("model", stored.name)
    if called != stored.name:
        output.note(f"{stored.name}: the server calls the model {called}.")
    spent = ", ".join(f"{k} {v:.1f} s" for k, v in report["seconds"].items())
    pace = report_model.pace(report.get("speed") or {})
    output.always(f"{stored.name}: {_result(report, stored)} {engine} ({spent}{pace}).")
    for what, fit in (report.get("fit") or {}).items():
        amounts = f"{fit['predicted']:,} predicted, {fit['reported']:,} reported, {fit['error']:+z.2%}"
        output.always(f"{what.replace('_', ' ')}: {amounts}.")
    if report.get("observed"):
        _better_form(report["observed"], stored)


def _better_form(records: Sequence[FormRecord], stored: StoredDocument) -> None:
    """Print the command by which the model's calls arrive, where that is another template.

    It repeats the document's own import, in its folder.
    """
    from importer.app.request import again_of
    from importer.cli.options import in_folder
    from importer.signals.observed import CallForm, proposed

    forms = [CallForm.from_json(one) for one in records]
    served, best = forms[0], proposed(forms)
    if best.template and best.right:
        command = again_of(stored, *in_folder(str(stored.path.parent)), template=best.template)
        shares = f"{best.right} of {best.asked} calls arrive, now {served.right}"
        output.note(f"calls: with {command} {shares}.")


def _passed(report: Report, stored: StoredDocument) -> None:
    """Raise ValidationError where a probe did not pass."""
    if not report["passed"]:
        bad = [o for o in report["outcomes"] if o["outcome"] in ("fail", "inconclusive")]
        raise ValidationError(
            "probes-failed",
            failed=len(bad),
            total=len(report["outcomes"]),
            name=stored.name,
            receipt=stored.path.with_name(f"{stored.name}.receipt.json"),
        )


def _result(report: Report, stored: StoredDocument) -> str:
    """Return the result of a run as text; a partial run is no validation of the document."""
    part = report.get("partial")
    if part is None:
        return f"{'' if report['passed'] else 'not '}validated on"
    counted = terminal.counted(report_model.run(report, stored.digest))
    return f"{counted} (partial run, not recorded as validation){' against' if part['against'] else ' on'}"
