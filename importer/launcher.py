"""The one place that starts a process: an argv list, an environment by purpose, a group of its own.

A process inherits only the variables that ``ENVIRONMENT`` lists for its purpose. It runs in the root folder
or in one of importer's folders. Each Python is ``isolated`` or ``SHELTERED``: the working directory of
importer is not on its path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO

from importer.frozen import frozen

Stream = int | IO[bytes] | None
Process = subprocess.Popen[bytes]
PIPE, STDOUT, DEVNULL = subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL
MOST_OUTPUT = 64 * 2**20  # bytes of each stream of ``run``
MORE = "IMPORTER_ENGINE_ENV"  # names of further variables for engines, with commas between


class Purpose(StrEnum):
    """The purpose of a process; it decides the inherited variables."""

    SANDBOX = "sandbox"
    QUESTION = "question"
    INSTALL = "install"
    ENGINE = "engine"
    PARSERS = "parsers"
    TOKENIZER = "tokenizer"
    SYSTEM = "system"
    EDITOR = "editor"
    REMOTE = "remote"


# Descriptions in docs/security.md.
PURPOSES: Mapping[Purpose, str] = {
    Purpose.SANDBOX: "the sandbox that reads a stranger's text",
    Purpose.QUESTION: "an engine's Python, asked for its version and its folders",
    Purpose.INSTALL: "venv and pip",
    Purpose.ENGINE: "an engine's server",
    Purpose.PARSERS: "an engine's parsers, with a repository's template and tokenizer",
    Purpose.TOKENIZER: "an engine's tokenizer library, with a repository's tokenizer",
    Purpose.SYSTEM: "`nvidia-smi`, `git`",
    Purpose.REMOTE: "a command that runs importer elsewhere, such as `ssh`",
    Purpose.EDITOR: "your editor, in your terminal and your folder",
}
# Names, and prefixes that end in a star. A prefix never lets a secret through; a name does.
SECRET = re.compile(
    r"^(PG|AWS_|IMPORTER_)|(^|_)(TOKEN|SECRET|KEY|PASS|PASSPHRASE|CREDENTIALS?|DSN|DATABASE_URL)S?(_|$)|PASSW",
    re.IGNORECASE,
)
BASE = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "DYLD_*", "NIX_LD*",
)  # fmt: skip
INTERPRETER = (*BASE, "PYENV_*", "CONDA_*")  # for launching scripts of pyenv and conda
NETWORK = (
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
    "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
)  # fmt: skip
COMPUTE = (
    *INTERPRETER, "LD_PRELOAD", "SHELL", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "CUDA_*", "NVIDIA_*", "NCCL_*", "CUBLAS_*", "CUDNN_*", "CUTLASS_*", "NVTE_*",  # NVIDIA
    "HIP_*", "HSA_*", "ROCR_*", "ROCM_*", "MIOPEN_*", "RCCL_*", "AITER_*", "AMD_*",  # AMD
    "ONEAPI_*", "ZE_*", "SYCL_*", "CCL_*",  # Intel
    "APC_*", "MLX_*", "MTL_*", "METAL_*", "JACCL_*",  # Apple
    "OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "VECLIB_*", "NUMEXPR_*", "DNNL_*", "ONEDNN_*",
    "MALLOC_*", "TCMALLOC_*", "MIMALLOC_*",
    "TORCH*", "PYTORCH_*", "TRITON_*", "FLASHINFER_*", "XFORMERS_*", "DG_JIT_*", "CC", "CXX",
    "VLLM_*", "TRANSFORMERS_*", "TOKENIZERS_*", "SAFETENSORS_*", "HF_HOME", "HF_HUB_CACHE",
    "HF_MODULES_CACHE", "RAY_*", "GLOO_*", "UCX_*", "FI_*", "OMPI_*", "TPU_*", "OPENCV_*", "NO_COLOR",
)  # fmt: skip
INSTALLING = (
    *INTERPRETER, *NETWORK, "PIP_*", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME",
    "NETRC", "DBUS_SESSION_BUS_ADDRESS", "PYTHON_KEYRING_BACKEND",  # for pip's password of an index
    "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "CMAKE_*", "MAX_JOBS", "SDKROOT",
    "MACOSX_DEPLOYMENT_TARGET", "PKG_CONFIG_PATH", "CARGO_*", "RUSTUP_*", "CUDA_*", "NVIDIA_*",
)  # fmt: skip
ENVIRONMENT: Mapping[Purpose, tuple[str, ...]] = {
    Purpose.SANDBOX: ("LD_LIBRARY_PATH", "SYSTEMROOT"),
    Purpose.QUESTION: INTERPRETER,
    Purpose.INSTALL: INSTALLING,
    Purpose.ENGINE: COMPUTE,
    Purpose.PARSERS: COMPUTE,
    Purpose.TOKENIZER: INTERPRETER,
    Purpose.SYSTEM: (*BASE, "CUDA_VISIBLE_DEVICES", "NVIDIA_*"),
    Purpose.REMOTE: (
        *BASE,
        *NETWORK,
        "SSH_AUTH_SOCK",
        "KRB5CCNAME",
        "KUBECONFIG",
        "SLURM_CONF",
        "RAY_ADDRESS",
        "RAY_AUTH_TOKEN_PATH",
        "XDG_CONFIG_HOME",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "CLOUDSDK_CONFIG",
        "AZURE_CONFIG_DIR",
    ),  # paths of credentials, none of their values
    Purpose.EDITOR: ("*",),
}
# An engine's Python may be a user's script that sets PYTHONPATH; ``-I`` would ignore that.
SHELTERED = (Purpose.QUESTION, Purpose.ENGINE)
EXTENSIBLE = (Purpose.INSTALL, Purpose.ENGINE, Purpose.PARSERS)  # by the names in ``MORE``


@frozen
class Finished:
    """A finished process: its exit status, negative for a signal, and its output."""

    code: int
    output: str
    errors: str


def isolated(*arguments: str, python: str | Path = sys.executable) -> list[str]:
    """Return the argv of a Python that ignores working directory, variables and the user's packages."""
    return [str(python), "-I", *arguments]


