"""The reasons of all signals: they leave the sandbox without the modules that read files."""

from __future__ import annotations

from importer.reasons import Fields, ReasonKind, Text


class BackendReason(ReasonKind):
    """Reasons for a backend."""

    MLX_WEIGHTS = "mlx-weights", "the weights are in MLX's own quantisation ({quote})", "weights' format"
    MLX_ORIGIN = "mlx-origin", "the repository is made for MLX ({quote})", "repository for MLX"
    MLX_IS_NATIVE = "mlx-is-native", "MLX is native to Apple machines", "Apple machines"
    VLLM_SERVES = "vllm-serves", "vLLM serves on CPU and CUDA machines", "CPU and CUDA"
    OTHER_COULD = "other-could", "{engine} could load it there", "{engine}"
    OTHER_CAN = "other-can", "{refusal}; {engine} can load it", "weights' format"


WAYS = {
    "decoder": "a decoder",
    "hybrid": "a hybrid of attention and state-space or linear layers",
    "attention_free": "a model without attention",
    "encoder_decoder": "an encoder with a decoder",
}


def _by_itself(fields: Fields) -> str:
    on = "on" if fields["on"] else "off"
    return f"{fields['engine']} has prefix caching {on} by itself for {WAYS[fields['way']]}"


class CacheReason(ReasonKind):
    """Reasons for the settings of prompts and their cache."""

    SCALES_TO_SET = (
        "scales-to-set",
        "the checkpoint has scales for a KV cache in {cache}, and {engine} must be told so",
        "checkpoint's scales",
    )
    SCALES_TAKEN = (
        "scales-taken",
        "the checkpoint has scales for a KV cache in {cache}, and {engine} takes them by itself",
        "checkpoint's scales",
    )
    PREFIX_CACHING = "prefix-caching", _by_itself, "{engine}"


SHORT_MODES = {None: "", "thinking": ", thinking", "non_thinking": ", non-thinking"}


MODES = {None: "", "thinking": " with thinking", "non_thinking": " without thinking"}


def _card_says(end: str = "") -> Text:
    def text(fields: Fields) -> str:
        values = " and ".join(map(str, fields["values"]))
        return f"the card recommends {fields['key']} {values}{MODES[fields['mode']]}{end}"

    return text


class CardReason(ReasonKind):
    """Reasons from a model card."""

    HEADER = "header", "the card's header says {quote}", "card header"
    VALUE = "value", _card_says(), lambda fields: f"model card{SHORT_MODES[fields['mode']]}"
    UNCLEAR = "unclear", _card_says(", and nothing tells which is meant")


class CodeReason(ReasonKind):
    """Reasons about a repository's code."""

    NAMED = "named", "code of the repository is named in {places:and} for {parts}", "{places}"
    ELSEWHERE = "elsewhere", "code of other repositories is named, which no commit pins: {repos}"
    NEEDED = "needed", "{engine} will not start without this code"
    NOT_KNOWN = (
        "not-known",
        "whether {engine} starts without this code is not known",
    )
    NOT_NEEDED = "not-needed", "{engine} has all of it itself, so the code is not needed and not run"


class GatherReason(ReasonKind):
    """Reasons for a parser's name on another engine."""

    RENAMED = "renamed", "{reason}, which is {parser} on {engine}", "{reason}"


class LengthReason(ReasonKind):
    """Reasons for a context length."""

    NAMED = "named", "{file} says {quote}", "{file}"
    BY_CLASS = "by-class", "{file} names no {key}; {model_type} has {tokens} by default", "{model_type}"
    ASSUMED = "assumed", "{file} names no length, and {engine} then assumes {tokens}", "{engine}"
    IN_IT_ALREADY = (
        "in-it-already",
        "rope scaling {rope} with factor {factor:g} is in this length already",
        "rope {rope}",
    )
    MULTIPLIED = "multiplied", "rope scaling {rope} multiplies {tokens} by {factor:g}", "rope {rope}"
    LONGROPE = (
        "longrope",
        "with longrope up to {tokens} can be asked for, at some cost to short prompts",
        "longrope",
    )
    BELOW = (
        "below",
        "the model reads its rotary embedding in {part}: {key} is written there, too",
        "rope in {part}",
    )
    COMPLETED = (
        "completed",
        "{engine} does not lengthen the context by YaRN's factor: {key} is {tokens:,} beside it",
        "YaRN",
    )
    UNSCALED = (
        "unscaled",
        "the model was made for {made:,} tokens, and no rope scaling covers {tokens:,}: give YaRN, too",
        "beyond the model",
    )
    AFTER_PADDING = (
        "after-padding",
        "of {rows} positions the first {first} belong to padding, so a text has the others",
        "positions after padding",
    )


