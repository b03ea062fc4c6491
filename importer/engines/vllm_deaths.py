"""How vLLM's log tells why it ended, for both of its builds and both of its frontends."""

from __future__ import annotations

from importer.engines.deaths import CONFIGURATION, ENGINE, ENVIRONMENT, Death, Died

# Causes of its end in its log, the most specific first.
DEATHS = (
    Death(r"(?P<words>operator torchvision::\w+ does not exist)", Died.TORCHVISION, ENVIRONMENT),
    Death(
        r"(?P<library>lib(?:numa|gomp)\S*): cannot open shared object file",
        Died.NO_LIBRARY,
        ENVIRONMENT,
    ),
    Death(r"Illegal instruction", Died.NO_AVX2, ENVIRONMENT),
    Death(r"Failed to infer device type", Died.NO_DEVICE, ENVIRONMENT),
    Death(
        r"(?P<parser>--\S+ \S+(?: and --\S+ \S+)?) cannot be used with the tokenizer[^:]*: (?P<words>.*)",
        Died.PARSER_UNFIT,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>(?i:\w[\w ]{0,60} reasoning parser) could not locate [^\n]* in the tokenizer)",
        Died.REASONING_PARSER_UNFIT,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>(?i:\w[\w ]{0,60} tool parser) could not locate [^\n]* in the tokenizer)",
        Died.TOOL_PARSER_UNFIT,
        CONFIGURATION,
    ),
    # The frontend in Rust.
    Death(
        r"(?P<words>(?:tool|reasoning) parser `\S+?` is not registered)",
        Died.PARSER_UNKNOWN,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>The following arguments are not implemented in Rust frontend yet:\s+- \S+)",
        Died.OPTION_REFUSED,
        CONFIGURATION,
    ),
    Death(
        r"VLLM_RUST_FRONTEND_PATH=auto but the (?P<module>vllm-rs) binary was not",
        Died.NO_MODULE,
        ENVIRONMENT,
    ),
    Death(
        r"KeyError: .*?(?P<words>invalid (?:tool call|reasoning) parser: \S+)",
        Died.PARSER_UNKNOWN,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>Model architectures \[.*?\] (?:are not supported|failed to be inspected))",
        Died.ARCHITECTURE,
        CONFIGURATION,
    ),
    Death(
        r"model type `?'?(?P<type>[\w.-]+)`?'? but Transformers does not recognize",
        Died.MODEL_TYPE_UNKNOWN,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>User-specified max_model_len \(\d+\) is greater than "
        r"the derived max_model_len \(.*?\))",
        Died.CONTEXT_TOO_LONG,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>To serve at least one request with .*?KV cache.*?\))",
        Died.CONTEXT_TOO_LARGE,
        CONFIGURATION,
    ),
    Death(r"(?P<words>Free memory on device .*? is less than .*?\))", Died.CARD_IN_USE, ENVIRONMENT),
    Death(
        r"(?:No available memory for the cache blocks|Available memory on node .*)",
        Died.NO_MEMORY_FOR_CACHE,
        ENVIRONMENT,
    ),
    Death(
        r"(?:OutOfMemoryError|CUDA out of memory|MemoryError|std::bad_alloc)",
        Died.NO_MEMORY_FOR_WEIGHTS,
        ENVIRONMENT,
    ),
    Death(r"SafetensorError: (?P<words>.*)", Died.WEIGHTS_BROKEN, ENVIRONMENT),
    Death(
        r"for VllmConfig\s+Value error, "
        r"(?P<words>(?:Expecting|Unterminated|Extra data|Invalid).*? \(char \d+\))",
        Died.FILE_BROKEN,
        ENVIRONMENT,
    ),
    Death(
        r"(?P<words>Couldn't instantiate the backend tokenizer|(?<=^Exception: ).* at line \d+ column \d+$)",
        Died.TOKENIZER_BROKEN,
        ENVIRONMENT,
    ),
    Death(
        r"config file at '\S+' is not a valid JSON file|Invalid repository ID or local directory specified",
        Died.CONFIG_BROKEN,
        ENVIRONMENT,
    ),
    Death(
        r"(?:weights were not initialized from checkpoint: \{|no module or parameter named )"
        r"'(?P<words>[\w.]+)'",
        Died.WEIGHTS_UNFIT,
        CONFIGURATION,
    ),
    Death(
        r"(?P<words>The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)"
        r"|Attempted to load weight .*)",
        Died.WEIGHTS_UNFIT,
        CONFIGURATION,
    ),
    Death(
        r"validation errors? for \w+(?:\n\S+)?\n +(?:Value error, )?(?P<words>.*?) \[type=",
        Died.SETTINGS_REFUSED,
        CONFIGURATION,
    ),
    Death(
        r"requires you to execute the configuration file|trust_remote_code=True",
        Died.CODE_NOT_TRUSTED,
        CONFIGURATION,
    ),
    Death(
        r"error: (?P<words>argument \S+: .*|unrecognized arguments: .*)",
        Died.OPTION_REFUSED,
        CONFIGURATION,
    ),
    Death(r"ModuleNotFoundError: No module named '?(?P<module>\S+?)'?$", Died.NO_MODULE, ENVIRONMENT),
    Death(
        r"(?P<words>Worker proc \S+ died unexpectedly(?: \(exit code: -?\d+\))?)",
        Died.WORKER_GONE,
        ENGINE,
    ),
)
