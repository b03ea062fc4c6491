"""mlx-lm: a small server without parser flags that infers the tool parser from the chat template; its
ranks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from importer.document import environment
from importer.document.document import Document
from importer.document.template_file import ChatTemplate
from importer.engines import base
from importer.errors import RepositoryError
from importer.frozen import frozen
from importer.hub.folders import Folder, why
from importer.reasons import Reason

CONSTRAINTS = Path(__file__).with_name("constraints") / "mlx.txt"
LONGEST = 100_000  # bytes of a template, that is one argument: Linux has room for 131,072
# Its server answers while the weights still load, and goes on answering 503 when loading has failed.
READY = base.Readiness("/health", fatal=(503,), warm_up=("/v1/completions", {"prompt": "a", "max_tokens": 1}))
PIPELINE = "pipeline_parallel_size"
BACKEND = "distributed_executor_backend"
HOSTFILE = "hostfile"
RING = "ring"
KEYS = (PIPELINE, BACKEND, HOSTFILE)  # of ``engine_args``
# The launcher has no module to run by name, and starts its ranks with the interpreter of ``--python``.
START = (
    "import sys; from mlx._distributed_utils.launch import main; "
    "sys.argv[1:1] = ['--python', sys.executable]; main()"
)


@frozen
class Mlx(base.Engine):
    """The adapter of mlx-lm, on Apple silicon and on any x86-64 or ARM Linux."""

    name: str = "mlx"
    distributions: tuple[str, ...] = ("mlx-lm",)
    readiness: base.Readiness = READY
    takes_template: bool = True
    per_request: tuple[str, ...] = ("repeat_penalty", "presence_penalty", "frequency_penalty", "seed")

    def plan(self) -> base.Plan:
        """Return one command: every package of the constraints, checked by its hash.

        On Linux they hold mlx's library for processors, on macOS the one for Metal.
        """
        return (base.locked(CONSTRAINTS),)

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> base.Launch:
        """Return the start of ``mlx_lm server`` on loopback, by ``mlx.launch`` for several processes."""
        model = str(model_dir.resolve())
        settings = self.settings(document, model, base.Address(port=port), template)
        arguments = launched(document, ("-m", "mlx_lm", "server", *settings))
        return base.Launch(arguments, model, environment.variables_of(document))

    def settings(
        self, document: Document, model: str, address: base.Address, template: ChatTemplate | None = None
    ) -> list[str]:
        """Return the server's options; raises DocumentError("invalid")."""
        arguments = ["--model", model, "--host", address.host, "--port", str(address.port)]
        arguments += base.apart(base.sampling(document, self.name))
        arguments += base.apart(base.written(document, self.name, leave=KEYS))
        if (other := base.required_template(document, template)) is not None:
            if len(other.text.encode()) > LONGEST:
                raise base.invalid(document, Reason(base.Unstartable.TEMPLATE_TOO_LONG, limit=LONGEST))
            arguments.append(f"--chat-template={other.text}")
        if document.get("chat_template_kwargs"):
            arguments += ["--chat-template-args", json.dumps(document["chat_template_kwargs"])]
        if document.get("trust_remote_code") is True:
            arguments.append("--trust-remote-code")
        return arguments


def check_code(document: Document, model_dir: Path, server: str) -> None:
    """Reject a model whose ``model_file`` names a module that the server would run; raises
    DocumentError("invalid"), and RepositoryError("unreadable") for a file that only the server would read.
    """
    from importer.engines.model_folder import CONFIG, LARGEST

    try:
        with Folder(model_dir) as folder:
            config = json.loads(folder.read(CONFIG, LARGEST))
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return  # the engine reports it
        raise RepositoryError("unreadable", file=CONFIG, repo=model_dir, problem=why(error)) from None
    except (ValueError, RecursionError):
        return  # the engine reports what is wrong with it
    named = isinstance(config, dict) and config.get("model_file")
    if named and document.get("trust_remote_code") is not True:
        raise base.invalid(document, Reason(base.Unstartable.CODE_IN_MODEL_FILE, server=server))


def launched(document: Document, server: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that start ``server`` in as many processes as the document has ranks.

    ``tensor_parallel_size`` ranks share each layer, ``engine_args.pipeline_parallel_size`` ranks the layers;
    the check of a document refuses both. One rank without a hostfile starts by itself.

    Raises DocumentError("invalid").
    """
    from importer.engines.ports import free_ports

    tensor = _size(document, document, "tensor_parallel_size")
    pipeline = _size(document, _engine_args(document), PIPELINE)
    hosts = _hostfile(document)
    ranks = max(tensor, pipeline)
    if ranks == 1 and hosts is None:
        return server
    base.checked(document, "mlx")
    backend = str(_engine_args(document).get(BACKEND) or RING)
    where = ("-n", str(ranks)) if hosts is None else ("--hostfile", str(hosts))
    port = str(free_ports(ranks))  # the ring listens on one for each rank, here on loopback
    how = ("--backend", backend, "--starting-port", port)
    split = ("--pipeline",) if pipeline > 1 else ()
    return ("-c", START, *where, *how, "--", *server, *split)


def _engine_args(document: Document) -> Mapping[str, object]:
    return document.get("engine_args") or {}


def _size(document: Document, where: Mapping[str, object], key: str) -> int:
    value = where.get(key)
    if value is None:
        return 1
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        wanted = "a number of ranks"
        raise base.invalid(document, Reason(base.Unstartable.OTHER_TYPE, key=key, value=value, wanted=wanted))
    return value


def _hostfile(document: Document) -> Path | None:
    """Return a file of this machine, unread: ``mlx.launch`` reaches its hosts by ssh."""
    named = _engine_args(document).get(HOSTFILE)
    if named is None:
        return None
    path = Path(named) if isinstance(named, str) else Path()
    if not path.is_absolute() or not path.is_file():
        fields = {"key": f"engine_args.{HOSTFILE}", "value": named, "wanted": "the whole path of a file"}
        raise base.invalid(document, Reason(base.Unstartable.OTHER_TYPE, **fields))
    return path