class ClaimReason(ReasonKind):
    """Reasons for parsers that a repository declares."""

    TOOL_PARSER_TYPE = "tool-parser-type", "the repository's {file} says {quote}", "{file}"
    RESPONSE_TEMPLATE = (
        "response-template",
        "the repository's {file} has a response_template with {field}",
        "{file}",
    )


class KinReason(ReasonKind):
    """Reasons for parsers by the model type, or by the name of the repository."""

    NAMED = (
        "named",
        "config.json says model_type: {model_type}, for which the parser {parser} or its class is named",
        "type {model_type}",
    )
    LIKE = (
        "like",
        "the parser {parser} has the name of {name}, with its version or an earlier one",
        "model name",
    )


def _short_mode(fields: Fields) -> str:
    """{family}, and the way of answering where the table has one of its own."""
    return f"{fields['family']}{SHORT_MODES[fields['mode']]}"


FIELDS = {"tool_parser": "tool parser", "reasoning_parser": "reasoning parser"}


def _whose(base: str | None) -> str:
    return "its name" if base is None else f"the model it was made from, {base},"


def _parser(fields: Fields) -> str:
    noun, note = FIELDS[fields["field"]], ""
    if fields["bare"]:
        note = " (a bare name is the base model's)"
    elif fields["note"]:
        note = f" ({fields['note']})"
    says = f"{_whose(fields['base'])} says {fields['family']}, known to"
    if fields["parser"] is None:
        return f"{says} have no {noun}{note}"
    return f"{says} need the {noun} {fields['parser']}{note}"


def _row(fields: Fields) -> str:
    way = "" if fields["mode"] is None else f" when {fields['mode'].replace('_', '-')}"
    origin = f", from {fields['origin']}" if fields["origin"] else ""
    return f"the sampling table has {fields['key']} {fields['value']} for {fields['family']}{way}{origin}"


class ModelNameReason(ReasonKind):
    """Reasons from the tables for a name or a model type."""

    FAMILY = (
        "family",
        lambda fields: f"{_whose(fields['base'])} belongs to the family {fields['family']}",
        "model name",
    )
    PARSER = "parser", _parser, "family {family}"
    SAMPLING = "sampling", _row, _short_mode
    MODEL_TYPE = "model-type", "config.json says {quote}, which is {family}", "config.json"


KINDS = {
    "chat": "a chat model",
    "embedding": "an embedding model",
    "reranker": "a reranker",
    "classifier": "a classifier",
    "reward": "a reward model",
    "transcription": "a model for transcription",
    "speech": "a speech or audio model",
    "image": "an image or video model",
    "draft": "a draft model for speculative decoding",
    "mlx-task": "a model with MLX weights that returns no text of a chat",
    "encoder-decoder": "a model with an encoder and a decoder that vLLM lacks",
    "no-text": "a model without a head for text",
    "unnamed": "a model whose config.json names no model type and no architecture",
    "adapter": "an adapter (LoRA) without the model that it changes",
    "base": "a base model",
    "guard": "a guard model",
    "ocr": "an OCR model",
    "translation": "a translation model",
}


class KindRemedy(ReasonKind):
    """Remedies for a model that cannot be imported."""

    DRAFTED = "drafted", "Import the model that it drafts for."
    DRAFTED_FOR = (
        "drafted-for",
        "Import {repo}, the model that it drafts for, with engine_args.speculative_config: {settings}.",
    )
    SERVED_BY = "served-by", "Serve it with {libraries:or}."
    OWN_LIBRARY = (
        "own-library",
        (
            "Serve it with the library that wrote its files, or import the repository with the original "
            "config.json."
        ),
    )
    NO_MLX = (
        "no-mlx",
        (
            "Import the repository with the original weights for vLLM; mlx-embeddings and mlx-audio serve "
            "MLX weights."
        ),
    )
    ADAPTED = "adapted", "Import {repo}, its base model, with {adapter} as its adapter."
    ADAPTED_UNNAMED = "adapted-unnamed", "Import its base model, with this adapter."