def environment(
    purpose: Purpose, extra: Mapping[str, str] | None = None, drop: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables that a process of this purpose inherits, and ``extra``, without those to drop."""
    shelter = {"PYTHONSAFEPATH": "1"} if purpose in SHELTERED else {}
    given = {n: v for n, v in os.environ.items() if _allowed(n, purpose)} | shelter | dict(extra or {})
    return {n: v for n, v in given.items() if n not in drop}


def _allowed(name: str, purpose: Purpose) -> bool:
    if purpose in EXTENSIBLE and name in os.environ.get(MORE, "").replace(",", " ").split():
        return True
    allowed = ENVIRONMENT[purpose]
    if name in allowed:
        return True
    prefixes = tuple(entry[:-1] for entry in allowed if entry.endswith("*"))
    return name.startswith(prefixes) and SECRET.search(name) is None


def start(
    argv: Sequence[str],
    purpose: Purpose,
    *,
    folder: str | Path = "/",
    stdin: Stream = DEVNULL,
    stdout: Stream = DEVNULL,
    stderr: Stream = DEVNULL,
    extra: Mapping[str, str] | None = None,
    drop: Collection[str] = (),
    keep: Sequence[int] = (),
) -> Process:
    """Start a process that leads a group of its own, in ``folder``.

    It gets the variables in ``extra``, and none in ``drop``. ``keep`` are the descriptors that it inherits
    beside the three streams. Raises OSError.
    """
    return subprocess.Popen(
        list(argv), stdin=stdin, stdout=stdout, stderr=stderr, env=environment(purpose, extra, drop),
        cwd=folder, bufsize=0, pass_fds=keep, start_new_session=True,
    )  # fmt: skip


def run(
    argv: Sequence[str],
    purpose: Purpose,
    *,
    seconds: float,
    text: str = "",
    folder: str | Path = "/",
    extra: Mapping[str, str] | None = None,
) -> Finished:
    """Run a process to its end with ``text`` on its standard input.

    The whole group has ended on return and on every exception. Raises OSError: TimeoutError after
    ``seconds``, EFBIG for more than ``MOST_OUTPUT`` bytes.
    """
    deadline = time.monotonic() + seconds
    process = start(argv, purpose, folder=folder, extra=extra, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        output, errors = _exchange(process, text.encode(), deadline)
        code = ended(process, max(0.0, deadline - time.monotonic()))
        if code is None:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        return Finished(code, output.decode(errors="replace"), errors.decode(errors="replace"))
    finally:
        end(process)


def attend(argv: Sequence[str]) -> int:
    """Run the user's editor in the user's terminal, folder and group, and return its exit status.

    The editor and its descendants have ended on every exception. For the main thread. Raises OSError.
    """
    process = None
    try:
        with _deferred(signal.SIGTERM):  # between the fork and the assignment nobody could end the editor
            process = subprocess.Popen(list(argv), env=environment(Purpose.EDITOR))
        return process.wait()
    except BaseException:
        if process is not None:
            _end_family(process)
        raise


@contextlib.contextmanager
def _deferred(number: int) -> Iterator[None]:
    """Deliver a signal that arrives within the block after it."""
    arrived: list[int] = []
    handler = signal.signal(number, lambda received, _frame: arrived.append(received))
    try:
        yield
    finally:
        signal.signal(number, handler)
        if arrived:
            signal.raise_signal(number)


def _end_family(process: Process) -> None:
    """Kill a process of this process's own group with its descendants, and collect its exit status."""
    import psutil

    family = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()
    process.wait()  # Popen's own exit leaves a corpse after KeyboardInterrupt


def ended(process: Process, seconds: float) -> int | None:
    """Return the exit status of a process that ends within ``seconds``, else ``None``."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def end(process: Process) -> int:
    """Kill the whole group, close its pipes and return the leader's exit status."""
    send(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return process.wait()


def send(group: int, number: int) -> None:
    """Send a signal to every process of the group; an ended group is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _exchange(process: Process, text: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Write ``text`` and return both streams; all three are watched, so none blocks another."""
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - opened with pipes above
    texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    waiting = memoryview(text)
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE)
        for descriptor in texts:
            selector.register(descriptor, selectors.EVENT_READ)
        for key in _ready(selector, deadline):
            if key.fileobj is not process.stdin:
                piece = os.read(key.fd, 1 << 16)
                texts[key.fd] += piece
                if len(texts[key.fd]) > MOST_OUTPUT:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                if not piece:
                    selector.unregister(key.fileobj)
                continue
            with contextlib.suppress(BrokenPipeError):  # the process reads no further, and may still write
                waiting = waiting[os.write(key.fd, waiting[: 1 << 16]) :] if waiting else waiting
                if waiting:
                    continue
            selector.unregister(process.stdin)
            process.stdin.close()
    output, errors = texts.values()
    return bytes(output), bytes(errors)


def _ready(selector: selectors.BaseSelector, deadline: float) -> Iterator[selectors.SelectorKey]:
    """Yield the descriptors that can be read or written, until none is left.

    Raises TimeoutError.
    """
    while selector.get_map():
        left = deadline - time.monotonic()
        ready = selector.select(left) if left > 0 else []
        if not ready:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        yield from (key for key, _ in ready)
