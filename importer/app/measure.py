"""Memory of a document: measured at a start with random weights, or judged for each device of the table.

Config, tokenizer and processor are fetched, and nothing of the weights. The engine reports weights,
activations, graphs and the room of its cache. The receipt keeps the figures: an import of the same commit for
the same kind of device and version of the engine counts with them in place of the estimate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from importer import config
from importer.app.engine_request import document_keys, engine_request, recorded_defaults
from importer.app.import_ import Plan, Settled, merge_plan, write
from importer.app.import_request import ImportRequest
from importer.app.local_evidence import snapshot_of
from importer.app.recheck import planned_again
from importer.app.session import ImportSession
from importer.app.target import HERE
from importer.app.validate import fetched
from importer.config import now
from importer.document.document import Block, Document, document_of
from importer.document.document_keys import digest
from importer.document.merge import Take
from importer.document.store import Store, StoredDocument
from importer.engines import machine
from importer.engines.deaths import OF_CARDS, Died
from importer.engines.lacking import Lacking
from importer.errors import EngineError
from importer.frozen import frozen
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot, mapping, whole
from importer.hub.weights import fetch_beside
from importer.memory import shape, weights
from importer.memory.choose import Choice, choose
from importer.memory.device_answers import DeviceAnswer, answer
from importer.memory.devices import Device, known, named
from importer.memory.engine_keys import CACHE, CONTEXT, DATA, PIPELINE, TENSOR, FitRequest
from importer.memory.judgement import parts
from importer.memory.measured import Measured, Reported, alike, contradiction, ran, scale
from importer.progress import Progress, Step, silent
from importer.reasons import Reason, ReasonKind

if TYPE_CHECKING:
    from importer.engines.base import Engine
    from importer.engines.install import Installed
    from importer.engines.process import EngineServer


MINE: Take = "mine"  # of a conflict: a person's value stays
RANDOM = "dummy"  # load_format of weights that no file has
OF_MEMORY = OF_CARDS | {Died.CARD_HELD, Lacking.MEMORY, Lacking.KILLED}


class UnmeasuredReason(ReasonKind):
    """Why the memory of a document is not measured."""

    NOT_READ = "only vLLM's starts are measured, and its engine is {engine}"
    OTHER_DEVICE = (
        "it is for {device}, and {here} is here; name a machine that has it, or import it for this one"
    )
    NO_DEVICE = "it is for no device; import it for the one that is measured"
    LIE = "{why}: the log is not believed"
    NO_ROOM = "{problem}; {parts}"
    NO_LOG = "the log {path} cannot be read: {problem}"
    OTHER_MODEL = "the log has weights of {found}, and those of this model are {own}"
    OTHER_CARD = "the log is of a card with {total}, and it is for {device}, with {memory}"


def measure(
    stored: StoredDocument,
    engine_name: str,
    places: AllowedFolders,
    *,
    progress: Progress,
    watch: Callable[[EngineServer], None] = lambda _: None,
    hold: Sequence[int] = (),
) -> Measured:
    """Start the engine with a document and random weights; return what it reported. It has ended then.

    Raises EngineError: "not-measured", and what a start raises; HubError and DocumentError.
    """
    from importer.engines import doctor, get, install, log_figures
    from importer.engines.doctor.case import of_engine

    engine = get(engine_name)
    if "random-weights" not in engine.offers:
        raise unmeasured(stored, Reason(UnmeasuredReason.NOT_READ, engine=engine.name))
    device = _device(stored, engine)
    snapshot = snapshot_of(stored, places)
    choice = as_written(stored, snapshot, device)
    installed = install.need(engine)
    folder = _folder(snapshot, progress)
    document = _document(stored, device, installed.version)
    doctor.refuse(
        of_engine(engine_name, document=document, fit=choice.to_json(), weights=None, port=None),
        stored.name, fetched=False,
    )  # fmt: skip
    run = _Run.of(engine, installed, stored, document, folder, choice, progress, watch, hold)
    reported = _exact(log_figures.read_memory(run.log), device, document)
    same = choice.fit is not None and reported.context == choice.fit.load.context
    pool = choice.pool if same else None
    beside = beside_cache(reported, run.held, device, stored.data)
    why = contradiction(reported, beside, device.memory or 0, pool)
    if why is not None or beside is None or choice.fit is None:
        raise unmeasured(stored, Reason(UnmeasuredReason.LIE, why=why or choice.reason, log=run.log))
    cards = machine.cards_named() if device.is_card else []
    return Measured(
        stored.backend, installed.version, snapshot.revision, now(), run.seconds,
        device.to_json(), ran(choice.fit.load), beside, reported, run.served, scale(reported, pool) or 1.0,
        tuple(name for name, _ in cards), cards[0][1] if cards else None,
    )  # fmt: skip


@frozen
class _Run:
    """A start that has ended: its log, the bytes that its processes held, and whether it served."""

    log: Path
    held: int | None
    served: bool
    seconds: float

    @classmethod
    def of(
        cls,
        engine: Engine,
        installed: Installed,
        stored: StoredDocument,
        document: Document,
        folder: Path,
        choice: Choice,
        progress: Progress,
        watch: Callable[[EngineServer], None],
        hold: Sequence[int],
    ) -> _Run:
        """Start the engine and end it; an end for a context that does not fit has its figures, too."""
        from importer.engines import logs
        from importer.engines.process import serve
        from importer.engines.process_group import proportional

        log, started = logs.fresh(config.logs(), engine.name), time.monotonic()
        held, served = None, True
        try:
            with serve(
                engine, installed.python, document, folder,
                progress=progress, template=stored.chat_template(), hold=hold, log_path=log,
            ) as running:  # fmt: skip
                watch(running)
                held = proportional(running.pid)
        except EngineError as error:
            served = False
            if not _told_room(error):
                raise _with_parts(error, choice) from None
        return cls(log, held, served, round(time.monotonic() - started, 1))


def measure_document(
    stored: StoredDocument,
    store: Store,
    bench: ImportSession,
    places: AllowedFolders,
    start: Callable[[StoredDocument], Measured],
    progress: Progress = silent,
) -> tuple[Measured, Settled]:
    """Measure a document by ``start``, choose its settings anew and write them; a person's values stay.

    Nothing is written before the end of the engine. Raises what ``measure`` and an import raise.
    """
    found = start(for_a_device(stored, store, bench, places))
    progress("choosing by what it reported")
    planned = plan_measured(stored, found, store, bench, places)
    with store.locked():
        return found, settle(planned, store)


def for_a_device(
    stored: StoredDocument, store: Store, bench: ImportSession, places: AllowedFolders
) -> StoredDocument:
    """Return the document to start: one for no device as an import for this machine would write it."""
    if _meant(stored):
        return stored
    settled = merge_plan(_planned(stored, store, bench, places, device=HERE), store, MINE)
    return replace(
        stored, text=settled.text, data=settled.plan.built.data, digest=digest(settled.plan.built.data)
    )


def plan_measured(
    stored: StoredDocument, found: Measured, store: Store, bench: ImportSession, places: AllowedFolders
) -> Plan:
    """Return the plan that rests on a measurement; writes nothing."""
    device = {} if _meant(stored) else {"device": HERE}
    return _planned(stored, store, bench, places, measured=found.to_json(), **device)


def settle(planned: Plan, store: Store) -> Settled:
    """Write a plan into the present document; the caller holds the store's lock."""
    settled = merge_plan(planned, store, MINE)
    write(settled, store)
    return settled


