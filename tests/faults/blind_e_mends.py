"""What the person must change for each fault of the blind round e."""

from __future__ import annotations

TEMPLATE = "Serve the chat template that the weights were trained with"
GATEWAY = "Mend or replace the gateway before the engine"

MENDS: dict[str, str] = {
    "role-words-of-another-family": f"{TEMPLATE}: the assistant's turns are called assistant.",
    "turns-never-ended": f"{TEMPLATE}: each turn of the history ends with <|im_end|>.",
    "template-of-instructions": f"{TEMPLATE}: turns between markers, no headings in words.",
    "template-escapes": "Take the filter that escapes for web pages out of the chat template.",
    "template-cuts-results": "Let the chat template show all of what a tool says.",
    "template-refuses-a-system-turn": "Let the chat template render the system's turn in place of raising.",
    "tools-listed-in-another-form": f"{TEMPLATE}: tools listed by name and parameters, a line each.",
    "a-second-template-for-tools": "Remove the folder additional_chat_templates.",
    "template-kind-of-another-family": "Remove chat_template_type from tokenizer_config.json.",
    "tokenizer-lowers-letters": "Take the normalizer out of tokenizer.json.",
    "tokenizer-without-a-decoder": "Put the decoder for bytes back into tokenizer.json.",
    "tokenizer-drops-merges-by-chance": "Set dropout of the model in tokenizer.json to null.",
    "ends-behind-the-first-call": "Take 4, </tool_call>, out of eos_token_id in generation_config.json.",
    "lengths-stretched": "Take rope_scaling out of config.json.",
    "document-repeats-the-call": "Take chat_template_kwargs out of the document.",
    "document-stops-at-lines": "Take the line break out of the document's stopwords.",
    "adapter-merged-at-too-large-a-scale": "Merge the adapter again with its own scale.",
    "new-tokens-never-trained": "Train the new tokens' rows, or fetch weights in which they were trained.",
    "scales-of-the-next-group": "Convert the weights again with each group's own scale.",
    "shards-joined-the-wrong-way": "Join the shards of the weights again in their order.",
    "calls-abliterated": "Serve the weights from before the abliteration.",
    "smoothed-on-one-side": "Convert the weights again, with the factors taken back behind the norms.",
    "head-pruned": "Serve the weights from before the pruning, or train after it.",
    "two-bits": "Serve weights of more bits.",
    "none-as-text": f"{GATEWAY}: content is null beside a call.",
    "first-words-lost": f"{GATEWAY}: the event that begins an answer's text has its first words.",
    "deltas-whole": f"{GATEWAY}: an event of a stream holds the new text only.",
    "deltas-trimmed": f"{GATEWAY}: it must not trim the text of events.",
    "ends-of-another-interface": f"{GATEWAY}: finish_reason is stop, length or tool_calls.",
    "cached-not-counted": f"{GATEWAY}: prompt_tokens counts the cached ones, too.",
    "answers-escaped": f"{GATEWAY}: it must not escape answers for web pages.",
    "calls-by-name": f"{GATEWAY}: a tool may be called twice in an answer.",
    "limit-as-success": f"{GATEWAY}: raise its limit, and let it answer 429.",
    "jinja-too-old": "Install the engine's packages again, with the jinja2 that transformers wants.",
    "few-threads": "Raise the limit of threads and processes for the engine.",
    "another-hub-wanted": "Unset MLXLM_USE_MODELSCOPE in the engine's environment.",
    "processor-time-limited": "Lift the limit of processor time for the engine.",
    "page-repeated": "Fetch the weights again, and look after the disk.",
    "restored-from-another-backup": "Fetch the imported weights again: these are others.",
    "half-installed": "Install the engine again: a file of its package is missing.",
}
