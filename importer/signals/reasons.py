"""The reasons of all signals: they leave the sandbox without the modules that read files."""

from __future__ import annotations

from enum import StrEnum


class BackendReason(StrEnum):
    """Reasons for a backend."""

    MLX_WEIGHTS = "mlx-weights"
    MLX_ORIGIN = "mlx-origin"
    MLX_IS_NATIVE = "mlx-is-native"
    VLLM_SERVES = "vllm-serves"
    OTHER_COULD = "other-could"
    OTHER_CAN = "other-can"


class CacheReason(StrEnum):
    """Reasons for the settings of prompts and their cache."""

    SCALES_TO_SET = "scales-to-set"
    SCALES_TAKEN = "scales-taken"
    PREFIX_CACHING = "prefix-caching"
    CHUNKED_PREFILL = "chunked-prefill"
    LATENT_ATTENTION = "latent-attention"


class CardReason(StrEnum):
    """Reasons from a model card."""

    HEADER = "header"
    RECOMMENDS = "recommends"
    EXAMPLE = "example"
    UNCLEAR = "unclear"
    UNCLEAR_EXAMPLE = "unclear-example"


class CodeReason(StrEnum):
    """Reasons about a repository's code."""

    NAMED = "named"
    UNLISTED = "unlisted"
    ELSEWHERE = "elsewhere"
    NEEDED = "needed"
    OWN_TYPE = "own-type"
    NOT_KNOWN = "not-known"
    LACKING = "lacking"
    NOT_NEEDED = "not-needed"
    CONFIGURATION = "configuration"
    MODEL = "model"
    TOKENIZER = "tokenizer"


class GatherReason(StrEnum):
    """Reasons for a parser's name on another engine."""

    RENAMED = "renamed"


class LengthReason(StrEnum):
    """Reasons for a context length."""

    NAMED = "named"
    BY_CLASS = "by-class"
    ASSUMED = "assumed"
    IN_IT_ALREADY = "in-it-already"
    MULTIPLIED = "multiplied"
    LONGROPE = "longrope"
    ORIGINAL = "original"
    WINDOW = "window"
    STRETCHABLE = "stretchable"
    TOKENIZER = "tokenizer"
    AFTER_PADDING = "after-padding"


class ClaimReason(StrEnum):
    """Reasons for parsers that a repository declares."""

    TOOL_PARSER_TYPE = "tool-parser-type"
    RESPONSE_TEMPLATE = "response-template"


class KinReason(StrEnum):
    """Reasons for parsers by the model type, or by the name of the repository."""

    NAMED = "named"
    LIKE = "like"


class ModelNameReason(StrEnum):
    """Reasons from the tables for a name or a model type."""

    FAMILY = "family"
    PARSER = "parser"
    SAMPLING = "sampling"
    MODEL_TYPE = "model-type"


class NotChat(StrEnum):
    """Kinds of models that no engine here serves."""

    SPEECH = "speech"
    IMAGE = "image"
    DRAFT = "draft"
    MLX_TASK = "mlx-task"
    ENCODER_DECODER = "encoder-decoder"
    NO_TEXT = "no-text"
    UNNAMED = "unnamed"
    ADAPTER = "adapter"


class KindRemedy(StrEnum):
    """Remedies for a model that cannot be imported."""

    DRAFTED = "drafted"
    IMAGE_ENGINE = "image-engine"
    SPEECH_ENGINE = "speech-engine"
    LIBRARY = "library"
    TRANSFORMERS = "transformers"
    CTRANSLATE2 = "ctranslate2"
    OWN_LIBRARY = "own-library"
    NO_MLX = "no-mlx"
    MADE_FROM = "made-from"
    ADAPTED = "adapted"
    ADAPTED_UNNAMED = "adapted-unnamed"
    ORIGINAL = "original"


class KindReason(StrEnum):
    """Reasons for the kind of a model."""

    ARCHITECTURE = "architecture"
    KEY = "key"
    FILE = "file"
    KIND_BY_NAME = "name-says-kind"
    TAG = "tag"
    TEMPLATE = "template"
    MODEL_TYPE = "model-type"
    CONVERSATIONAL = "conversational"
    NAME_HAS_WORD = "name-has-word"
    FAMILY = "family"
    NO_TEMPLATE = "no-template"
    NOTHING_ELSE = "nothing-else"
    ONLY_GGUF = "only-gguf"
    ONE_SCORE = "one-score"


