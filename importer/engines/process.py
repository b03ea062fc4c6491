"""A running engine: started as a process group of its own, awaited, and ended as a whole."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from importer import config, demo, launcher
from importer.document import environment, template_file
from importer.document.document import Document
from importer.document.template_file import ChatTemplate
from importer.engines import logs, machine, model_folder, start_trials
from importer.engines.base import Engine, Launch
from importer.engines.deaths import OF_CARDS, OF_FILES, OF_WEIGHTS, DeathCause, Died
from importer.engines.ports import LOOPBACK, free_port, is_free
from importer.engines.process_group import largest_file, resident, shared_memory, wait_ended
from importer.engines.readiness import NeverError, StartWatch, answers
from importer.engines.start_trials import Setup
from importer.errors import EngineError
from importer.frozen import frozen
from importer.hub.folders import holds
from importer.launcher import Purpose, isolated
from importer.progress import Progress, silent

WEIGHTS = (".safetensors", ".bin")
SCALED, MODEL, PARSED, WORK = "scaled", "model", "parsed", "work"  # folders; the last is an engine's own
SUPERVISOR = Path(__file__).with_name("supervisor.py")
GRACE = 10.0  # seconds between asking a group to end and killing it
LOOK = 0.1  # seconds between two checks of a starting engine
PYTHON_SECONDS = 10.0  # for Python to start and end
CONTROL_SECONDS = 120.0  # for a start with the model that ships
TRIES = 3  # starts, each on another free port, where another process took the port first
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
}


@frozen
class StopReport:
    """The end of an engine; ``seconds`` until the group ended, ``killed`` if it was forced.

    ``held``  bytes of memory of the group before, ``left`` those still in shared memory afterwards.
    """

    group_ended: bool
    port_free: bool
    killed: bool
    seconds: float
    held: int | None = None
    left: int = 0


@dataclass(slots=True)
class EngineServer:
    """An engine that serves.

    ``pid``            its process group.
    ``start_seconds``  the time until it was ready.
    ``argv``           its command line, and the texts of the files on it.
    ``variables``      those of its environment beside importer's own.
    """

    base_url: str
    model: str
    pid: int
    log: Path
    port: int
    start_seconds: float
    _process: launcher.Process = field(repr=False)
    argv: tuple[str, ...] = field(default=(), repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    _stopped: StopReport | None = field(default=None, repr=False)

    @property
    def alive(self) -> bool:
        """Return whether it still runs."""
        return self._process.poll() is None

    @property
    def memory(self) -> int | None:
        """Return the bytes of its processes; ``None`` where the system does not report them."""
        return resident(self.pid)

    @property
    def log_full(self) -> bool:
        """Return whether its log is as large as a file of its processes may be."""
        return self.log.stat().st_size >= largest_file(self.pid)

    @property
    def code(self) -> int | None:
        """Return its exit status, 128 and the signal where it was killed; ``None`` while it runs."""
        return self._process.poll()

    def stop(self) -> StopReport:
        """End the whole group; later calls return the report of the first."""
        if self._stopped is None:
            self._stopped = _stop(self._process, self.port)
        return self._stopped


@contextmanager
def serve(
    engine: Engine,
    python: Path,
    document: Document,
    model_dir: Path,
    *,
    port: int | None = None,
    timeout: float | None = None,
    log_path: Path | None = None,
    progress: Progress | None = None,
    template: ChatTemplate | None = None,
    hold: Sequence[int] = (),
    left_out: Collection[Setup] = (),
) -> Iterator[EngineServer]:
    """Serve ``document`` from the weights in ``model_dir`` with the engine installed for ``python``.

    ``template`` is that of the document. ``timeout`` is seconds until it must be ready. ``hold`` are files
    that stay open until the engine has ended, even where this process is killed: locks. ``left_out`` are
    settings that a control goes without. The engine has ended after the block, however it is left. Raises
    EngineError: engine-died, engine-slow, no-port, port-taken, no-weights; DocumentError("invalid").
    """
    report = progress or silent
    if document.get("load_format") != "dummy" and not holds(model_dir, WEIGHTS):
        raise EngineError("no-weights", path=model_dir)
    if port is not None and not is_free(port):
        raise EngineError("port-taken", port=port)
    limit = engine.readiness.seconds if timeout is None else timeout
    log = log_path or logs.fresh(config.logs(), engine.name)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="importer-engine-")))
        if start_trials.scales(left_out):
            model_dir = model_folder.without_keys(model_dir, start_trials.scales(left_out), folder / SCALED)
        if template is not None and not engine.takes_template:
            model_dir = model_folder.dressed(model_dir, template.text, folder / MODEL)
        response_template = template_file.derived_parser_of(document)
        if response_template is not None:
            model_dir = model_folder.with_response_template(model_dir, response_template, folder / PARSED)
        begun = _Start(engine, python, document, model_dir, template, folder, limit, report)
        for left in reversed(range(TRIES)):
            chosen = port or free_port()
            launch = begun.launch(chosen, left_out)
            started = time.monotonic()
            drop = _names(left_out)
            process = stack.enter_context(_group(python, launch, folder, log, chosen, hold, drop))
            try:
                begun.wait(process, chosen, log, started + limit)
            except NeverError as never:
                _stop(process, chosen)
                if _port_lost(log) and port is None and left:
                    continue
                raise _death(begun, never, log, chosen) from None
            except TimeoutError:
                _stop(process, chosen)
                raise EngineError("engine-slow", name=engine.name, seconds=f"{limit:g}", log=log) from None
            took = time.monotonic() - started
            served = EngineServer(
                f"http://{LOOPBACK}:{chosen}",
                launch.model,
                process.pid,
                log,
                chosen,
                took,
                process,
                (*launch.arguments, *launch.files.values()),
                launcher.environment(Purpose.ENGINE, launch.env, drop),
            )
            stack.callback(served.stop)
            yield served
            return


def _port_lost(log: Path) -> bool:
    """Return whether the log shows that another process took the port first."""
    return "address already in use" in logs.tail(log).lower()


@contextmanager
def _group(
    python: Path,
    launch: Launch,
    folder: Path,
    log: Path,
    port: int,
    hold: Sequence[int] = (),
    drop: Collection[str] = (),
) -> Iterator[launcher.Process]:
    """Yield the engine under its supervisor, without inherited variables to ``drop``; end the group when the
    block is left.
    """
    work = folder / WORK
    work.mkdir(exist_ok=True)
    for name, text in launch.files.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    with logs.opened(log) as output, lifeline() as watched:
        process = launcher.start(
            isolated(str(SUPERVISOR), str(watched), str(GRACE), str(python), *launch.arguments),
            Purpose.ENGINE,
            folder=work,
            stdout=output,
            stderr=launcher.STDOUT,
            extra=(given := _variables(launch.env, folder)),
            drop=[name for name in drop if name not in given],  # importer's own are never left out
            keep=(watched, *hold),
        )
        try:
            yield process
        finally:
            _stop(process, port)


@contextmanager
def lifeline() -> Iterator[int]:
    """Yield the reading end of a pipe whose writing end closes when this process ends, however it ends."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _variables(extra: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return variables of an engine beside the caller's: Hub folders of its own hide the token file.

    The cache folder must exist: mlx-lm's ``/v1/models`` breaks without one.
    """
    cache = folder / "hf" / "hub"
    cache.mkdir(parents=True, exist_ok=True)
    return SETTINGS | {"HF_HOME": str(folder / "hf"), "HF_HUB_CACHE": str(cache)} | dict(extra)


@frozen
class _Start:
    """One start of an engine, that may be tried again without some of its settings.

    ``limit``  seconds until it must be ready.
    """

    engine: Engine
    python: Path
    document: Document
    model_dir: Path
    template: ChatTemplate | None
    folder: Path
    limit: float
    report: Progress

    def launch(self, port: int, left_out: Collection[Setup] = ()) -> Launch:
        """Return the start on a port, without the settings that are left out."""
        document = start_trials.without(self.document, left_out) if left_out else self.document
        launch = self.engine.launch(document, self.model_dir, port, self.template)
        return replace(launch, env={n: v for n, v in launch.env.items() if n not in _names(left_out)})

    def wait(self, process: launcher.Process, port: int, log: Path, deadline: float) -> None:
        """Wait until the engine serves; raises NeverError or TimeoutError."""
        started = time.monotonic()
        watch = StartWatch(process.pid, log)
        while not answers(self.engine.readiness, port, deadline, self.report):
            code = process.poll()
            if code is not None:
                raise NeverError(code)
            never = watch.verdict()
            if never is not None:
                raise NeverError(never)
            if time.monotonic() > deadline:
                raise TimeoutError
            self.report(f"waiting for {self.engine.name}, {time.monotonic() - started:.0f} s")
            time.sleep(LOOK)

    def cause(self, cause: DeathCause, log: Path) -> DeathCause:
        """Return the cause of its end; where no pattern has it, the setting or the files that trials name."""
        if cause.reason.kind in OF_WEIGHTS:
            explained = model_folder.compared(cause, self.model_dir, self.engine.name)
            if explained is not cause:
                return explained
        if cause.reason.kind in OF_CARDS and self.engine.needs_card:
            return start_trials.held(cause, machine.card_holders())
        if cause.reason.kind in OF_FILES:
            return model_folder.judged(cause, self.model_dir)
        if cause.reason.kind is Died.TOKENIZERS_PARSER:
            return start_trials.half_installed(cause, self.engine.name)
        if cause.reason.kind not in start_trials.UNTOLD:
            return cause
        launch = self.launch(free_port())
        known = start_trials.of_document(self.document)
        variables = launcher.environment(Purpose.ENGINE, launch.env)
        python = cause.reason.kind is Died.PYTHON_FAILS
        starts: Callable[[Collection[Setup], float], bool] = self._python_starts if python else self._starts
        groups = (known, start_trials.of_machine(variables, known))
        found = start_trials.blamed(cause, groups, logs.tail(log), starts, self.report)
        found = start_trials.with_another_model(found, self._another_starts, self.report)
        if found.reason.kind is not Died.OWN_FILES:
            return found
        own = (start_trials.of_model(self.model_dir),)
        setting = start_trials.blamed(cause, own, logs.tail(log), self._starts, self.report)
        return found if setting is cause else setting

    def _starts(self, left_out: Collection[Setup], seconds: float) -> bool:
        """Return whether the engine is ready within so many seconds, without some settings."""
        port, keys = free_port(), start_trials.scales(left_out)
        without = self
        if keys:
            place = Path(tempfile.mkdtemp(prefix=SCALED, dir=self.folder))
            without = replace(self, model_dir=model_folder.without_keys(self.model_dir, keys, place))
        return self._ready(without.launch(port, left_out), port, seconds, _names(left_out))

    def _another_starts(self) -> bool:
        """Return whether the engine is ready with the model that ships, without settings of the document."""
        port = free_port()
        launch = self.engine.launch(start_trials.of_engine(self.document), demo.MODEL, port)
        return self._ready(launch, port, CONTROL_SECONDS)

    def _ready(self, launch: Launch, port: int, seconds: float, drop: Collection[str] = ()) -> bool:
        log = self.folder / "trial.log"
        with _group(self.python, launch, self.folder, log, port, drop=drop) as process:
            try:
                self.wait(process, port, log, time.monotonic() + min(seconds, self.limit))
            except (NeverError, TimeoutError):
                return False
        return True

    def _python_starts(self, left_out: Collection[Setup], seconds: float) -> bool:
        """Return whether the engine's Python starts, without some settings."""
        launch = self.launch(free_port(), left_out)
        variables = _variables(launch.env, self.folder)
        drop = _names(left_out) - set(variables)
        process = launcher.start([str(self.python), "-c", ""], Purpose.ENGINE, extra=variables, drop=drop)
        try:
            return launcher.ended(process, min(seconds, PYTHON_SECONDS)) == 0
        finally:
            launcher.end(process)