def of_kind(text: str) -> Text:
    """Return the text of a format string in which ``{of}`` is the kind of model with its article."""
    return lambda fields: text.format_map({**fields, "of": KINDS[fields["of"]]})


class KindReason(ReasonKind):
    """Reasons for the kind of a model."""

    ARCHITECTURE = "architecture", of_kind("the architecture {name} is that of {of}"), "architecture"
    KEY = "key", "config.json has {key}", "config.json"
    FILE = "file", of_kind("it has {file}, as {of} has"), "listed files"
    SCORES = "scores", "its {file} describes a model that scores pairs of texts ({quote})", "{file}"
    KIND_BY_NAME = "name-says-kind", of_kind("its name says that it is {of}"), "model name"
    TAG = "tag", "the Hub's {field} says {tag}", "Hub tags"
    TAGGED = (
        "tagged",
        "its {field} says {tag}: the chat template may be the base model's, and its answers may be no text",
    )
    TEMPLATE = "template", "it has a chat template in {where}", "chat template"
    NAME_HAS_WORD = "name-has-word", "its name says {word}", "model name"
    NO_TEMPLATE = "no-template", "it has a {file} and no chat template anywhere", "no chat template"
    IS = "is", of_kind("{of}")
    NOTHING_ELSE = "nothing-else", "nothing says that it is anything but a chat model", "default"
    IN_FOLDERS = "in-folders", "no model lies at its top, and one in each of {folders:and}"
    ONLY_GGUF = "only-gguf", "its only weights are GGUF files"
    ONE_SCORE = (
        "one-score",
        (
            "{name} with one label and a chat template ranks texts, or scores answers as a reward model; "
            "nothing says which"
        ),
        "one label",
    )


def _card(fields: Fields) -> str:
    least = "" if fields["least"] is None else f" of compute capability {fields['least']:.1f} or more"
    return f"it needs an NVIDIA card{least}"


def _does_not_read(fields: Fields) -> str:
    alone = " or ".join(fields["alone"])
    how = f"reads {alone} alone, not" if alone else "does not read"
    return f"{fields['engine']} {how} {fields['quantisation']}"


class LoadReason(ReasonKind):
    """Reasons why an engine's version can load a model, or cannot."""

    TOGETHER = "together", "{reasons:;}"
    DEPRECATED = (
        "deprecated",
        "{engine} refuses {method}, which it means to drop, unless it is told to allow it",
        "{engine} deprecation",
    )
    REMOVED = "removed", "{engine} does not serve {architecture} any more; {last} was the last that did"
    NOT_ITS_OWN = (
        "not-its-own",
        "{engine} has no {architecture} of its own; it would try transformers' code for it",
    )
    NO_CODE = (
        "no-code",
        (
            "{engine} has neither {architecture} nor the model type {model_type}, and the repository has no "
            "code for them; a newer version may"
        ),
    )
    NO_MODEL_TYPE = "no-model-type", "{engine} has no model type {model_type}"
    NO_TOWER = (
        "no-tower",
        "{engine} loads a vision tower of {towers:or} for {model_type}, and vision_config says {quote}",
    )
    NO_TOKENIZER = (
        "no-tokenizer",
        (
            "{file} says {quote}, a class that the transformers of {engine} lacks: take a newer version, or "
            "name PreTrainedTokenizerFast in the served copy"
        ),
    )
    NO_CONFIG = "no-config", "{engine} needs config.json, and the repository has {file} alone"
    REFUSED = "refused", "{engine} refuses {quantisation}: {words}"
    NOT_NAMED = (
        "not-named",
        "{engine} takes the weights for whole: nothing in the files names modelopt where it is looked for",
    )
    TRIAL_FAILED = (
        "trial-failed",
        "{engine} does not run {quantisation} on processors: a trial ended with “{words}”; {needs}",
    )
    TOO_OLD_A_CARD = (
        "too-old-a-card",
        (
            "{engine} needs compute capability {least:.1f} or more for {quantisation}; {device} has "
            "{capability:.1f}"
        ),
    )
    DETECTED = "detected", "{engine} detects it by itself; {needs}", "{engine}"
    NEEDS_CARD = "needs-card", _card
    TENSORS = (
        "tensors",
        "{engine} refuses {quantisation} with tensors {names:or}, and the weights have them",
    )
    TENSORS_UNREAD = (
        "tensors-unread",
        "{engine} refuses {quantisation} with tensors {names:or}; no file that was read names the tensors",
    )
    NOT_IN_CONFIG = (
        "not-in-config",
        "{engine} reads a quantisation in config.json alone, and only {file} describes this one",
    )
    READS = "reads", "{engine} reads {quantisation} and detects it by itself", "{engine}"
    DOES_NOT_READ = "does-not-read", _does_not_read
    NOT_KNOWN = (
        "not-known",
        "whether {engine} reads {quantisation} is not known; one that does not may answer with nonsense",
    )


