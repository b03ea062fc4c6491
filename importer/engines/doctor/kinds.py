"""The kinds of findings, with their sentences."""

from __future__ import annotations

from importer.reasons import Fields, ReasonKind


def _unended(fields: Fields) -> str:
    return str(fields["problem"]).rstrip(".")


class DoctorReason(ReasonKind):
    """The state that a check reports."""

    SOUND = "sound", "in order"
    ERROR = "error", _unended
    ADDED_TOKENS_FOREIGN = (
        "added-tokens-foreign",
        "the tokenizer is another model's: token {number} is {given!r} in {file} and {told!r} in {settings}",
    )
    CARDS_FEW = "cards-few", "the document wants {wanted} cards, and {count} are here"
    CARDS_FREE = "cards-free", "{wanted} of {count} cards, {free:.1f} GB free"
    CARDS_IN_USE = (
        "cards-in-use",
        "{free:.1f} of {total:.1f} GB are free on a card, and vLLM wants {share:.0%} of it",
    )
    CARDS_NONE = (
        "cards-none",
        "{engine} serves on NVIDIA cards, and this machine has none: only its parsers run here",
    )
    CHANGED_SINCE = "changed-since", "not as imported: {files:and}"
    CONTEXT = "context", "the document's context is {wanted:,} tokens, the model's {longest:,}"
    DRIVER = "driver", "driver {driver}, CUDA {cuda}"
    DRIVER_WITHOUT_CARD = (
        "driver-without-card",
        "the NVIDIA driver is loaded, and no card is to be seen in /dev",
    )
    END_IS_WORD = "end-is-word", "{file} ends texts at token {number}, which is the word {word!r}"
    ENGINE_INSTALLED = "engine-installed", "{version} in {place}"
    ENGINE_MISSING = "engine-missing", "not installed"
    ENGINE_UNFINISHED = "engine-unfinished", "its environment is unfinished or of another version"
    FOLDER = "folder", "{folder}: {problem}"
    FRONTEND_PARSER = "frontend-parser", "the frontend in Rust does not serve with the parser {parser} here"
    FRONTEND_MISSING = (
        "frontend-missing",
        "vLLM {version} is here without vllm-rs, the binary of its frontend in Rust",
    )
    FRONTEND_OLD = "frontend-old", "{engine} {version} has no frontend in Rust; vLLM has it from 0.33 on"
    FILE_MISSING = "file-missing", "there is no {file}"
    HEAD_LACKING = (
        "head-lacking",
        "config.json says {key}: false, and the weights hold {tensor} alone and no output layer",
    )
    INSTRUCTIONS_LACKING = (
        "instructions-lacking",
        "{who} is compiled for {wanted}, and {lacking} is not here: it would die of an illegal instruction",
    )
    LIBRARIES_LACKING = (
        "libraries-lacking",
        "its extension needs {missing}, and that cannot be loaded: the engine would start and die later",
    )
    MARKER_LOST = (
        "marker-lost",
        (
            "a token is lost: {marker} is in the vocabulary and in the chat template, and {file} cuts it "
            "into pieces"
        ),
    )
    MEMORY = "memory", "{free:.1f} GB available"
    MEMORY_NEEDED = (
        "memory-needed",
        (
            "{free:.1f} GB available; weights, KV cache and engine take about {likely:.1f} GB, "
            "{low:.1f} GB at least"
        ),
    )
    METADATA_ALONE = (
        "metadata-alone",
        "the metadata of {name} {version} is there, its package {package} is not",
    )
    METADATA_SHARED = "metadata-shared", "{distributions:and} share one package, overwritten or left over"
    ROPE = "rope", "config.json has {key} under {place} only, which {module} does not read"
    SHARED = (
        "shared",
        "{free:,.0f} MiB free in {place} for {workers:,} workers, which take about {wanted:,.0f} MiB",
    )
    SPACE = "space", "{free:.1f} GB free in {place}"
    SPACE_SHORT = "space-short", "{free:.1f} GB free in {place}, and up to {wanted:.1f} GB are to come there"
    TORCH = "torch", "{packages}"
    TORCH_FOR_PROCESSORS = "torch-for-processors", "its torch is a build for processors"
    TORCH_OTHER = "torch-other", "{name} {version} was built with torch {wanted:or}, and torch {here} is here"
    TORCH_SISTER = (
        "torch-sister",
        "{name} {version} is built for another torch than {here}: importing transformers would fail",
    )


