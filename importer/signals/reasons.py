"""The reasons of all signals: they leave the sandbox without the modules that read files."""

from __future__ import annotations

from importer.reasons import Fields, ReasonKind, Text


class BackendReason(ReasonKind):
    """Reasons for a backend."""

    MLX_WEIGHTS = "the weights are in MLX's own quantisation ({quote})", "weights' format"
    MLX_ORIGIN = "the repository is made for MLX ({quote})", "repository for MLX"
    MLX_IS_NATIVE = "MLX is native to Apple machines", "Apple machines"
    VLLM_SERVES = "vLLM serves on CPU and CUDA machines", "CPU and CUDA"
    OTHER_COULD = "{engine} could load it there", "{engine}"
    OTHER_CAN = "{refusal}; {engine} can load it", "weights' format"


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
        "the checkpoint has scales for a KV cache in {cache}, and {engine} must be told so",
        "checkpoint's scales",
    )
    SCALES_TAKEN = (
        "the checkpoint has scales for a KV cache in {cache}, and {engine} takes them by itself",
        "checkpoint's scales",
    )
    PREFIX_CACHING = _by_itself, "{engine}"


SHORT_MODES = {None: "", "thinking": ", thinking", "non_thinking": ", non-thinking"}


MODES = {None: "", "thinking": " with thinking", "non_thinking": " without thinking"}


def _card_says(end: str = "") -> Text:
    def text(fields: Fields) -> str:
        values = " and ".join(map(str, fields["values"]))
        return f"the card recommends {fields['key']} {values}{MODES[fields['mode']]}{end}"

    return text


class CardReason(ReasonKind):
    """Reasons from a model card."""

    HEADER = "the card's header says {quote}", "card header"
    VALUE = _card_says(), lambda fields: f"model card{SHORT_MODES[fields['mode']]}"
    UNCLEAR = (_card_says(", and nothing tells which is meant"),)


class CodeReason(ReasonKind):
    """Reasons about a repository's code."""

    NAMED = "code of the repository is named in {places:and} for {parts}", "{places}"
    ELSEWHERE = "code of other repositories is named, which no commit pins: {repos}"
    NEEDED = "{engine} will not start without this code"
    NOT_KNOWN = "whether {engine} starts without this code is not known"
    NOT_NEEDED = "{engine} has all of it itself, so the code is not needed and not run"


class GatherReason(ReasonKind):
    """Reasons for a parser's name on another engine."""

    RENAMED = "{reason}, which is {parser} on {engine}", "{reason}"


class LengthReason(ReasonKind):
    """Reasons for a context length."""

    NAMED = "{file} says {quote}", "{file}"
    BY_CLASS = "{file} names no {key}; {model_type} has {tokens} by default", "{model_type}"
    ASSUMED = "{file} names no length, and {engine} then assumes {tokens}", "{engine}"
    IN_IT_ALREADY = "rope scaling {rope} with factor {factor:g} is in this length already", "rope {rope}"
    MULTIPLIED = "rope scaling {rope} multiplies {tokens} by {factor:g}", "rope {rope}"
    LONGROPE = "with longrope up to {tokens} can be asked for, at some cost to short prompts", "longrope"
    BELOW = "the model reads its rotary embedding in {part}: {key} is written there, too", "rope in {part}"
    COMPLETED = (
        "{engine} does not lengthen the context by YaRN's factor: {key} is {tokens:,} beside it",
        "YaRN",
    )
    UNSCALED = (
        "the model was made for {made:,} tokens, and no rope scaling covers {tokens:,}: give YaRN, too",
        "beyond the model",
    )
    AFTER_PADDING = (
        "of {rows} positions the first {first} belong to padding, so a text has the others",
        "positions after padding",
    )


class ClaimReason(ReasonKind):
    """Reasons for parsers that a repository declares."""

    TOOL_PARSER_TYPE = "the repository's {file} says {quote}", "{file}"
    RESPONSE_TEMPLATE = "the repository's {file} has a response_template with {field}", "{file}"


