"""Sentences about engines: their installation, their starts and their ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _death(fields: Mapping[str, Any]) -> str:
    how = "closed its answers" if fields["status"] is None else f"ended with status {fields['status']}"
    return f"the worker {how}" + (f": {fields['words']}" if fields["words"] else "")


def _elsewhere(fields: Mapping[str, Any]) -> str:
    where = f"it listens on {fields['address']}, and clients ask {fields['asked']}"
    return where if fields["argument"] is None else f"{where}: take {fields['argument']} out of its start"


TEXTS: dict[str, dict[str, Text]] = {
    "Died": {
        "architecture": "{words} by this version of the engine",
        "card-in-use": "{words}",
        "code-not-trusted": "the repository brings code, which runs only with trust_remote_code: true",
        "config-broken": "config.json is missing or broken",
        "config-lacks": "config.json lacks {keys}",
        "context-too-large": "the context does not fit into memory: {words}",
        "context-too-long": "{words}",
        "contents-refused": "its files are whole, and what stands in one of them is refused ({problem}): "
        "compare them with the vendor's",
        "elsewhere": _elsewhere,
        "file-broken": "a weights file, or another file of JSON, is broken: {words}",
        "json-broken": "config.json, or another file of JSON, is missing or broken",
        "last-words": "{words}",
        "model-type-unknown": "model type {type} is not known to this version of the engine",
        "model-type-unsupported": "{words} is not supported by this version of the engine",
        "no-avx2": "this processor lacks AVX2, which the build needs",
        "no-dtype": "config.json's dtype {dtype} is none",
        "no-device": "it finds no device that it is built for: its driver, or its build, is another's",
        "no-library": "the system lacks {library}; install libnuma1 and libgomp1",
        "no-memory-for-cache": "there is not enough memory for weights and KV cache",
        "no-memory-for-weights": "there is not enough memory for the weights",
        "no-module": "its environment lacks {module}; install that there, or the engine again",
        "option-refused": "its server refused an option: {words}",
        "own-files": "it starts with the model that ships and not with this one ({problem}): "
        "compare config.json, the tokenizer and the weights with the vendor's",
        "package-unfit": "{package} asks for {requirement}, and {installed} is installed ({problem}): install the "
        "engine again",
        "parser-not-there": "its server has no parser {parser} for {option}",
        "parser-unfit": "the parser {parser} does not fit the tokenizer: {words}",
        "parser-unknown": "{words}",
        "parser-with-another": "{problem}. {remedy}",
        "port-taken": "the port is taken",
        "python-fails": "its Python does not start: {words}",
        "quantisation-untold": "the weights are quantised, and config.json does not say how: "
        "put its quantization back",
        "reasoning-parser-unfit": "{words}; another reasoning_parser, or none, is this model's",
        "setting": "it starts without {setting}: correct it, or take it out ({problem})",
        "settings-refused": "it refused its settings: {words}",
        "silent": "its log is empty",
        "tokenizer-broken": "the tokenizer is missing or broken ({words})",
        "tokenizers-parser": "tokenizer_config.json names the tool parser {parser}, "
        "which this version does not have",
        "tool-parser-unfit": "{words}; another tool_parser is this model's",
        "torchvision": "its torchvision is built for another torch ({words}); install the engine again",
        "weights-broken": "a weights file is broken: {words}",
        "weights-unfit": "the weights do not fit config.json ({words})",
        "worker-gone": "{words}",
    },
    "Lacking": {
        "big-files": "it may not write files as large as it needs: raise the limit (ulimit -f)",
        "disk": "there is no space left on the disk",
        "fit": "packages of its environment do not fit one another ({words}): install the engine again",
        "hidden-module": "a file {module}.py on PYTHONPATH hides Python's own module, "
        "or this Python is too new: it has no {attribute}",
        "instruction": "this processor lacks an instruction that a library needs",
        "killed": "it was killed, as the system does where the memory runs out",
        "library": "the system lacks the library {library}: install the package that has it",
        "library-version": "the system is too old for a library: it lacks {version}",
        "locale": "the locale has no letters but English ones: set LC_ALL=C.UTF-8",
        "log-space": "no more lines fit into {path}: make room on its disk and start the engine anew",
        "memory": "there is not enough memory, or a limit of it is too low",
        "module-in-the-way": "{file} stands in the way of Python's own module {module}: "
        "take its folder off PYTHONPATH",
        "open-files": "it may not open as many files as it needs: raise the limit (ulimit -n)",
        "permission": "a file's owner does not let it in ({words})",
        "processor-seconds": "it used all seconds of the processor that it may have: "
        "raise the limit (ulimit -t)",
        "processor": "this processor lacks an instruction that a library needs: "
        "install a build for this processor",
        "writable-folder": "it has to write where nothing can be written: give it a folder of its own",
    },
    "Unstartable": {
        "code-in-model-file": "config.json has model_file, code that {server} runs at its start: "
        "trust_remote_code allows it",
        "flag-for-vllm": "options has {flag}, and {server}'s server takes its own from engine_args",
        "layers-or-parts": "mlx-lm shares layers or their parts, so {key} goes without the other",
        "model-is-option": "parameters.model begins like an option",
        "model-unprintable": "parameters.model holds characters that cannot be seen",
        "no-rust-frontend": "importer.engine.frontend is 'rust', and vLLM has it from 0.33 on, not in {version}",
        "no-tokenizer-config": "importer.{key} belongs into the model's {file}, which is missing or cannot be read",
        "no-template": "importer.{key} names a template, and none is there",
        "not-a-file": "engine_args.{key} is {value!r} and not the whole path of a file",
        "not-a-name": "{key} is {value!r} and not a name",
        "not-a-number": "{key} is {value!r} and not a number",
        "not-a-version": "importer.engine.version is {value!r} and not a version",
        "not-in-config-file": "{key} is {value}, which vLLM's configuration file cannot say",
        "not-ranks": "{key} is {value!r} and no number of ranks",
        "template-too-long": "its chat template has more than {limit:,} bytes",
        "variable-lost": "chat_template_kwargs.{key} does not reach the template on mlx-vlm, "
        "only {only} does",
    },
    "RegistryReason": {
        "no-frontend": "{engine} {version} has no frontend in Rust; these versions have one: {known}",
        "unknown-version": "the parsers of {engine} {version} are not known here, only those of {known}",
    },
    "Accident": {
        "death": _death,
        "hang": "the worker gave no answer within {seconds:g} s",
        "memory": "it took more memory than it may",
        "overrun": "it took longer than {seconds:g} s",
    },
    "ParserFailure": {
        "raised": "{words}",
    },
    "WorkerReason": {
        "lost-again": "it was lost {times} times in one question",
        "not-started": "{python} could not be started ({problem})",
    },
    "InstallReason": {
        "command-ended": "'{command}' ended with {status}",
        "package-absent": "the package is not there afterwards",
    },
    "Exit": {
        "answers": "none, its server answers {status}",
        "elsewhere": "none, it listens on {address}",
        "first-request": "none, its first request got {status}",
        "still": "none, it stood still for {seconds:.0f} s",
    },
    "StartSetting": {
        "of-document": "{key}.{name} ({value}) of the document",
        "of-model": "{name} ({value}) in {key}",
        "of-machine": "the variable {name} ({value}) of its environment",
    },
}
