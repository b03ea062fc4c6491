"""Letter r: the right remedy of each fault, as an expert would tell the operator."""

from __future__ import annotations

MENDS: dict[str, str] = {
    "r-tools-need-system": (
        "Correct the chat template so that it writes the tools without a system message, too."
    ),
    "r-results-passed-over": "Correct the chat template so that it writes messages of the role tool.",
    "r-roles-must-alternate": (
        "Take the check of alternating roles out of the chat template, or use a template for this "
        "model that knows tool results."
    ),
    "r-content-as-parts": (
        "Correct the chat template so that it writes content that is plain text, not only lists of parts."
    ),
    "r-parser-not-recognised": (
        "Name the tool parser (tool_parser_type json_tools in tokenizer_config.json), or use the "
        "words in the template by which mlx-lm recognises it."
    ),
    "r-accents-stripped": (
        "Take the normalizer out of tokenizer.json, or fetch the original tokenizer of the model: it "
        "must not strip accents."
    ),
    "r-decoder-lost": (
        "Put the ByteLevel decoder back into tokenizer.json, or fetch the model's original file."
    ),
    "r-observation-end-missing": (
        "Add the number of <|observation|> (6) to eos_token_id in generation_config.json and config.json."
    ),
    "r-yarn-untrained": "Take rope_scaling out of config.json: the model was not trained with it.",
    "r-hot-sampling": (
        "Lower temperature in the document's parameters to what the model recommends (0.1), and "
        "restore top_k and top_p."
    ),
    "r-limit-of-a-trial": "Raise max_tokens in the document's parameters.",
    "r-quantisation-note-lost": (
        "Put the quantization entry (8 bits, groups of 64) back into config.json, or fetch the "
        "original config.json."
    ),
    "r-fused-by-groups": (
        "Convert the weights anew with a converter that splits the fused query, key and value "
        "projection by groups, or fetch other weights."
    ),
    "r-call-tokens-untrained": (
        "Use weights in which the tokens around tool calls are trained: train them, or fetch the "
        "instruct model."
    ),
    "r-adapter-of-another-base": (
        "Merge the adapter into the base that it was trained for, or serve the weights without it."
    ),
    "r-merge-drops-weights": (
        "Merge the models anew, dropping of the differences to the base alone, or fetch the unmerged weights."
    ),
    "r-fp8-scales-left-out": (
        "Convert the FP8 weights anew with their scales, or fetch the weights in bfloat16."
    ),
    "r-outliers-clipped": "Quantise anew without clipping the outliers, or use the original weights.",
    "r-two-bits": "Use weights of more bits (four or eight), or the original ones.",
    "r-queries-scaled-twice": (
        "Convert the weights anew without folding the attention's scale into the queries' norm."
    ),
    "r-base-of-rotation": (
        "Set rope_theta in config.json to the value that the model was trained with (10000), or "
        "convert it anew."
    ),
    "r-stream-started-anew": (
        "Turn off the gateway's retry of streams that have begun, or let it go on where the first one ended."
    ),
    "r-alike-remembered": (
        "Turn off the gateway's cache of similar questions, or let it compare whole requests."
    ),
    "r-own-stop": "Take the stop string that the gateway adds to requests out of its settings.",
    "r-thoughts-in-content": (
        "Turn off the merging of reasoning into content in the gateway, so that it passes "
        "reasoning_content on."
    ),
    "r-entities-masked": (
        "Turn off the gateway's masking of names and places, or let it restore them in answers."
    ),
    "r-stream-cut": "Turn off the proxy's limit of a streamed response's size, and its buffering.",
    "r-one-replica-without-parser": (
        "Restart the old replica with the same version and tool parser as the other, or take it out "
        "of the load balancer."
    ),
    "r-camel-case": "Let the gateway pass answers on with the names of OpenAI's interface, in snake case.",
    "r-pieces-stripped": "Let the gateway pass streamed pieces on without stripping white space.",
    "r-first-event-lost": "Let the gateway pass the first event of a stream on.",
    "r-started-with-plain-template": (
        "Start the server without --chat-template, so that it uses the model's own."
    ),
    "r-module-hides-queue": "Take the folder with queue.py off PYTHONPATH, or rename the file.",
    "r-cpu-seconds-limited": "Raise the limit of processor time (ulimit -t) of the server's processes.",
    "r-tokenizer-overwritten": (
        "Fetch the model's own tokenizer.json again: the file changed after the import."
    ),
    "r-pages-lost": "Fetch the weights again and check the disk: the file changed after the import.",
    "r-transformers-without-tools": (
        "Install the engine's environment anew with the pinned version of transformers."
    ),
    "r-end-tokens-synchronised": (
        "Restore config.json, generation_config.json and tokenizer_config.json as of the import: "
        "<|im_end|> must end answers."
    ),
    "r-agent-reads-short": (
        "Take the monitoring agent out of the server's process, or let it pass whole bodies on."
    ),
    "r-letters-lost-by-update": "Install the engine's environment anew with the pinned version of mlx-lm.",
}
