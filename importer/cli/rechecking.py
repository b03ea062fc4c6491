"""``importer recheck``: what importing again would change, one document after another.

``importer recheck --engine ENGINE@VERSION``: what another version of an engine changes, by cause.
"""

from __future__ import annotations

import argparse
import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from importer.app import upgrade_versions
from importer.app.recheck import Altered, CauseKind, ChangeCause, RecheckFinding, Yours
from importer.app.recheck import recheck as plan_again
from importer.app.session import ImportSession
from importer.app.upgrade import CauseGroup, Upgrade, Upgraded, UpgradeReport, absent_here
from importer.app.upgrade_versions import EngineVersion, difference
from importer.cli import bulk, messages, output
from importer.cli.options import FOLDER
from importer.config_file.document_keys import shown
from importer.config_file.merge import Take
from importer.config_file.store import Store, StoredDocument
from importer.errors import DocumentError, ImporterError, described
from importer.hub.local import ANYWHERE
from importer.hub.rate_limit import Budget, under
from importer.progress import Progress, Step
from importer.sentences import counted, render

CHANGED = 1  # the exit code where something would change, as diff has it
# Paths whose changes follow from a cause, which has a line of its own.
FOLLOWING = {
    "commit": (("importer", "revision"), ("artifacts",)),
    "engine": (("importer", "engine", "version"),),
    "backend": (("importer", "engine", "name"),),
    "model": (("importer", "model_id"), ("parameters", "model"), ("description",)),
}
SHOWN = 6  # files of a cause in one line
REMEMBERED = (
    "reference",
    "observed",
    "preferences",
    "device",
    "memory",
    "goal",
    "concurrency",
    "context",
)  # an import goes on with these by itself


def recheck(arguments: argparse.Namespace) -> int:
    """Return 1 where a document would change, else 0; after a failed check the first failure's exit code."""
    store = Store(Path(arguments.folder))
    names = list(dict.fromkeys(arguments.names)) or store.names()
    code = failed = 0
    with output.progress("recheck") as progress, ImportSession() as bench:
        budget = Budget()

        def work(name: str) -> RecheckFinding:
            with under(budget, progress):
                return plan_again(store, name, bench, ANYWHERE, offline=arguments.offline)

        for number, (name, future) in enumerate(bulk.in_order(names, work), 1):
            try:
                finding = future.result()
            except Exception as error:  # one document must not cost the others their answers
                failed = failed or described(error).exit_code
                print_error(name, described(error), as_json=arguments.json)
            else:
                code = CHANGED if finding.changed else code
                _print_finding(finding, arguments.folder, as_json=arguments.json)
            progress(Step(f"{number} of {len(names)}", number, len(names)))
    return failed or code


def print_error(name: str, error: ImporterError, *, as_json: bool) -> None:
    """Print that a document was not checked."""
    if as_json:
        members = messages.error_json(error)
        output.json_line({"schema": 1, "name": name, "error": members})
    else:
        output.line(output.plain(f"{name}: not checked: {messages.line(error)}"))


def _print_finding(finding: RecheckFinding, folder: str, *, as_json: bool) -> None:
    if as_json:
        output.json_line(finding.to_json(messages.error_json))
        return
    if not finding.changed:
        output.line(output.plain(f"{finding.name}: nothing would change."))
        return
    output.line(output.plain(f"{finding.name}: {_headline(finding)}"))
    for line in _lines(finding):
        output.line(output.plain(f"  {line}"))
    output.line(output.plain(f"  again: {again(finding.request, folder)}"))


def _headline(finding: RecheckFinding) -> str:
    if finding.refused is not None:
        return "it would not be imported again."
    number = len(finding.decisions)
    if finding.kinds == (CauseKind.WEIGHTS,) and not (number or finding.moved):
        return "its weights are others."
    if not number:
        return "no decision would change, but what is written of them."
    return f"{number} decision{'s' if number > 1 else ''} would change."