class FormReason(ReasonKind):
    """Reasons for the form of the files to read."""

    ONLY_OWN = (
        "only-own",
        "its tokenizer, its config or its weights are in Mistral's own form alone",
        "listed files",
    )
    BOTH_FORMS = (
        "both-forms",
        "it has Mistral's own form too; the chat template goes with this one",
        "listed files",
    )


class InputReason(ReasonKind):
    """Reasons for a model's inputs other than text."""

    KEY = "key", "{file} has {key}", "{file}"
    FILE = "file", "it has {file}", "listed files"
    NO_PROCESSOR = (
        "no-processor",
        "it takes {names:and}, and has no {files:or}: {engine} does not start without one of them",
    )
    TAKES = "takes", "it takes {names} beside text: {shown:;}", "repository files"
    NO_TENSOR = (
        "no-tensor",
        "text alone: {shown:;}, but none of the {count} tensors in {file} is of a tower for {names:or}",
        "no tower",
    )
    ENGINE_TAKES_TEXT = (
        "engine-takes-text",
        "{engine} takes text alone, and the model takes {names} on other engines",
        "{engine}",
    )
    SKIPPED = (
        "skipped",
        "the weights have no tower for {names:or}, and {engine} loads none where the limit is 0",
        "no tower",
    )
    LIMITED = (
        "limited",
        "a chat sends its images again with every turn; {engine} would take {usual} of each",
        "importer",
    )


def _scheme(fields: Fields) -> str:
    weights = f"weights of {fields['bits']} bits" if fields["bits"] else "weights of mixed precision"
    groups = f" in groups of {fields['group']}" if fields["group"] else ""
    return f"{weights}{groups}, by {fields['file']}"


class QuantReason(ReasonKind):
    """Reasons for a quantisation."""

    METHOD = "method", "{file} says {quote}", "{file}"
    OWN_FILE = (
        "own-file",
        "config.json names no quantisation and {file} does ({quote}): engines read that file only by name",
        "{file}",
    )
    SCHEME = "scheme", _scheme, "{file}"


class GenerationReason(ReasonKind):
    """Reasons from a generation config."""

    VALUE = "value", "the vendor's {file} says {quote}", "{file}"
    UNUSABLE = "unusable", "the vendor's {file} says {quote}, which is no value that an engine takes"
    IMPLIED = (
        "implied",
        "the vendor's {file} says {quote} and no temperature, which is 1 in transformers",
        "{file}",
    )
    NEW_TOKENS = (
        "new-tokens",
        "the vendor's {file} says {quote} (new tokens), a limit for transformers' own generate()",
    )
    PASSED_OVER = (
        "passed-over",
        "{file} is not valid JSON: engines start without its sampling values and end tokens",
    )


class SisterReason(ReasonKind):
    """Reasons of a fact about repositories of the same model."""

    NAMED = "named", "the card names {names:and}", "card"


class DraftReason(ReasonKind):
    """Reasons why heads for multi-token prediction draft, or do not."""

    OFFERED = (
        "offered",
        (
            "off: config.json says {quote}, and {how}. {offer} drafts a token a step, for faster single "
            "answers; vLLM then refuses every request with min_p or logit_bias"
        ),
        "config.json",
    )
    HOLDS = "holds", "the weights hold them ({place})"
    AS_TRAINED = "as-trained", "nothing shows that its weights were made again without them"


def _ends(fields: Fields) -> str:
    says = "the tokenizer's eos_token"
    if fields["file"] is not None:
        says = f"eos_token_id in {fields['file']} and {says}"
    return f"{says}, and the template's end of turn" if fields["template"] else says