def _planned(
    stored: StoredDocument, store: Store, bench: ImportSession, places: AllowedFolders, **asked: Any
) -> Plan:
    receipt = stored.need_receipt()
    request = replace(ImportRequest.from_json(receipt.request).after(stored), **asked)
    return planned_again(request, receipt, store, bench, places)


def _device(stored: StoredDocument, engine: Engine) -> Device:
    """Return this machine's device, with as many cards as the document is laid out on."""
    here = machine.this_machine(stored.backend, cards=engine.needs_card)
    values, needed = FitRequest(stored.data), 1
    for key in (TENSOR, PIPELINE, DATA):
        needed *= values.count(key) or 1
    if needed > here.count:
        raise unmeasured(
            stored, Reason(UnmeasuredReason.OTHER_DEVICE, device=f"{needed}x{here.name}", here=here.label)
        )
    used = replace(here, count=needed) if here.is_card else here
    meant = _meant(stored)
    if meant and not alike(meant, used) and meant.get("name") != used.name:
        shown = next((name for name, _ in machine.cards_named()), f"{here.name} ({here.kind})")
        raise unmeasured(stored, Reason(UnmeasuredReason.OTHER_DEVICE, device=meant.get("name"), here=shown))
    return used


def meant_device(stored: StoredDocument) -> Device:
    """Return the device that a document is for; raises EngineError("not-measured") for none."""
    meant = _meant(stored)
    if not meant:
        raise unmeasured(stored, Reason(UnmeasuredReason.NO_DEVICE))
    device = replace(named(str(meant["name"])), count=whole(meant.get("count"), 1) or 1)
    memory = whole(meant.get("memory"), 1)
    return device if memory in (None, device.memory) else device.with_memory(memory)


def _meant(stored: StoredDocument) -> Mapping[str, object]:
    """Return the device that the document is for; empty for none."""
    return mapping(mapping(None if stored.receipt is None else stored.receipt.fit).get("device"))


def _folder(snapshot: Snapshot, progress: Progress) -> Path:
    """Return the folder of config, tokenizer and processor, fetched where they are not here."""
    progress("fetching config and tokenizer")
    return fetch_beside(
        snapshot, lambda done, total: progress(Step(fetched(done, total), done, total, "bytes"))
    )


