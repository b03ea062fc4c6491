"""Rendering from outside: a worker process started when needed, kept warm, killed when it overstays."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import importer

MEMORY = 512 * 2**20  # bytes of address space for the worker; Python and Jinja take 40 MiB of it
CPU_SECONDS = 2.0  # for one exchange, which takes 0.1 s with a real template
WALL_SECONDS = 15.0  # for one exchange, on a machine that has more to do
MAX_ANSWER = 64 * 2**20  # bytes of one answer
ROOT = str(Path(importer.__file__).resolve().parents[1])
STARTER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from importer.template.worker import main; main(int(sys.argv[2]), float(sys.argv[3]))"
)


@dataclass(frozen=True, slots=True)
class Job:
    """One conversation to render; ``later`` is so many seconds after the time at which the clock stands."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = False
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    later: float = 0


@dataclass(frozen=True, slots=True)
class Rendered:
    """What the template wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no text: ``syntax``, ``refused`` by the template, a ``limit``, or no ``memory``.

    ``broke`` says that it raised without ``raise_exception``: nobody meant to refuse.
    """

    reason: str
    kind: Literal["syntax", "refused", "limit", "memory"]
    broke: bool = False


Result = Rendered | Refused


@dataclass(frozen=True, slots=True)
class Rendering:
    """The answer to one exchange.

    ``results``    one per job, in order.
    ``variables``  what a caller may set, each with the constants it is compared with.
    """

    results: tuple[Result, ...]
    variables: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Renderer:
    """A warm worker. Use as a context manager; a template that kills it costs only itself."""

    def __init__(
        self, cpu_seconds: float = CPU_SECONDS, wall_seconds: float = WALL_SECONDS, memory: int = MEMORY
    ) -> None:
        self._cpu_seconds = cpu_seconds
        self._wall_seconds = wall_seconds
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def start(self) -> None:
        """Start the worker now, so that it wakes while the caller does something else."""
        self._awake()

    def _awake(self) -> subprocess.Popen[bytes]:
        self._process = self._process or _start(self._memory, self._cpu_seconds)
        return self._process

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def render(
        self,
        template: str,
        jobs: Sequence[Job],
        variables: Mapping[str, Any] | None = None,
        *,
        mutable: bool = False,
    ) -> Rendering:
        """Render every job in one exchange; a failure of any kind is a result with a reason.

        ``variables``  strings known by name (``bos_token`` …); a job's own ``kwargs`` win over them.
        ``mutable``    lets the template change its own lists, which transformers refuses.
        """
        request = {
            "template": template,
            "mutable": mutable,
            "variables": dict(variables or {}),
            "jobs": [{f.name: getattr(j, f.name) for f in fields(j)} for j in jobs],  # asdict copies deep
        }
        answer = self._exchange(json.dumps(request).encode() + b"\n")
        if isinstance(answer, str):
            self.close()
            return Rendering((Refused(answer, "limit"),) * len(jobs))
        rendering = Rendering(tuple(_result(r) for r in answer["results"]), answer["variables"])
        if any(isinstance(r, Refused) and r.kind == "memory" for r in rendering.results):
            self.close()  # a worker that ran out of memory may stay short of it; the next one is fresh
        return rendering

    def close(self) -> None:
        """End the worker; the next call starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _exchange(self, request: bytes) -> dict[str, Any] | str:
        """The worker's answer, or the reason why there is none."""
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it died while nobody asked it anything
        process = self._awake()
        try:
            raw = _converse(process, request, time.monotonic() + self._wall_seconds)
        except TimeoutError:
            return f"took more than {self._wall_seconds:g} s"
        except EOFError as error:
            return str(error)
        except OSError:
            return _death(process)
        answer: dict[str, Any] = json.loads(raw)
        return answer


def _start(memory: int, cpu_seconds: float) -> subprocess.Popen[bytes]:
    environment = {k: v for k, v in os.environ.items() if k in {"LD_LIBRARY_PATH", "SYSTEMROOT"}}
    argv = [sys.executable, "-I", "-c", STARTER, ROOT, str(memory), str(cpu_seconds)]
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        bufsize=0,
    )


def _converse(process: subprocess.Popen[bytes], request: bytes, deadline: float) -> bytes:
    """Write the request and read one line, both sides watched so that neither can block the other."""
    assert process.stdin is not None  # noqa: S101 - opened with pipes above
    assert process.stdout is not None  # noqa: S101
    os.set_blocking(process.stdin.fileno(), False)
    waiting = memoryview(request)
    answer = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while not answer.endswith(b"\n"):
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    waiting = waiting[os.write(key.fd, waiting[: 1 << 16]) :]
                    if not waiting:
                        selector.unregister(process.stdin)
                    continue
                piece = os.read(key.fd, 1 << 20)
                answer += piece
                if not piece:
                    raise EOFError(_death(process))
                if len(answer) > MAX_ANSWER:
                    raise EOFError("wrote more than an answer may hold")
    return bytes(answer)


def _death(process: subprocess.Popen[bytes]) -> str:
    try:
        return f"the rendering process died (exit {process.wait(1)})"
    except subprocess.TimeoutExpired:
        return "the rendering process closed its output"


def _result(raw: Mapping[str, Any]) -> Result:
    return (
        Rendered(raw["text"])
        if "text" in raw
        else Refused(raw["error"], raw["kind"], raw.get("broke", False))
    )