def _names(settings: Collection[Setup]) -> set[str]:
    """Return the names of variables among settings."""
    return {one.name for one in settings if one.key in (None, environment.KEY)}


def _death(start: _Start, never: NeverError, log: Path, port: int) -> EngineError:
    if _port_lost(log):
        return EngineError("port-taken", port=port)
    code = never.code if isinstance(never.code, int) else None
    cause = start.cause(logs.explain(log, start.engine.deaths, code), log)
    return EngineError(
        "engine-died",
        name=start.engine.name,
        code=never.code,
        problem=cause.reason,
        log=log,
        blames=cause.attribution,
    )


def _stop(process: launcher.Process, port: int) -> StopReport:
    """Send TERM to the group, KILL after ``GRACE``; return whether the group has ended and the port is
    free.
    """
    held, shared = resident(process.pid), shared_memory(process.pid)
    started = time.monotonic()
    killed = False
    try:
        launcher.send(process.pid, signal.SIGTERM)
        if not wait_ended(process, GRACE):
            killed = True
    finally:  # a second Ctrl-C while waiting must not leave it behind
        launcher.send(process.pid, signal.SIGKILL)
        launcher.ended(process, GRACE)
    ended = wait_ended(process, GRACE)
    took = time.monotonic() - started
    return StopReport(ended, is_free(port), killed, took, held, sum(map(_size, shared)))


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 where it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
