"""``mlx.launch``: mlx-lm's server as several processes, on this machine or on the hosts of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from importer.engines.base import Document, Unstartable, invalid
from importer.engines.sockets import free_ports
from importer.reasons import Reason

PIPELINE = "pipeline_parallel_size"
BACKEND = "distributed_executor_backend"
HOSTFILE = "hostfile"
KEYS = (PIPELINE, BACKEND, HOSTFILE)  # of ``engine_args``
BACKENDS = ("ring", "mpi", "jaccl", "jaccl-ring", "nccl")
# It has no module to be run by name, and starts its ranks with the interpreter that it is told.
START = (
    "import sys; from mlx._distributed_utils.launch import main; "
    "sys.argv[1:1] = ['--python', sys.executable]; main()"
)


def launched(document: Document, server: tuple[str, ...]) -> tuple[str, ...]:
    """The words that start ``server`` as the document asks; itself where it asks for one process.

    ``tensor_parallel_size`` ranks share each layer, ``engine_args.pipeline_parallel_size`` ranks the layers.
    Raises DocumentError("invalid").
    """
    tensor, pipeline = _size(document, document, "tensor_parallel_size"), _pipeline(document)
    if tensor > 1 and pipeline > 1:
        raise invalid(document, Reason(Unstartable.LAYERS_OR_PARTS, key=PIPELINE))
    hosts = _hostfile(document)
    ranks = max(tensor, pipeline)
    if ranks == 1 and hosts is None:
        return server
    backend = _given(document).get(BACKEND, BACKENDS[0])
    if backend not in BACKENDS:
        raise invalid(document, Reason(Unstartable.NOT_ONE_OF, key=BACKEND, value=backend, known=BACKENDS))
    where = ("-n", str(ranks)) if hosts is None else ("--hostfile", str(hosts))
    port = str(free_ports(ranks))  # the ring listens on one for each rank, here on loopback
    how = ("--backend", backend, "--starting-port", port)
    split = ("--pipeline",) if pipeline > 1 else ()
    return ("-c", START, *where, *how, "--", *server, *split)


def asked(document: Document) -> bool:
    """Whether the document asks for several processes."""
    several = _size(document, document, "tensor_parallel_size") > 1 or _pipeline(document) > 1
    return several or HOSTFILE in _given(document)


def _given(document: Document) -> Mapping[str, object]:
    return document.get("engine_args") or {}


def _pipeline(document: Document) -> int:
    return _size(document, _given(document), PIPELINE)


def _size(document: Document, where: Mapping[str, object], key: str) -> int:
    value = where.get(key)
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid(document, Reason(Unstartable.NOT_RANKS, key=key, value=value))
    return value


def _hostfile(document: Document) -> Path | None:
    """A file of this machine; the importer does not read it, ``mlx.launch`` reaches its hosts by ssh."""
    named = _given(document).get(HOSTFILE)
    if named is None:
        return None
    path = Path(named) if isinstance(named, str) else Path()
    if not path.is_absolute() or not path.is_file():
        raise invalid(document, Reason(Unstartable.NOT_A_FILE, key=HOSTFILE, value=named))
    return path