def _end_of_turn(fields: Fields) -> str:
    how = "ends a turn with" if fields["ends"] else "goes straight on with"
    words, listed = " and ".join(fields["words"]), ", ".join(fields["listed"]) or "none"
    return f"the template {how} {words}, and no file lists it as an end token (listed: {listed})"


class StopReason(ReasonKind):
    """Reasons for end tokens and stop words."""

    LISTED = "listed", _ends, "tokenizer"
    END_OF_TURN = "end-of-turn", _end_of_turn, "chat template"
    UNNAMED = "unnamed", "token {id}"


class TaskReason(ReasonKind):
    """Reasons for the settings of a model that pools or transcribes."""

    POOLS = "pools", of_kind("{of} returns no text, so vLLM pools"), "no text"
    CONVERTED = "converted", "vLLM converts {name} with {convert}", "converted"
    OUTPUTS = "outputs", "{file} describes what a request returns", "{file}"
    NO_HEAD = (
        "no-head",
        "{name} has no trained layer for scores: vLLM needs the tokens of its answers in hf_overrides",
        "no head",
    )
    YES_OR_NO = (
        "yes-or-no",
        "a reranker of {name} answers yes or no, and vLLM makes a score of the two tokens",
        "yes or no",
    )
    UNREAD_FORM = (
        "unread-form",
        "{file} says {quote}, in a form that {engine} does not read: it would take the architecture's own",
        "{file}",
    )
    NO_WAY = (
        "no-way",
        "{file} says {quote}, and {engine} has no such pooling: its vectors are not those of the model",
    )
    SPARSE = (
        "sparse",
        (
            "{file} describes sparse vectors ({quote}), and {engine} returns dense ones unless hf_overrides "
            "name an architecture for sparse ones"
        ),
    )
    SERVED_BY = "served-by", of_kind("of the engines here vLLM alone serves {of}"), "no text"


THINKING = {
    "rendered": "renders reasoning in a block",
    "prompt": "writes a block into the prompt",
    "stripped": "cuts reasoning blocks out of past turns",
    "instructed": "asks for reasoning in its system prompt",
    None: "shows reasoning",
}


def _no_calls(fields: Fields) -> str:
    problem = f" ({fields['problem']})" if fields["problem"] else ""
    asked = f", but asks for them in the format {fields['asked']}" if fields["asked"] else ""
    return f"the template renders no tool calls{problem}{asked}"


def _thinks(fields: Fields) -> str:
    says = f"the template {'opens a block in the prompt' if fields['opened'] else THINKING[fields['by']]}"
    if fields["switch"]:
        default = {True: "on", False: "off", None: "unsaid"}[fields["default"]]
        return f"{says}, switched by {fields['switch']}, by default {default}"
    if fields["alike"]:
        return f"{says}, in a block of its own"
    if fields["idle"]:
        return f"{says}, but neither opens one nor switches it: nothing shows that this model thinks"
    return says


class ThinkingSign(ReasonKind):
    """Signs that a model thinks, where its template shows no reasoning."""

    NAME = "name", "its name"
    BASE = "base", "the name of its base model {name}"
    FAMILY = "family", "its family {family}, of which the table leaves that open,"
    SWITCH = "switch", "the template's switch {switch}"
    TOKENS = "tokens", "its tokens {tokens}"
    CARD = "card", "its card ({words})"
    BLOCK = "block", "the template's cut of past answers at {marker}"


class ShownReason(ReasonKind):
    """Reasons from a rendered template."""

    NO_TEMPLATE = "no-template", "the repository has no chat template that could be read", "no template"
    MADE_FOR = (
        "made-for",
        "the chat template {convention} of ours writes calls for {parser}",
        "template {convention}",
    )
    NO_CALLS = "no-calls", _no_calls, "no calls rendered"
    UNKNOWN_CALLS = (
        "unknown-calls",
        "the template renders tool calls in a format that is not known by its markers",
        "unknown call format",
    )
    CALLS = "calls", "the template writes tool calls in the format {format}", "format {format}"
    NO_REASONING = "no-reasoning", "the template renders no reasoning", "no reasoning rendered"
    MAY_THINK = (
        "may-think",
        (
            "the template shows no reasoning, but {signs:and} may mean that the model thinks; without a "
            "reasoning parser its thoughts stay in the content"
        ),
    )
    NOT_RENDERED = (
        "not-rendered",
        lambda fields: f"the template could not be rendered: {fields['problem'] or 'unknown'}",
        "template not rendered",
    )
    THINKS = "thinks", _thinks, "chat template"
    SWITCHES = "switches", "the template has a switch for reasoning, {switch}, and renders none"