def _several(fields: Fields) -> str:
    return " ".join(dict.fromkeys(fields["remedies"]))


class DoctorRemedy(ReasonKind):
    """The change that removes a trouble."""

    CORRECT_VARIABLE = "correct-variable", "Correct {variable}, or unset it and install {name}."
    DROP_END = "drop-end", "Take {number} out of eos_token_id in {file}, or fetch that file anew."
    END_PROGRAMS = "end-programs", "End other programs, or try a small model."
    FETCH_AGAIN = "fetch-again", "Fetch the files again; after git clone, run 'git lfs pull'."
    FETCH_SNAPSHOT = "fetch-snapshot", "Remove {folder} and fetch the weights again."
    FETCH_TOKENIZER = "fetch-tokenizer", "Fetch both from the repository that the weights are from."
    FEWER_CARDS = "fewer-cards", "Import again for this machine, or run it where the cards are."
    FREE_SPACE = "free-space", "Free space, or set {variable} to a folder on another disk."
    FREE_THE_CARD = "free-the-card", "End what else uses the card, or lower gpu_memory_utilization."
    GIVE_CARDS = "give-cards", "Start the container with its cards, as your runtime says it."
    IMPORT_WEIGHTS = "import-weights", "Import a snapshot that has both."
    INSTALL = "install", "Install {name}."
    INSTALL_AGAIN = "install-again", "Remove {name}, and install it again."
    INSTALL_PACKAGES = "install-packages", "Install {packages} (Debian's names). {again}"
    LESS_MEMORY = (
        "less-memory",
        "End other programs, raise the container's limit, or import again for {gib} GiB of memory.",
    )
    LESS_MEMORY_ON_CPU = (
        "less-memory-on-cpu",
        (
            "End other programs, raise the container's limit, or import again for {gib} GiB of memory. A "
            "smaller VLLM_CPU_KVCACHE_SPACE or kv_cache_memory_bytes leaves more for the weights."
        ),
    )
    MATCHING_TORCH = (
        "matching-torch",
        (
            "{again} By hand: 'pip uninstall {name}', which text models do without, or take a build from "
            "PyTorch's index (https://download.pytorch.org/whl/cpu)."
        ),
    )
    MEND_ENVIRONMENT = "mend-environment", "Mend the environment of {python}."
    NEWER_DRIVER = (
        "newer-driver",
        "Install NVIDIA's driver {wanted} or newer, or a vLLM built with an older CUDA.",
    )
    OTHER_MACHINE = (
        "other-machine",
        "Use another engine or machine, or give the virtual machine its host's own processor type.",
    )
    OTHER_PORT = "other-port", "Choose another port, or none for a free one."
    PUT_BACK = "put-back", "Put {files:and} back as imported, or import the model again."
    PYTHON_FRONTEND = "python-frontend", "Import the model again for the frontend in Python."
    RAISE_SHARED = "raise-shared", "Give the container the host's shared memory, or {gib} GiB of its own."
    SERVE_ELSEWHERE = (
        "serve-elsewhere",
        "Export the document, and serve it on a machine with NVIDIA's driver and a card.",
    )
    SET_CONTEXT = "set-context", "Set max_model_len to {tokens}."
    SEVERAL = "several", _several
    TIE_EMBEDDINGS = "tie-embeddings", 'Write "{key}": true in config.json, or fetch the weights anew.'
    WRITE_ROPE = (
        "write-rope",
        'Write "{key}": {value:g} at {place} of config.json in a copy of the model, or use another engine.',
    )
