"""The kinds of findings, with their sentences."""

from __future__ import annotations

from importer.reasons import Fields, ReasonKind


def _unended(fields: Fields) -> str:
    return str(fields["problem"]).rstrip(".")


def _cards_in_use(fields: Fields) -> str:
    wants = f"and vLLM wants {fields['share']:.0%} of it"
    held = f"; on the card: {', '.join(fields['held'])}" if fields["held"] else ""
    return f"{fields['free']:.1f} of {fields['total']:.1f} GB are free on a card, {wants}{held}"


class DoctorReason(ReasonKind):
    """The state that a check reports."""

    SOUND = "in order"
    ERROR = (_unended,)
    ADDED_TOKENS_FOREIGN = (
        "the tokenizer is another model's: token {number} is {given!r} in {file} and {told!r} in {settings}"
    )
    CARDS_FEW = "the document wants {wanted} cards, and {count} are here"
    CARDS_FREE = "{wanted} of {count} cards, {free:.1f} GB free"
    CARDS_IN_USE = (_cards_in_use,)
    CARDS_NONE = "{engine} serves on NVIDIA cards, and this machine has none: only its parsers run here"
    CHANGED_SINCE = "not as imported: {files:and}"
    CONTEXT = "the document's context is {wanted:,} tokens, the model's {longest:,}"
    DRIVER = "driver {driver}, CUDA {cuda}"
    DRIVER_WITHOUT_CARD = "the NVIDIA driver is loaded, and no card is to be seen in /dev"
    END_IS_WORD = "{file} ends texts at token {number}, which is the word {word!r}"
    ENGINE_INSTALLED = "{version} in {place}"
    ENGINE_MISSING = "not installed"
    ENGINE_UNFINISHED = "its environment is unfinished or of another version"
    FOLDER = "{folder}: {problem}"
    FRONTEND_PARSER = "the frontend in Rust does not serve with the parser {parser} here"
    FRONTEND_MISSING = "vLLM {version} is here without vllm-rs, the binary of its frontend in Rust"
    FRONTEND_OLD = "{engine} {version} has no frontend in Rust; vLLM has it from 0.33 on"
    FILE_MISSING = "there is no {file}"
    HEAD_LACKING = "config.json says {key}: false, and the weights hold {tensor} alone and no output layer"
    INSTRUCTIONS_LACKING = (
        "{who} is compiled for {wanted}, and {lacking} is not here: it would die of an illegal instruction"
    )
    LIBRARIES_LACKING = (
        "its extension needs {missing}, and that cannot be loaded: the engine would start and die later"
    )
    MARKER_LOST = (
        "a token is lost: {marker} is in the vocabulary and in the chat template, and {file} cuts it "
        "into pieces"
    )
    MEMORY = "{free:.1f} GB available"
    MEMORY_NEEDED = (
        "{free:.1f} GB available; weights, KV cache and engine take about {likely:.1f} GB, "
        "{low:.1f} GB at least"
    )
    METADATA_ALONE = "the metadata of {name} {version} is there, its package {package} is not"
    METADATA_SHARED = "{distributions:and} share one package, overwritten or left over"
    ROPE = "config.json has {key} under {place} only, which {module} does not read"
    SHARED = "{free:,.0f} MiB free in {place} for {workers:,} workers, which take about {wanted:,.0f} MiB"
    SPACE = "{free:.1f} GB free in {place}"
    SPACE_SHORT = "{free:.1f} GB free in {place}, and up to {wanted:.1f} GB are to come there"
    TORCH = "{packages}"
    TORCH_FOR_PROCESSORS = "its torch is a build for processors"
    TORCH_OTHER = "{name} {version} was built with torch {wanted:or}, and torch {here} is here"
    TORCH_SISTER = (
        "{name} {version} is built for another torch than {here}: importing transformers would fail"
    )


def _several(fields: Fields) -> str:
    return " ".join(dict.fromkeys(fields["remedies"]))


class DoctorRemedy(ReasonKind):
    """The change that removes a trouble."""

    CORRECT_VARIABLE = "Correct {variable}, or unset it and install {name}."
    DROP_END = "Take {number} out of eos_token_id in {file}, or fetch that file anew."
    END_PROGRAMS = "End other programs, or try a small model."
    FETCH_AGAIN = "Fetch the files again; after git clone, run 'git lfs pull'."
    FETCH_SNAPSHOT = "Remove {folder} and fetch the weights again."
    FETCH_TOKENIZER = "Fetch both from the repository that the weights are from."
    FEWER_CARDS = "Import again for this machine, or run it where the cards are."
    FREE_SPACE = "Free space, or set {variable} to a folder on another disk."
    FREE_THE_CARD = "End what else uses the card, or lower gpu_memory_utilization."
    GIVE_CARDS = "Start the container with its cards, as your runtime says it."
    IMPORT_WEIGHTS = "Import a snapshot that has both."
    INSTALL = "Install {name}."
    INSTALL_AGAIN = "Remove {name}, and install it again."
    INSTALL_PACKAGES = "Install {packages} (Debian's names). {again}"
    LESS_MEMORY = "End other programs, raise the container's limit, or import again for {gib} GiB of memory."
    LESS_MEMORY_ON_CPU = (
        "End other programs, raise the container's limit, or import again for {gib} GiB of memory. A "
        "smaller VLLM_CPU_KVCACHE_SPACE or kv_cache_memory_bytes leaves more for the weights."
    )
    MATCHING_TORCH = (
        "{again} By hand: 'pip uninstall {name}', which text models do without, or take a build from "
        "PyTorch's index (https://download.pytorch.org/whl/cpu)."
    )
    MEND_ENVIRONMENT = "Mend the environment of {python}."
    NEWER_DRIVER = "Install NVIDIA's driver {wanted} or newer, or a vLLM built with an older CUDA."
    OTHER_MACHINE = (
        "Use another engine or machine, or give the virtual machine its host's own processor type."
    )
    OTHER_PORT = "Choose another port, or none for a free one."
    PUT_BACK = "Put {files:and} back as imported, or import the model again."
    PYTHON_FRONTEND = "Import the model again for the frontend in Python."
    RAISE_SHARED = "Give the container the host's shared memory, or {gib} GiB of its own."
    SERVE_ELSEWHERE = "Export the document, and serve it on a machine with NVIDIA's driver and a card."
    SET_CONTEXT = "Set max_model_len to {tokens}."
    SEVERAL = (_several,)
    TIE_EMBEDDINGS = 'Write "{key}": true in config.json, or fetch the weights anew.'
    WRITE_ROPE = (
        'Write "{key}": {value:g} at {place} of config.json in a copy of the model, or use another engine.'
    )