def _lines(finding: RecheckFinding) -> Iterator[str]:
    if finding.refused is not None:
        yield messages.line(finding.refused)
    for cause in finding.causes:
        yield from _cause(cause)
    for altered in finding.decisions:
        yield f"{altered.key}: {_change(altered)}"
        yield from (f"    {messages.text(why)}" for why in altered.why)
        yield from _covered(altered.yours)
    implied = [path for cause in finding.causes for path in FOLLOWING.get(cause.what, ())]
    for moved in finding.moved:
        if not any(moved.change.path[: len(path)] == path for path in implied):
            yield moved.change.line()
            yield from _covered(moved.yours)
    for conflict in finding.conflicts:
        yield f"conflict: {render(conflict.reason)}; --on-conflict mine or --on-conflict theirs decides it"


def _cause(cause: ChangeCause) -> Iterator[str]:
    """Yield the cause, and the first files that it names."""
    if cause.before or cause.after:
        yield f"{cause.what}: {cause.before or 'none'} → {cause.after or 'none'}"
    else:
        yield f"{cause.what}: {', '.join(cause.keys or ())}"
    if cause.files:
        more = len(cause.files) - SHOWN
        rest = f" and {more} more" if more > 0 else ""
        yield f"    files: {', '.join(cause.files[:SHOWN])}{rest}"


def _change(altered: Altered) -> str:
    if altered.before == altered.after:
        return f"{shown(altered.after)}, with a warning"
    return f"{shown(altered.before)} → {shown(altered.after)}"


def _covered(yours: Yours | None) -> Iterator[str]:
    if yours is not None:
        yield f"    yours: {shown(yours.value)}"


def again(request: Mapping[str, object], folder: str) -> str:
    """Return the command that imports the same again; what was set then is remembered by the receipt."""
    words = ["importer", str(request["reference"])]
    for key, value in request.items():
        if key not in REMEMBERED and value not in (None, False):
            words += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    words += ["--dir", folder] if folder != FOLDER else []
    return shlex.join(words)


def recheck_upgrade(arguments: argparse.Namespace) -> int:
    """Return 1 where a document changes or is left to a person, else 0; a failure's exit code before both.

    With ``--apply`` the documents are written that need no decision of a person.
    """
    after = upgrade_versions.named(arguments.engine)
    store = Store(Path(arguments.folder))
    names = list(dict.fromkeys(arguments.names)) or store.names()
    if not names:
        raise DocumentError("no-documents", folder=store.folder)
    with output.progress("recheck") as progress, ImportSession() as bench:
        run = _Run(Upgrade(after, bench, store, ANYWHERE), store, arguments)
        run.all(names, progress)
    if arguments.json:
        output.json_line({"schema": 1, "engine": after.label, "summary": run.summary()})
    else:
        for line in run.lines():
            output.line(output.plain(line))
    undone = run.report.changed - run.changed_and_written
    return run.code or (CHANGED if undone else 0)


