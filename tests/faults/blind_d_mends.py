"""The right remedy of each fault of ``blind_d.py``, in its author's words, for a person to judge by."""

from __future__ import annotations

MENDS: dict[str, str] = {
    "roles-in-another-language": (
        "Put the names of the roles that the model was trained with back into the template."
    ),
    "tools-or-a-system": "Let the template render the system prompt beside the tools.",
    "turn-begun-behind-users-alone": (
        "Let the template begin the assistant's turn whenever add_generation_prompt is set."
    ),
    "results-encoded-once-more": "Take tojson off the results of tools in the template.",
    "quotes-of-a-word-processor": (
        "Put straight quotation marks back into the template, or take the model's own."
    ),
    "config-with-a-byte-order-mark": "Save config.json as UTF-8 without a byte order mark.",
    "types-in-a-list-break": "Let the template accept parameters whose type is a list or missing.",
    "ids-of-nine-letters": "Take the check of the ids' length out of the template.",
    "thoughts-of-all-times-kept": "Keep the place of the last question in a namespace of the template.",
    "template-in-code": (
        "Take chat_template_type out of tokenizer_config.json, or fetch the model's own file."
    ),
    "abbreviations-cut-words": (
        "Take the short words out of the added tokens, or fetch the model's own tokenizer."
    ),
    "vocabulary-in-the-wrong-letters": (
        "Fetch the model's own tokenizer.json: this one was saved in the wrong encoding."
    ),
    "words-end-with-a-suffix": "Set end_of_word_suffix in tokenizer.json to null, or fetch the model's own.",
    "cleaned-as-for-bert": "Take the normalizer out of tokenizer.json, or fetch the model's own.",
    "decoder-written-by-hand": (
        "Fetch the model's own tokenizer.json: its decoder turns every byte back into letters."
    ),
    "end-behind-every-text": "Take the post-processor out of tokenizer.json, or fetch the model's own.",
    "two-thirds-of-the-weights-pruned": (
        "Use the weights from before the pruning, or ones that were trained again."
    ),
    "inner-width-cut": "Use the weights of full width, or ones that were trained again after the cut.",
    "heads-pooled-into-one": "Use the weights with all heads of keys and values.",
    "head-of-another-training": "Merge again with the fine-tune's own output layer, or use the tied one.",
    "zero-points-off-by-one": "Convert the weights again with the right zero points.",
    "shard-of-an-earlier-upload": (
        "Remove the left-over shard, or fetch the weights again into an empty folder."
    ),
    "questions-escaped-as-a-page": "Have the gateway pass messages on without escaping them.",
    "prompts-compressed": "Switch the gateway's compression of prompts off.",
    "documents-around-the-question": "Switch retrieval off on this route of the gateway.",
    "system-renamed-to-developer": "Have the gateway keep the role system.",
    "one-session-for-all": "Switch the gateway's memory off, or give each conversation a session of its own.",
    "rude-words-masked-within-words": (
        "Switch the gateway's filter of words off, or let it match whole words."
    ),
    "answers-as-a-page": "Have the gateway pass answers on as they are, and not as HTML.",
    "equal-pieces-delivered-once": (
        "Switch the broker's removal of duplicates off for streams; until then use whole answers."
    ),
    "long-answers-given-up": "Raise the time limit of the load balancer; until then stream.",
    "disclaimer-behind-answers": "Have the gateway leave answers as they are.",
    "variable-hides-a-function": "Take namespace out of chat_template_kwargs.",
    "three-parts-for-four-heads": "Set tensor_parallel_size to a number that divides the heads: 1, 2 or 4.",
    "quantisation-of-a-sibling": "Remove hf_quant_config.json: it belongs to another model's weights.",
    "model-wants-its-own-code": (
        "Take model_file out of config.json, or set trust_remote_code after reading the code."
    ),
    "epsilon-without-its-minus": "Set rms_norm_eps in config.json to 1e-06.",
    "blob-cleared-away": "Fetch tokenizer.json again: its link leads nowhere.",
    "bits-flipped-on-the-disk": "Check the disk and fetch the weights again.",
    "names-not-resolved": "Give the machine or container a working resolver (/etc/resolv.conf, /etc/hosts).",
}
