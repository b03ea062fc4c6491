"""The blind round q: the right remedy for each fault, as an expert would tell the operator."""

from __future__ import annotations

from collections.abc import Mapping

MENDS: Mapping[str, str] = {
    "q-tools-or-system": (
        "Correct the chat template so that it tells of the tools beside a system prompt as well."
    ),
    "q-arguments-joined-with-plus": (
        "Correct the chat template: write arguments of earlier calls with tojson where they are no string."
    ),
    "q-roles-must-alternate": (
        "Take the check for alternating roles out of the chat template, so that turns in a row pass."
    ),
    "q-ids-of-nine": "Take the check of the length of call ids out of the chat template.",
    "q-end-tokens-of-big-sibling": (
        "Set the end tokens in generation_config.json, config.json and tokenizer_config.json to this "
        "model's own, <|im_end|> (2)."
    ),
    "q-accents-stripped": "Take the normalizer that strips accents out of tokenizer.json.",
    "q-temperature-point-lost": "Set the document's temperature, top_k and top_p to the vendor's values.",
    "q-limit-in-wrong-unit": "Raise or remove max_tokens in the document.",
    "q-yarn-untrained": "Take rope_scaling out of config.json: the model was not trained with it.",
    "q-quantisation-note-lost": (
        "Restore the quantised model's own config.json, with its note on quantisation (8 bits, groups of 64)."
    ),
    "q-tools-taken-as-flat": (
        "Correct the chat template so that it reads name and parameters of a tool from its function."
    ),
    "q-results-unknown": "Correct the chat template so that messages of the role tool are rendered.",
    "q-adapter-of-another-base": (
        "Replace the weights: merge an adapter made for this base, or take the base's own weights."
    ),
    "q-gate-up-fused": (
        "Convert the weights again with a converter that separates interleaved gate and up rightly."
    ),
    "q-rope-base-of-newer-sibling": (
        "Convert the model again, or set rope_theta in config.json to the value of the training, 10000."
    ),
    "q-embedding-two-bits": (
        "Take another quantisation of the model, one that leaves the embedding at more bits."
    ),
    "q-row-scales-one-off": "Quantise the model again with a correct tool, or take the original weights.",
    "q-call-tokens-untrained": (
        "Take weights in which the rows of the tokens around calls were trained, or the original's."
    ),
    "q-foreign-rows-pruned": "Take weights with the whole embedding, not the ones pruned to ASCII.",
    "q-end-never-learnt": ("Train again with the end token in the loss, or take the original weights."),
    "q-smoothing-half-done": (
        "Quantise the model again: the smoothing of the norms was not made good in the matrices behind them."
    ),
    "q-similar-question-cached": "Switch off the gateway's semantic cache, or have it match exactly.",
    "q-null-content-refused": "Update the gateway so that it takes messages whose content is null.",
    "q-stream-pieces-trimmed": "Correct the proxy so that it passes on the pieces of a stream untrimmed.",
    "q-first-words-swallowed": "Update the gateway so that it passes on the first piece of a stream.",
    "q-stream-closed-by-proxy": "Raise the proxy's limit on how long a stream may last.",
    "q-answers-html-escaped": "Switch off the filter in front of the engine that escapes answers.",
    "q-old-replica-behind-balancer": (
        "Take the old replica out of the load balancer, or update it to the same release as the other."
    ),
    "q-rate-limit-left-in": "Raise or remove the gateway's limit of requests per second.",
    "q-gateway-stop-added": "Take the stop string out of the gateway's settings.",
    "q-requests-escaped-again": "Correct the proxy so that it does not escape texts once more.",
    "q-names-masked": (
        "Switch off the masking of names in the gateway, or have it put the names back into the answers."
    ),
    "q-disk-full-at-copy": "Make room on the disk and copy or download the weights again.",
    "q-template-not-synced": "Copy chat_template.jinja to the machine again, and add *.jinja to the sync.",
    "q-nightly-kernel": (
        "Install the locked release of mlx again, and take the folder of the nightly build out of PYTHONPATH."
    ),
    "q-tokenizer-of-neighbour": "Restore this model's own tokenizer.json, as it was at the import.",
    "q-uuid-backport": (
        "Remove the package uuid, which hides Python's own module, or take its folder out of PYTHONPATH."
    ),
    "q-agent-cuts-bodies": (
        "Remove the security agent's hook (sitecustomize) from the engine's Python, or raise its limit."
    ),
    "q-warnings-are-errors": "Take PYTHONWARNINGS=error out of the engine's environment.",
    "q-templates-escape": (
        "Remove the patch (sitecustomize) that switches autoescape on from the engine's Python environment."
    ),
}
