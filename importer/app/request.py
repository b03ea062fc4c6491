"""What may be asked of an import: every option is declared here, once, for all front ends.

The command line, the service's body, the Python API and lists of imports are made of ``ImportOptions``;
``app.import_request.ImportRequest`` holds what was read. Loaded for ``--help``, so it loads little.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from importer import backends

if TYPE_CHECKING:
    from importer.document.store import StoredDocument

MOST = 100_000_000  # sequences, or tokens of one


class Option(NamedTuple):
    """The form of an option at the front ends; ``name`` and ``type`` are those of its declaration.

    ``about``    its description. The command line has words of its own for some (``cli.options``).
    ``word``     the name of its flag and of its field in a body, where that is not ``name``.
    ``words``    the values at the command line; those of ``type``, where it lists them.
    ``pattern``  of its text over HTTP. ``most``  items of a list or a map.
    ``served``   whether the service has it. ``recorded``  whether the receipt has it.
    ``single``   whether it is for one reference, and for no list of them.
    ``kept``     whether later imports of the document keep its value until ``unset`` names it.
    """

    about: str
    word: str = ""
    metavar: str | None = None
    words: tuple[str, ...] = ()
    pattern: str | None = None
    most: int = 0
    served: bool = True
    recorded: bool = True
    single: bool = False
    kept: bool = False
    name: str = ""
    type: Any = None

    @property
    def flag(self) -> str:
        """Return the flag of the command line."""
        return f"--{self.word.replace('_', '-')}"

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Return the types of its values, without ``None``: such as ``bool``, ``str``, ``Literal``."""
        union = get_origin(self.type) in (Union, UnionType)
        parts = get_args(self.type) if union else (self.type,)
        return tuple(get_origin(part) or part for part in parts if part is not type(None))


class ImportOptions(TypedDict, total=False):
    """What a person may ask of an import, as each front end takes it. All have a default: off, or none."""

    revision: Annotated[str | None, Option("branch, tag or commit (default: main)")]
    name: Annotated[str | None, Option("the document's name (default: from the repository)", single=True)]
    backend: Annotated[str | None, Option(
        "the engine to write for; 'auto' leaves it to the server's own machine",
        words=("auto", *backends.NAMES))
    ]  # fmt: skip
    engine_version: Annotated[str | None, Option("write for this version's parsers", metavar="VERSION")]
    frontend: Annotated[Literal["python", "rust"] | None, Option(
        "the server of vLLM 0.33 and later; the last import's by default, else python", kept=True)
    ]  # fmt: skip
    settings: Annotated[Mapping[str, object] | list[str] | None, Option(
        "values that win over everything, by decision or YAML path", "set", "KEY=VALUE", most=200)
    ]  # fmt: skip
    unset: Annotated[Iterable[str], Option(
        "settings of an earlier import that no longer count", metavar="KEY", most=100)
    ]  # fmt: skip
    device: Annotated[str | None, Option("fit the settings to this device", metavar="NAME", kept=True)]
    memory: Annotated[
        int | str | None, Option("with so much memory, such as 48GiB", metavar="SIZE")
    ]  # or bytes
    per_device: Annotated[
        bool, Option("write a document of its own for the device; the model's other documents stay")
    ]
    goal: Annotated[Literal["latency", "throughput", "context"] | None, Option(
        "lay the model out on the device for fast answers, for many, or for long ones", kept=True)
    ]  # fmt: skip
    concurrency: Annotated[int | None, Option("sequences to hold at the same time", metavar="N", kept=True)]
    context: Annotated[
        int | None, Option("tokens of each of them, prompt and answer", metavar="N", kept=True)
    ]
    exact_fit: Annotated[bool, Option("read every tensor's size from the weights' headers")]
    template: Annotated[str | None, Option(
        "a chat template of ours or of the repository in place of the model's own", metavar="NAME|FILE|none",
        # Over HTTP a name alone: a file would be one of the server's.
        pattern=r"^(json|own-calls|as-written|none|repository:[\w.-]{1,64})$", single=True)
    ]  # fmt: skip
    adapter: Annotated[Sequence[str], Option(
        "serve this LoRA adapter beside the model", metavar="[NAME=]ID", most=20, served=False, kept=True)
    ]  # fmt: skip
    offline: Annotated[
        bool, Option("use what is cached; no request to the Hub", served=False, recorded=False)
    ]
    ignore_name: Annotated[bool, Option("decide without id, folder, card and tags", served=False)]


def _declared() -> Mapping[str, Option]:
    """Return the options of ``ImportOptions`` by name, with their types."""
    found: dict[str, Option] = {}
    for name, hint in get_type_hints(ImportOptions, include_extras=True).items():
        type_, option = get_args(hint)
        literals = [part for part in (type_, *get_args(type_)) if get_origin(part) is Literal]
        words = option.words or tuple(word for part in literals for word in get_args(part))
        found[name] = option._replace(name=name, type=type_, word=option.word or name, words=words)
    return found


OPTIONS = _declared()
KEPT = tuple(option.name for option in OPTIONS.values() if option.kept)
RULED = ("device", "frontend")  # kept, each by a rule of its own
# Members of a receipt's request that a new import goes on with by itself.
REMEMBERED = (
    "reference", "observed", "measured", "preferences", "device", "memory", "goal", "concurrency", "context",
)  # fmt: skip


def again(request: Mapping[str, object], *more: str) -> str:
    """Return the command that imports the same again, with ``more`` words behind it."""
    words = ["importer", str(request["reference"])]
    left_out = {*REMEMBERED}
    if request.get("per_device"):  # such a document is found by its device
        left_out -= {"device", "memory"}
    memory = request.get("memory")
    if isinstance(memory, int):
        request = {**request, "memory": f"{memory / 2**30}".removesuffix(".0") + "GiB"}
    for key, value in request.items():
        for one in () if key in left_out else value if isinstance(value, list) else (value,):
            if one not in (None, False):
                words += [f"--{key.replace('_', '-')}", *([] if one is True else [str(one)])]
    return shlex.join([*words, *more])


def again_of(stored: StoredDocument, *more: str, **changed: str) -> str:
    """Return the command that imports the model of a document again, into the document."""
    request = {"reference": stored.reference} if stored.receipt is None else stored.receipt.request
    return again({**request, "name": stored.name, "backend": stored.backend, **changed}, *more)
