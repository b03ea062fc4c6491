"""Blind round o: for each fault the remedy that an expert would tell the operator."""

from __future__ import annotations

from collections.abc import Mapping

MENDS: Mapping[str, str] = {
    "o-first-turn-taken-for-system": (
        "Correct the chat template: skip the first message only if its role is system."
    ),
    "o-system-or-tools": "Correct the chat template: write the tools also where there is a system message.",
    "o-result-needs-a-name": (
        "Correct the chat template: write a tool message's content whether or not it has a name."
    ),
    "o-tools-read-flat": (
        "Correct the chat template: read name and parameters of a tool from its key function."
    ),
    "o-content-only-in-parts": (
        "Correct the chat template: write content that is a plain text, and not only a list of parts."
    ),
    "o-roles-must-alternate": (
        "Correct the chat template: take out the check that roles alternate, or let tool messages pass it."
    ),
    "o-lower-case": (
        "Take the Lowercase normalizer out of tokenizer.json, or fetch the model's own tokenizer."
    ),
    "o-no-decoder": "Put the ByteLevel decoder back into tokenizer.json, or fetch the vendor's file again.",
    "o-observation-is-no-end": (
        "Add the token <|observation|> (6) to eos_token_id in generation_config.json and config.json."
    ),
    "o-document-twelve-tokens": "Raise or remove parameters.max_tokens in the document.",
    "o-document-hot": (
        "Set parameters.temperature in the document to what the model's generation_config.json says, 0.1, "
        "and restore top_k and top_p."
    ),
    "o-note-of-awq": (
        "Remove quantization_config from config.json: the weights are not packed; or fetch packed ones."
    ),
    "o-theta-of-another": (
        "Set rope_theta in config.json to that of the training, 10000, or convert the model again."
    ),
    "o-stretched-untaught": (
        "Remove rope_scaling from config.json, as the weights were trained without it, or convert again."
    ),
    "o-merged-too-strongly": (
        "Merge the adapter again with the right scale, or take the weights of the model without it."
    ),
    "o-norms-of-heads-one-higher": (
        "Convert the weights again with a converter that adds nothing to the norms of this family."
    ),
    "o-keys-permuted": (
        "Convert the weights again with a converter that leaves the rows of the keys in order."
    ),
    "o-new-tokens-untaught": (
        "Fetch weights whose embedding holds the trained rows of the added tokens, or train those rows."
    ),
    "o-layers-newly-initialised": (
        "Fetch or save the weights again, complete: those of two layers were made up when they were saved."
    ),
    "o-outliers-clipped": (
        "Quantise again with a better calibration or more bits, or use the weights that were not quantised."
    ),
    "o-rows-in-new-order": (
        "Fetch weights and tokenizer of one release: rows of the embedding belong to other tokens."
    ),
    "o-empty-turns-dropped": (
        "Set the gateway to pass on messages with tool_calls and without content, and tools' results; "
        "or ask the engine without it."
    ),
    "o-first-words-twice": (
        "Forbid the gateway to try a stream again once a part of it has been sent, or go round it."
    ),
    "o-pieces-stripped": "Correct the relay: pass on each piece of a stream as it is, with its white space.",
    "o-near-questions-same": (
        "Turn the gateway's cache by likeness off, or let it answer only requests that are the same in all."
    ),
    "o-every-second-old": (
        "Take the old replica out of the load balancer, or update it: all must run one release."
    ),
    "o-places-masked": (
        "Turn the gateway's masking of private data off for this model, or let it mask no places."
    ),
    "o-stream-stops": (
        "Raise the proxy's time limit and size limit for streams, and turn its buffering off."
    ),
    "o-letters-escaped": (
        "Correct the relay's encoding of answers: text is escaped twice on its way through JSON."
    ),
    "o-stops-at-blank-line": "Take the stop string that is an empty line out of the gateway's settings.",
    "o-names-sanitised": (
        "Correct the gateway: pass on names of tools as they are, or map them back in answers."
    ),
    "o-one-at-a-time": "Raise the gateway's limit of requests in a time, and allow bursts.",
    "o-template-not-copied": (
        "Copy chat_template.jinja into the model's folder again, as it was at the import."
    ),
    "o-queue-shadowed": (
        "Take the folder with queue.py off PYTHONPATH, or rename the file: it hides Python's own module."
    ),
    "o-old-tokenizers": (
        "Remove the old tokenizers from PYTHONPATH, or install the release that transformers needs."
    ),
    "o-old-jinja": "Install jinja2 of at least the release that transformers needs, and remove the old one.",
    "o-log-disk-full": "Make room on the disk of the server's log, rotate the log, and restart the server.",
    "o-blocks-zeroed": ("Fetch model.safetensors again, as it changed since the import, and check the disk."),
    "o-tokenizer-of-the-neighbour": (
        "Put the model's own tokenizer.json back, as it changed since the import, or import again."
    ),
    "o-processor-seconds": (
        "Lift the limit of processor time (ulimit -t, RLIMIT_CPU, LimitCPU) for the server."
    ),
}