def as_written(
    stored: StoredDocument, snapshot: Snapshot, device: Device, run: Mapping[str, object] | None = None
) -> Choice:
    """Return the estimate of the document as it stands, with the settings of a ``run`` over its own.

    Raises EngineError where nothing could start.
    """
    version = mapping(mapping(stored.data.get("importer")).get("engine")).get("version")
    defaults = recorded_defaults(stored.receipt)
    request = engine_request(stored.data, defaults, version=str(version) if version else None)
    own = {**request.values, **(run or {})}
    request = replace(request, values=own, fixed={*document_keys(stored.data), *(run or ())})
    read = shape.read(snapshot)
    choice = choose(snapshot, read, weights.read(snapshot, read), device, stored.backend, request)
    term = None if choice.fit is None else choice.fit.term("weights")
    if term is None or term.amount.low > (device.memory or 0) * device.share:
        raise unmeasured(stored, choice.reason)
    return choice


def _document(stored: StoredDocument, device: Device, version: str) -> Document:
    """Return the document with random weights; on cards without a fixed cache, for it hides the figures."""
    block = stored.data.get("importer", Block()).copy()
    block["engine"] = {**(block.get("engine") or {}), "name": stored.backend, "version": version}
    changed: dict[str, object] = {**stored.data, "importer": block, "load_format": RANDOM}
    head, _, cache = CACHE.partition(".")
    if device.is_card:
        changed[head] = {k: v for k, v in mapping(changed.get(head)).items() if k != cache}
    return document_of(changed)


def _told_room(error: EngineError) -> bool:
    """Return whether the engine ended for its context, behind the figures that were asked for."""
    problem = error.details.get("problem")
    return isinstance(problem, Reason) and problem.kind is Died.CONTEXT_TOO_LARGE


def _with_parts(error: EngineError, choice: Choice) -> EngineError:
    """Return the error; of an end for memory with the parts of the estimate."""
    problem = error.details.get("problem")
    if not isinstance(problem, Reason) or problem.kind not in OF_MEMORY or choice.fit is None:
        return error
    return error.but(problem=Reason(UnmeasuredReason.NO_ROOM, problem=problem, parts=parts(choice.fit)))


def _exact(reported: Reported, device: Device, document: Document) -> Reported:
    """Return the figures with the size of a processor's cache as the document has it: the log rounds it."""
    set_to = FitRequest(document).count(CACHE)
    return reported if device.is_card or set_to is None else replace(reported, cache=set_to)


def beside_cache(
    reported: Reported, held: int | None, device: Device, document: Mapping[str, Any]
) -> int | None:
    """Return the bytes of everything but the cache, that a processor's processes hold from the start."""
    if not device.is_card:
        return None if held is None or reported.cache is None else held - reported.cache
    share = document.get("gpu_memory_utilization") or device.share
    requested = reported.requested or int((device.memory or 0) * float(share))
    return None if reported.cache is None else requested - reported.cache


def unmeasured(stored: StoredDocument, problem: Reason) -> EngineError:
    """Return the error of a document whose memory is not measured."""
    return EngineError("not-measured", name=stored.name, problem=problem)


def device_answers(
    stored: StoredDocument, places: AllowedFolders, kinds: Container[str]
) -> Iterator[DeviceAnswer]:
    """Yield the answer for each device of these kinds: the document with the settings that are not of its own
    device.

    Raises DocumentError("no-receipt"), HubError and RepositoryError.
    """
    receipt = stored.need_receipt()
    request = ImportRequest.from_json(receipt.request)
    snapshot = snapshot_of(stored, places)
    read = shape.read(snapshot)
    sizes = weights.read(snapshot, read)
    asked = _request(stored, request)

    def decided(device: Device) -> Choice:
        return choose(snapshot, read, sizes, device, stored.backend, asked, request.aim, alone=True)

    some = (d for d in known().values() if d.kind in kinds and d.memory is not None)
    return (answer(stored.backend, device, decided) for device in some)


def _request(stored: StoredDocument, request: ImportRequest) -> FitRequest:
    """Return the document's values without those that the fit chose for its own device."""
    receipt = stored.need_receipt()
    fit = mapping(receipt.fit)
    chosen = {*mapping(fit.get("chosen"))} - {*request.preferences.values}
    defaults = recorded_defaults(receipt)
    if CONTEXT in chosen and (wanted := whole(fit.get("wanted"), 1)):
        defaults[CONTEXT] = wanted
        chosen -= {CONTEXT}
    data = {key: value for key, value in stored.data.items() if key != CONTEXT or key not in defaults}
    return engine_request(
        data, defaults, without=chosen, fixed=request.preferences.values.keys(),
        version=request.engine_version,
    )  # fmt: skip