class KinReason(ReasonKind):
    """Reasons for parsers by the model type, or by the name of the repository."""

    NAMED = (
        "config.json says model_type: {model_type}, for which the parser {parser} or its class is named",
        "type {model_type}",
    )
    LIKE = "the parser {parser} has the name of {name}, with its version or an earlier one", "model name"


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

    FAMILY = lambda fields: f"{_whose(fields['base'])} belongs to the family {fields['family']}", "model name"
    PARSER = _parser, "family {family}"
    SAMPLING = _row, _short_mode
    MODEL_TYPE = "config.json says {quote}, which is {family}", "config.json"


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

    DRAFTED = "Import the model that it drafts for."
    DRAFTED_FOR = (
        "Import {repo}, the model that it drafts for, with engine_args.speculative_config: {settings}."
    )
    SERVED_BY = "Serve it with {libraries:or}."
    OWN_LIBRARY = (
        "Serve it with the library that wrote its files, or import the repository with the original "
        "config.json."
    )
    NO_MLX = (
        "Import the repository with the original weights for vLLM; mlx-embeddings and mlx-audio serve "
        "MLX weights."
    )
    ADAPTED = "Import {repo}, its base model, with {adapter} as its adapter."
    ADAPTED_UNNAMED = "Import its base model, with this adapter."


def of_kind(text: str) -> Text:
    """Return the text of a format string in which ``{of}`` is the kind of model with its article."""
    return lambda fields: text.format_map({**fields, "of": KINDS[fields["of"]]})


