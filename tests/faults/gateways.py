"""Servers, documents and machines as somebody met them in use: written without a look at the probes."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.steps import Limited, Module, Says, Started, Wire

STREAMS = {"mlx-vlm": "its streams hold no call"}
VLLM = dict.fromkeys(("mlx", "mlx-vlm", "vllm-mlx"), "its server does not offer it")
LOADS = dict.fromkeys(("mlx", "mlx-vlm", "vllm-mlx"), "its server is not told how to load")
WORDS = dict.fromkeys(("mlx-vlm", "vllm-mlx"), "it does not heed stop words")
TOO_OLD = "cannot import name 'AddedToken' from 'tokenizers' (/venv/tokenizers/__init__.py)"
NO_LIBRARY = "libgomp.so.1: cannot open shared object file: No such file or directory"

FAULTS = (
    Fault(
        "arguments-streamed-again",
        "When a streamed call ends, its arguments come once more.",
        "engine",
        (Wire("arguments_again"),),
        apart=STREAMS,
        mend="whole answers",
        bitten="servers that send what is left of the arguments, and take all for left",
    ),
    Fault("one-id-for-all-calls", "Every call has the id call_0.", "engine", (Wire("one_id"),)),
    Fault(
        "stream-never-says-why",
        "No event of a stream has a finish_reason.",
        "engine",
        (Wire("no_finish"),),
        mend="whole answers",
    ),
    Fault(
        "first-call-comes-alone",
        "Of several calls in one answer the first comes out.",
        "engine",
        (Wire("first_call_only"),),
    ),
    Fault(
        "history-told-in-words",
        "Calls and results of earlier turns reach the template as text.",
        "engine",
        (Wire("history_as_text"),),
        bitten="after two rounds the model writes calls as text, vllm-mlx",
    ),
    Fault(
        "prompt-counted-twice",
        "usage has twice the prompt's tokens.",
        "engine",
        (Wire("prompt_counted_twice"),),
        apart={"mlx-vlm": "its counts are known to differ and are not judged"},
    ),
    Fault(
        "stop-string-shown",
        "Answers end behind a stop string and not before it.",
        "engine",
        (Wire("stop_kept_aside"), Wire("stop_shown")),
        apart={"mlx": "stop strings are cut out there, and answers go on", **WORDS},
    ),
    Fault(
        "letters-cut-in-streams",
        "In streams a letter of several bytes comes as so many question marks.",
        "engine",
        (Wire("letters_cut"),),
        apart={"mlx-vlm": "its streams hold no call, and toy models write such letters there alone"},
        mend="whole answers",
        bitten="detokenizers that do not wait for the next token",
    ),
    Fault(
        "long-prompts-cut-in-silence",
        "Of a long message the server reads the end and says nothing.",
        "engine",
        (Wire("long_prompts_cut"),),
        bitten="a context of 2,048 that nobody set, Ollama",
    ),
    Fault(
        "answers-swapped-under-load",
        "Where many ask at once, one gets the answer of another.",
        "engine",
        (Wire("answers_swapped"),),
    ),
    Fault(
        "many-are-turned-away",
        "Where many ask at once, some are told to come again.",
        "engine",
        (Wire("turned_away"),),
        bitten="a 503 while another is answered, vllm-mlx",
    ),
    Fault(
        "slot-lost-with-a-client",
        "A client leaves in the middle of a stream, and its slot stays taken.",
        "engine",
        (Wire("slot_kept"),),
        bitten="slots stayed taken, vllm-mlx",
    ),
    Fault(
        "answer-doubled-as-a-thought",
        "What is answered comes as a thought, too.",
        "engine",
        (Wire("answer_as_thought"),),
        bitten="LocalAI 11791",
    ),
    Fault(
        "named-tool-unheard",
        "A request names the tool to call, and the server leaves it to the model.",
        "engine",
        (Wire("choice_unheard"),),
        apart=VLLM,
        bitten="worked in 0.21 and not in 0.26, Gemma 4 50477",
    ),
    Fault(
        "shape-unheard",
        "A request wants an answer by a schema, and the server writes what it likes.",
        "engine",
        (Wire("schema_unheard"),),
        apart=VLLM,
    ),
    Fault(
        "stop-word-ends-calls",
        "The document stops answers at the tag behind a call.",
        "configuration",
        (Says({"stopwords": ["</tool_call>"]}),),
        apart=WORDS,
        mend="stopwords",
        bitten="recipes from before servers read calls",
    ),
    Fault(
        "limit-within-calls",
        "max_tokens lets a sentence end and no call.",
        "configuration",
        (Says({"parameters.max_tokens": 24}),),
        mend="max_tokens",
    ),
    Fault(
        "weights-are-dice",
        "The document loads no weights: load_format is left over from a measurement of speed.",
        "configuration",
        (Says({"load_format": "dummy"}),),
        apart=LOADS,
        mend="load_format",
    ),
    Fault(
        "variables-lost-at-the-start",
        "The document switches thinking off and the engine is started without the switch.",
        "configuration",
        (Started({"chat_template_kwargs": None}),),
        given=(Says({"chat_template_kwargs": {"enable_thinking": False}}),),
    ),
    Fault(
        "no-turn-to-answer-in",
        "A variable in the document tells the template to begin no turn of the assistant.",
        "configuration",
        (Says({"chat_template_kwargs": {"add_generation_prompt": False}}),),
        mend="add_generation_prompt",
    ),
    Fault(
        "too-few-files",
        "The engine's processes may open thirty files each.",
        "environment",
        (Limited("RLIMIT_NOFILE", 30),),
        apart=dict.fromkeys(("mlx", "mlx-vlm", "vllm-mlx"), "mlx-lm raises the limit by itself"),
        mend="files",
        bitten="Too many open files in services with the system's limit",
    ),
    Fault(
        "memory-limited",
        "The engine's process may have half a GiB of addresses.",
        "environment",
        (Limited("RLIMIT_AS", 1 << 29),),
        mend="memory",
        bitten="containers with a limit",
    ),
    Fault(
        "instruction-unknown",
        "A library was built for another processor.",
        "environment",
        (Module("tokenizers", "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"),),
        mend="processor",
        bitten="a wheel for AVX-512 on a machine without",
    ),
    Fault(
        "package-of-another-release",
        "A package in the engine's environment is older than the engine wants.",
        "environment",
        (Module("tokenizers", f"raise ImportError({TOO_OLD!r})\n"),),
        bitten="pip install of something else into the engine's environment",
    ),
    Fault(
        "library-missing",
        "A library of the system is not installed.",
        "environment",
        (Module("tokenizers", f"raise ImportError({NO_LIBRARY!r})\n"),),
        mend="libgomp",
        bitten="slim images of containers",
    ),
    Fault(
        "disk-full",
        "The disk is full when the engine writes its first file.",
        "environment",
        (Module("tokenizers", "raise OSError(28, 'No space left on device', '/tmp/cache')\n"),),
        mend="space",
    ),
)
