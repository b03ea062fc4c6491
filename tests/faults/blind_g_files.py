"""Files of a seventh round that a person or a tool has edited: tokenizer, config.json, the document."""

from __future__ import annotations

from tests.faults.blind_g_steps import TokenizerSays, WordsCut
from tests.faults.fault import Fault
from tests.faults.steps import Says
from tests.faults.tokenizers import Flagged

MARKERS = ("<|im_start|>", "<|im_end|>")

FAULTS = (
    Fault(
        "g-markers-as-single-words",
        "The tokens around turns were saved as single words: beside a letter they are none.",
        "configuration",
        (Flagged("single_word", True, MARKERS),),
        mend="tokenizer",
    ),
    Fault(
        "g-vocabulary-trimmed",
        "The tokenizer was trimmed of its last words; the weights have theirs still.",
        "configuration",
        (WordsCut(460),),
        mend="tokenizer",
        bitten="tools that trim vocabularies by how often words are used",
    ),
    Fault(
        "g-letters-taken-apart",
        "The tokenizer was saved with a normalizer that writes an accent behind its letter.",
        "configuration",
        (TokenizerSays('{"normalizer": {"type": "NFD"}}'),),
        mend="tokenizer",
    ),
    Fault(
        "g-variable-cuts-prompts",
        "A colleague wrote truncation into the document's template variables: long prompts lose their end.",
        "configuration",
        (Says({"chat_template_kwargs": {"truncation": True, "max_length": 96}}),),
        mend="chat_template_kwargs",
    ),
    Fault(
        "g-penalty-that-rewards",
        "The document's repetition penalty was thought to begin at nought: 0.3 asks for repetitions.",
        "configuration",
        (Says({"parameters.repeat_penalty": 0.3}),),
        mend="repeat_penalty",
    ),
)