class TokenNumberReason(ReasonKind):
    """Reasons about the tokens that a repository's files declare."""

    BEYOND = (
        "beyond",
        "the embedding has {rows} rows, and none for {tokens:and}: a message with it may end the engine",
    )

    NO_BEGIN = (
        "no-begin",
        (
            "a chat's prompt begins without {token}: the template writes none, {engine} adds none to a chat, "
            "and by {file} every other text begins with it"
        ),
    )
    NO_CONTROL = (
        "no-control",
        (
            "{parser} reads thoughts between {tokens:and}, and {file} lists no such token: the model writes "
            "thoughts in another form, which stays in the content"
        ),
    )


class WeightFault(ReasonKind):
    """Contradictions between the files of a repository that keep an engine from its weights."""

    BROKEN = "broken", "{file} is cut or broken: {problem}"
    EMPTY = "empty", "{file} has 0 bytes"
    FOREIGN_INDEX = (
        "foreign-index",
        (
            "{index} is of another upload: it names {file} and no file that is here ({count:file|files} in "
            "all), so the engine finds no weights"
        ),
    )
    IN_FOLDERS = (
        "in-folders",
        "its weights lie in folders alone ({folders}), and engines look for them beside config.json",
    )
    MISSING = (
        "missing",
        "{index} names weights that are missing: {files} ({missing} of {count:file|files})",
    )
    OTHER_FORMAT = (
        "other-format",
        "its only weights are in a format that no engine here loads ({file})",
    )
    OTHER_NAMES = (
        "other-names",
        "{engine} loads weights with names like {names} alone, and these are called {file}",
    )
    PARTS_MISSING = (
        "parts-missing",
        "numbered parts of the weights are missing: {files} ({missing} of {count:file|files})",
    )
    PICKLES = "pickles", "its only weights are pickles ({file}), and {engine} loads safetensors alone"
    POINTER_SIZE = (
        "pointer-size",
        "{file} has {size} bytes, as a pointer of git-lfs has: its content was never uploaded",
    )
    UNQUANTISED = (
        "unquantised",
        (
            "{source} has {tensor}, so the weights are quantised, and {file} has no quantization that "
            "describes them"
        ),
    )


class WeightDoubt(ReasonKind):
    """Contradictions between the files of a repository that some engines pass over."""

    FOREIGN_INDEX = (
        "foreign-index",
        (
            "{index} is of another upload: it names {file} and no file that is here ({count:file|files} in "
            "all); remove it, or fetch its own"
        ),
    )
    GHOSTS = (
        "ghosts",
        "{index} names {count:tensor|tensors} that no file of weights has, such as {tensor}",
    )
    UNREAD = (
        "unread",
        "{file} was not read ({problem}): what it says of quantised, missing or absent tensors goes unseen",
    )
    PICKLES = (
        "pickles",
        "its only weights are pickles ({file}): {engine} loads them, and importer never fetches any",
    )
    PLAIN = (
        "plain",
        "{file} has {quote}, and none of the {count:tensor|tensors} in {source} is packed that way",
    )
    SETS = (
        "sets",
        (
            "several sets of weights lie side by side ({files}, {count:file|files} in all), and no index "
            "names one of them: engines load all"
        ),
    )
    STRAY = (
        "stray",
        (
            "{index} does not name {files}, and {engine} loads all files like {names}: if the engine then "
            "refuses tensors, move them away"
        ),
    )


def _checked(fields: Fields) -> str:
    if not fields["findings"]:
        return f"{fields['checked']:,} marker words put into test chats all reached the prompt"
    return f"{fields['checked']:,} marker words were put into test chats; findings: {fields['findings']}"


class CoverageReason(ReasonKind):
    """Reasons for the evidence on request coverage."""

    CHECKED = "checked", _checked
    VARIABLES = "variables", "clients may set {names:and} in chat_template_kwargs"
