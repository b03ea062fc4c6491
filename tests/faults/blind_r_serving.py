"""Letter r: gateways, caches, replicas, and how the server is started."""

from __future__ import annotations

from tests.faults.fault import Fault
from tests.faults.starting import Arguments, Wire

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '')"
    " + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

FAULTS = (
    Fault(
        "r-stream-started-anew",
        "In the middle of a streamed answer the gateway begins again, and clients show half of it twice.",
        "engine",
        (Wire("r_started_anew"),),
        base="qwen3coder",
    ),
    Fault(
        "r-alike-remembered",
        "Whoever asks about Oslo gets the answer about Rome, for the questions begin alike.",
        "engine",
        (Wire("r_alike_remembered"),),
    ),
    Fault(
        "r-own-stop",
        "Answers end at their first empty line, and many are empty.",
        "engine",
        (Wire("r_own_stop"),),
    ),
    Fault(
        "r-thoughts-in-content",
        "Thoughts stand in the answer, between tags, where every user reads them.",
        "engine",
        (Wire("r_thoughts_in_content"),),
    ),
    Fault(
        "r-entities-masked",
        "Names and cities are masked before the model reads them, and it answers about others.",
        "engine",
        (Wire("r_entities_masked"),),
    ),
    Fault(
        "r-stream-cut",
        "Streamed answers of more than a few words end in the middle of a word, without an error.",
        "engine",
        (Wire("r_stream_cut"),),
    ),
    Fault(
        "r-one-replica-without-parser",
        "Every second call arrives as text between tags, and no application sees it.",
        "engine",
        (Wire("r_old_replica"), Wire("r_calls_unread")),
    ),
    Fault(
        "r-camel-case",
        "Calls and the reason of the end come under names that no client of this interface knows.",
        "engine",
        (Wire("r_camel_case"),),
    ),
    Fault(
        "r-pieces-stripped",
        "Streamed answers have no spaces between their words.",
        "engine",
        (Wire("r_pieces_stripped"),),
        base="mistral",
    ),
    Fault(
        "r-first-event-lost",
        "Streamed answers lack their first word.",
        "engine",
        (Wire("r_first_event_lost"),),
        base="qwen3coder",
    ),
    Fault(
        "r-started-with-plain-template",
        "The server was started with a general template that knows no tools, and no tool is called.",
        "engine",
        (Arguments((f"--chat-template={CHATML}",)),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm"), "it takes no template on its command line"),
    ),
)