class _Run:
    """One command: its documents, its report and its first failure."""

    def __init__(self, upgrade: Upgrade, store: Store, arguments: argparse.Namespace) -> None:
        self._upgrade, self._store, self._arguments = upgrade, store, arguments
        self._take: Take | None = arguments.on_conflict
        self._writing = threading.Lock()
        self._versions: dict[str, int] = {}
        self.report, self.code, self.changed_and_written = UpgradeReport(), 0, 0

    def all(self, names: Iterable[str], progress: Progress) -> None:
        """Judge every document; those without a snapshot again at the end, when others may stand for them."""
        names = [*names]
        later: list[str] = []
        done = 0
        for again, chosen in ((False, names), (True, later)):
            for name, future in bulk.in_order([*chosen], self._one):
                try:
                    upgraded, written = future.result()
                except Exception as error:  # one document must not cost the others their answers
                    failed = described(error)
                    if absent_here(failed) and not again:
                        later.append(name)
                        continue
                    self._failed(name, failed)
                else:
                    self._found(upgraded, written=written)
                done += 1
                progress(Step(f"{done} of {len(names)}", done, len(names)))

    def _one(self, name: str) -> tuple[Upgraded, bool]:
        upgraded = self._upgrade.judge(name)
        found = upgraded.found
        decided = bool(found.finding.conflicts) and self._take is not None and not found.left
        if not self._arguments.apply or not (found.writable or decided):
            return upgraded, False
        written = upgraded.write(self._take)
        with self._writing, self._store.locked():
            _check_unchanged(self._store, upgraded.stored)
            self._store.write(written.text, written.receipt)
        return upgraded, True

    def _found(self, upgraded: Upgraded, *, written: bool) -> None:
        found, report = upgraded.found, self.report
        report.add(found)
        report.written += written
        self.changed_and_written += written and found.changed
        if upgraded.moved is not None:
            before = str(upgraded.stored.need_receipt().engine.get("version"))
            self._versions[before] = self._versions.get(before, 0) + 1
        if self._arguments.json:
            line = found.finding.to_json(messages.error_json) | {
                "changed": found.changed, "judged": str(found.judged), "written": written,
                "left": [cause.to_json() for cause in found.left],
            }  # fmt: skip
            output.json_line(line)

    def _failed(self, name: str, error: ImporterError) -> None:
        self.code = self.code or error.exit_code
        if absent_here(error):
            self.report.unjudged += 1
        else:
            self.report.failed += 1
        print_error(name, error, as_json=self._arguments.json)

    def summary(self) -> dict[str, object]:
        """Return the report for ``--json``."""
        moved = [
            difference(self._upgrade.after.engine, b, self._upgrade.after.version) for b in self._known()
        ]
        return self.report.to_json() | {
            "evaluations": self._upgrade.evaluated,
            "installed": self._upgrade.installed,
            "from": dict(self._versions),
            "moved": [one.to_json() for one in moved],
        }

    def _known(self) -> list[str]:
        known = (upgrade_versions.known_before(self._upgrade.after.engine, one) for one in self._versions)
        return [*dict.fromkeys(one for one in known if one is not None)]

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        report, after = self.report, self._upgrade.after
        versions = ", ".join(sorted(self._versions)) or "–"
        yield f"{after.engine} {versions} → {after.version}: {report.documents:,} documents"
        changes = counted(report.changed, "document changes", "documents change")
        yield f"  {changes}, {report.version_only:,} in the version's number alone"
        yield from (f"  {count:,} {text}" for text, count in self._others() if count)
        yield from self._new(after)
        for group in report.groups():
            yield from _group(group)
        if self._arguments.apply:
            yield f"{report.written:,} documents written; each is a draft until it is approved"

    def _others(self) -> Iterator[tuple[str, int]]:
        report, after = self.report, self._upgrade.after
        judged = report.judged
        yield "judged by a proof on the new version", judged["proved"]
        unproved = f"{after.engine} {after.version} is not installed"
        yield f"compared by the parsers' names alone: {unproved}", judged["registry"]
        yield "judged by names, values and defaults: nothing else moved for them", judged["tables"]
        yield "evaluations stand for all of these: equal documents share one", self._upgrade.evaluated
        yield f"name {after.engine} {after.version} already", judged["same-version"]
        yield "are for another engine", judged["other-engine"]
        yield "have values that an edit and the version change differently", report.conflicts
        yield "would be refused by the new version until a person changes them", report.left
        yield "could not be imported for the new version", report.refused
        yield "need their snapshot again, and it is not on this disk: not judged", report.unjudged
        yield "could not be read", report.failed

    def _new(self, after: EngineVersion) -> Iterator[str]:
        """Yield what only the new version has."""
        for before in self._known():
            moved = difference(after.engine, before, after.version)
            for key, names in moved.parsers.items():
                if names:
                    yield f"  new {key.replace('_', ' ')}s: {', '.join(sorted(names))}"
            if moved.frontends:
                yield f"  new frontend: {', '.join(moved.frontends)} (--frontend); documents keep python"


def _check_unchanged(store: Store, stored: StoredDocument) -> None:
    """Raise DocumentError("changed") where the file is another one since it was judged."""
    now = store.load(stored.name)
    if now.text != stored.text:
        raise DocumentError("changed", path=stored.path, name=stored.name, now=now.digest, seen=stored.digest)


def _group(group: CauseGroup) -> Iterator[str]:
    change = f"{group.before or 'none'} → {group.after or 'none'}" if group.before or group.after else ""
    parts = [f"{group.total:>6}  {group.what}", ", ".join(group.keys), change]
    yield ": ".join(part for part in parts if part)
    if group.why is not None:
        yield f"          {group.why}"
    more = " …" if group.total > len(group.names) else ""
    left = f"; left to a person: {group.left}" if group.left else ""
    yield f"          {', '.join(group.names)}{more}{left}"