class KindReason(ReasonKind):
    """Reasons for the kind of a model."""

    ARCHITECTURE = of_kind("the architecture {name} is that of {of}"), "architecture"
    KEY = "config.json has {key}", "config.json"
    FILE = of_kind("it has {file}, as {of} has"), "listed files"
    SCORES = "its {file} describes a model that scores pairs of texts ({quote})", "{file}"
    NAME_SAYS_KIND = of_kind("its name says that it is {of}"), "model name"
    TAG = "the Hub's {field} says {tag}", "Hub tags"
    TAGGED = (
        "its {field} says {tag}: the chat template may be the base model's, and its answers may be no text"
    )
    TEMPLATE = "it has a chat template in {where}", "chat template"
    NAME_HAS_WORD = "its name says {word}", "model name"
    NO_TEMPLATE = "it has a {file} and no chat template anywhere", "no chat template"
    IS = (of_kind("{of}"),)
    NOTHING_ELSE = "nothing says that it is anything but a chat model", "default"
    IN_FOLDERS = "no model lies at its top, and one in each of {folders:and}"
    ONLY_GGUF = "its only weights are GGUF files"
    ONE_SCORE = (
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

    TOGETHER = "{reasons:;}"
    DEPRECATED = (
        "{engine} refuses {method}, which it means to drop, unless it is told to allow it",
        "{engine} deprecation",
    )
    REMOVED = "{engine} does not serve {architecture} any more; {last} was the last that did"
    NOT_ITS_OWN = "{engine} has no {architecture} of its own; it would try transformers' code for it"
    NO_CODE = (
        "{engine} has neither {architecture} nor the model type {model_type}, and the repository has no "
        "code for them; a newer version may"
    )
    NO_ARCHITECTURES = (
        "config.json names no architectures: {engine} takes {model_type} without its head and answers no "
        "chat, or ends; name the class in hf_overrides"
    )
    NO_MODEL_TYPE = "{engine} has no model type {model_type}"
    NO_TOWER = "{engine} loads a vision tower of {towers:or} for {model_type}, and vision_config says {quote}"
    NO_TOKENIZER = (
        "{file} says {quote}, a class that the transformers of {engine} lacks: take a newer version, or "
        "name PreTrainedTokenizerFast in the served copy"
    )
    NO_CONFIG = "{engine} needs config.json, and the repository has {file} alone"
    REFUSED = "{engine} refuses {quantisation}: {words}"
    NOT_NAMED = (
        "{engine} takes the weights for whole: nothing in the files names modelopt where it is looked for"
    )
    TRIAL_FAILED = "{engine} does not run {quantisation} on processors: a trial ended with “{words}”; {needs}"
    TOO_OLD_A_CARD = (
        "{engine} needs compute capability {least:.1f} or more for {quantisation}; {device} has "
        "{capability:.1f}"
    )
    DETECTED = "{engine} detects it by itself; {needs}", "{engine}"
    NEEDS_CARD = (_card,)
    TENSORS = "{engine} refuses {quantisation} with tensors {names:or}, and the weights have them"
    TENSORS_UNREAD = (
        "{engine} refuses {quantisation} with tensors {names:or}; no file that was read names the tensors"
    )
    NOT_IN_CONFIG = "{engine} reads a quantisation in config.json alone, and only {file} describes this one"
    READS = "{engine} reads {quantisation} and detects it by itself", "{engine}"
    DOES_NOT_READ = (_does_not_read,)
    NOT_KNOWN = (
        "whether {engine} reads {quantisation} is not known; one that does not may answer with nonsense"
    )


class FormReason(ReasonKind):
    """Reasons for the form of the files to read."""

    ONLY_OWN = "its tokenizer, its config or its weights are in Mistral's own form alone", "listed files"
    BOTH_FORMS = "it has Mistral's own form too; the chat template goes with this one", "listed files"


class InputReason(ReasonKind):
    """Reasons for a model's inputs other than text."""

    KEY = "{file} has {key}", "{file}"
    FILE = "it has {file}", "listed files"
    NO_PROCESSOR = "it takes {names:and}, and has no {files:or}: {engine} does not start without one of them"
    TAKES = "it takes {names} beside text: {shown:;}", "repository files"
    NO_TENSOR = (
        "text alone: {shown:;}, but none of the {count} tensors in {file} is of a tower for {names:or}",
        "no tower",
    )
    ENGINE_TAKES_TEXT = "{engine} takes text alone, and the model takes {names} on other engines", "{engine}"
    SKIPPED = (
        "the weights have no tower for {names:or}, and {engine} loads none where the limit is 0",
        "no tower",
    )
    LIMITED = "a chat sends its images again with every turn; {engine} would take {usual} of each", "importer"


def _scheme(fields: Fields) -> str:
    weights = f"weights of {fields['bits']} bits" if fields["bits"] else "weights of mixed precision"
    groups = f" in groups of {fields['group']}" if fields["group"] else ""
    return f"{weights}{groups}, by {fields['file']}"


class QuantReason(ReasonKind):
    """Reasons for a quantisation."""

    METHOD = "{file} says {quote}", "{file}"
    OWN_FILE = (
        "config.json names no quantisation and {file} does ({quote}): engines read that file only by name",
        "{file}",
    )
    SCHEME = _scheme, "{file}"


class GenerationReason(ReasonKind):
    """Reasons from a generation config."""

    VALUE = "the vendor's {file} says {quote}", "{file}"
    UNUSABLE = "the vendor's {file} says {quote}, which is no value that an engine takes"
    IMPLIED = "the vendor's {file} says {quote} and no temperature, which is 1 in transformers", "{file}"
    NEW_TOKENS = "the vendor's {file} says {quote} (new tokens), a limit for transformers' own generate()"
    PASSED_OVER = "{file} is not valid JSON: engines start without its sampling values and end tokens"


class SisterReason(ReasonKind):
    """Reasons of a fact about repositories of the same model."""

    NAMED = "the card names {names:and}", "card"


class DraftReason(ReasonKind):
    """Reasons why heads for multi-token prediction draft, or do not."""

    OFFERED = (
        (
            "off: config.json says {quote}, and {how}. {offer} drafts a token a step, for faster single "
            "answers; vLLM then refuses every request with min_p or logit_bias"
        ),
        "config.json",
    )
    HOLDS = "the weights hold them ({place})"
    AS_TRAINED = "nothing shows that its weights were made again without them"


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

    LISTED = _ends, "tokenizer"
    END_OF_TURN = _end_of_turn, "chat template"
    UNNAMED = "token {id}"


class TaskReason(ReasonKind):
    """Reasons for the settings of a model that pools or transcribes."""

    POOLS = of_kind("{of} returns no text, so vLLM pools"), "no text"
    CONVERTED = "vLLM converts {name} with {convert}", "converted"
    OUTPUTS = "{file} describes what a request returns", "{file}"
    NO_HEAD = (
        "{name} has no trained layer for scores: vLLM needs the tokens of its answers in hf_overrides",
        "no head",
    )
    YES_OR_NO = (
        "a reranker of {name} answers yes or no, and vLLM makes a score of the two tokens",
        "yes or no",
    )
    UNREAD_FORM = (
        "{file} says {quote}, in a form that {engine} does not read: it would take the architecture's own",
        "{file}",
    )
    NO_WAY = "{file} says {quote}, and {engine} has no such pooling: its vectors are not those of the model"
    SPARSE = (
        "{file} describes sparse vectors ({quote}), and {engine} returns dense ones unless hf_overrides "
        "name an architecture for sparse ones"
    )
    SERVED_BY = of_kind("of the engines here vLLM alone serves {of}"), "no text"


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

    NAME = "its name"
    BASE = "the name of its base model {name}"
    FAMILY = "its family {family}, of which the table leaves that open,"
    SWITCH = "the template's switch {switch}"
    TOKENS = "its tokens {tokens}"
    CARD = "its card ({words})"
    BLOCK = "the template's cut of past answers at {marker}"


class ShownReason(ReasonKind):
    """Reasons from a rendered template."""

    NO_TEMPLATE = "the repository has no chat template that could be read", "no template"
    MADE_FOR = "the chat template {convention} of ours writes calls for {parser}", "template {convention}"
    NO_CALLS = _no_calls, "no calls rendered"
    UNKNOWN_CALLS = (
        "the template renders tool calls in a format that is not known by its markers",
        "unknown call format",
    )
    CALLS = "the template writes tool calls in the format {format}", "format {format}"
    NO_REASONING = "the template renders no reasoning", "no reasoning rendered"
    MAY_THINK = (
        "the template shows no reasoning, but {signs:and} may mean that the model thinks; without a "
        "reasoning parser its thoughts stay in the content"
    )
    NOT_RENDERED = (
        lambda fields: f"the template could not be rendered: {fields['problem'] or 'unknown'}",
        "template not rendered",
    )
    THINKS = _thinks, "chat template"
    SWITCHES = "the template has a switch for reasoning, {switch}, and renders none"


class TokenNumberReason(ReasonKind):
    """Reasons about the tokens that a repository's files declare."""

    BEYOND = "the embedding has {rows} rows, and none for {tokens:and}: a message with it may end the engine"

    NO_BEGIN = (
        "a chat's prompt begins without {token}: the template writes none, {engine} adds none to a chat, "
        "and by {file} every other text begins with it"
    )
    NO_CONTROL = (
        "{parser} reads thoughts between {tokens:and}, and {file} lists no such token: the model writes "
        "thoughts in another form, which stays in the content"
    )


class WeightFault(ReasonKind):
    """Contradictions between the files of a repository that keep an engine from its weights."""

    BROKEN = "{file} is cut or broken: {problem}"
    EMPTY = "{file} has 0 bytes"
    FOREIGN_INDEX = (
        "{index} is of another upload: it names {file} and no file that is here ({count:file|files} in "
        "all), so the engine finds no weights"
    )
    IN_FOLDERS = "its weights lie in folders alone ({folders}), and engines look for them beside config.json"
    MISSING = "{index} names weights that are missing: {files} ({missing} of {count:file|files})"
    OTHER_FORMAT = "its only weights are in a format that no engine here loads ({file})"
    OTHER_NAMES = "{engine} loads weights with names like {names} alone, and these are called {file}"
    PARTS_MISSING = "numbered parts of the weights are missing: {files} ({missing} of {count:file|files})"
    PICKLES = "its only weights are pickles ({file}), and {engine} loads safetensors alone"
    POINTER_SIZE = "{file} has {size} bytes, as a pointer of git-lfs has: its content was never uploaded"
    UNQUANTISED = (
        "{source} has {tensor}, so the weights are quantised, and {file} has no quantization that "
        "describes them"
    )


class WeightDoubt(ReasonKind):
    """Contradictions between the files of a repository that some engines pass over."""

    FOREIGN_INDEX = (
        "{index} is of another upload: it names {file} and no file that is here ({count:file|files} in "
        "all); remove it, or fetch its own"
    )
    GHOSTS = "{index} names {count:tensor|tensors} that no file of weights has, such as {tensor}"
    UNREAD = (
        "{file} was not read ({problem}): what it says of quantised, missing or absent tensors goes unseen"
    )
    PICKLES = "its only weights are pickles ({file}): {engine} loads them, and importer never fetches any"
    PLAIN = "{file} has {quote}, and none of the {count:tensor|tensors} in {source} is packed that way"
    SETS = (
        "several sets of weights lie side by side ({files}, {count:file|files} in all), and no index "
        "names one of them: engines load all"
    )
    STRAY = (
        "{index} does not name {files}, and {engine} loads all files like {names}: if the engine then "
        "refuses tensors, move them away"
    )


def _checked(fields: Fields) -> str:
    if not fields["findings"]:
        return f"{fields['checked']:,} marker words put into test chats all reached the prompt"
    return f"{fields['checked']:,} marker words were put into test chats; findings: {fields['findings']}"


class CoverageReason(ReasonKind):
    """Reasons for the evidence on request coverage."""

    CHECKED = (_checked,)
    VARIABLES = "clients may set {names:and} in chat_template_kwargs"