class LoadReason(StrEnum):
    """Reasons why an engine's version can load a model, or cannot."""

    TOGETHER = "together"
    DEPRECATED = "deprecated"
    REMOVED = "removed"
    NOT_ITS_OWN = "not-its-own"
    NO_CODE = "no-code"
    NO_MODEL_TYPE = "no-model-type"
    MLX_WEIGHTS = "mlx-weights"
    NO_METHOD = "no-method"
    REFUSED = "refused"
    NOT_NAMED = "not-named"
    NOT_TRIED = "not-tried"
    TRIAL_FAILED = "trial-failed"
    ON_PROCESSORS = "on-processors"
    TOO_OLD_A_CARD = "too-old-a-card"
    DETECTED = "detected"
    NEEDS_CARD = "needs-card"
    MLX_READS = "mlx-reads"
    DOES_NOT_READ = "does-not-read"
    NOT_THE_FORMAT = "not-the-format"
    NVFP4_ONLY = "nvfp4-only"
    CONVERTED = "converted"
    MADE_WHOLE = "made-whole"
    FP8_NOT_KNOWN = "fp8-not-known"


class FormReason(StrEnum):
    """Reasons for the form of the files to read."""

    ONLY_OWN_TOKENIZER = "only-own-tokenizer"
    BOTH_TOKENIZERS = "both-tokenizers"
    NO_CONFIG = "no-config"
    NO_OTHER_WEIGHTS = "no-other-weights"
    ONLY_OWN_WEIGHTS = "only-own-weights"
    BOTH_FORMS = "both-forms"
    BOTH_WEIGHTS = "both-weights"


class InputReason(StrEnum):
    """Reasons for a model's inputs other than text."""

    KEY = "key"
    FILE = "file"
    TAKES = "takes"
    LIMITED = "limited"


class QuantReason(StrEnum):
    """Reasons for a quantisation."""

    METHOD = "method"
    SCHEME = "scheme"


class GenerationReason(StrEnum):
    """Reasons from a generation config."""

    VALUE = "value"
    UNUSABLE = "unusable"
    IMPLIED = "implied"
    NEW_TOKENS = "new-tokens"
    ALL_TOKENS = "all-tokens"
    NOT_DONE = "not-done"


class SisterReason(StrEnum):
    """Reasons of a fact about repositories of the same model."""

    NAMED = "named"
    LISTED = "listed"
    NOT_LISTED = "not-listed"
    REPOSITORY = "repository"


class DraftReason(StrEnum):
    """Reasons why heads for multi-token prediction draft, or do not."""

    NOT_OF_THIS_TYPE = "not-of-this-type"
    NOT_ON_PROCESSORS = "not-on-processors"
    NOT_HELD = "not-held"
    OFFERED = "offered"
    FILE_HOLDS = "file-holds"
    TENSOR_HOLDS = "tensor-holds"
    NO_TENSOR = "no-tensor"
    MADE_FROM = "made-from"
    QUANTISED_LATER = "quantised-later"
    AS_TRAINED = "as-trained"


class StopReason(StrEnum):
    """Reasons for end tokens and stop words."""

    LISTED = "listed"
    END_OF_TURN = "end-of-turn"
    UNNAMED = "unnamed"


class TaskReason(StrEnum):
    """Reasons for the settings of a model that pools or transcribes."""

    POOLS = "pools"
    CONVERTED = "converted"
    OUTPUTS = "outputs"
    NO_HEAD = "no-head"
    YES_OR_NO = "yes-or-no"
    SERVED_BY = "served-by"


class ShownReason(StrEnum):
    """Reasons from a rendered template."""

    NO_TEMPLATE = "no-template"
    MADE_FOR = "made-for"
    NO_CALLS = "no-calls"
    UNKNOWN_CALLS = "unknown-calls"
    CALLS = "calls"
    NO_REASONING = "no-reasoning"
    NOT_RENDERED = "not-rendered"
    THINKS = "thinks"
    SWITCHES = "switches"


class TokenNumberReason(StrEnum):
    """Reasons about token numbers."""

    BEYOND = "beyond"
    BEYOND_CONFIG = "beyond-config"


class UnservedReason(StrEnum):
    """Reasons why no engine here generates text with a model."""

    ENCODER_DECODER = "encoder-decoder"
    NO_HEAD = "no-head"
    NAMES_NOTHING = "names-nothing"
    ADAPTS = "adapts"


class WayInReason(StrEnum):
    """Reasons for the evidence on the way in."""

    CHECKED = "checked"
