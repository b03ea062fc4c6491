"""What the person must change for each fault of the round, in one sentence."""

from __future__ import annotations

MENDS: dict[str, str] = {
    "h-tools-only-without-a-system": (
        "Restore the model's own chat template, or list the tools in it whether or not there is a system "
        "turn."
    ),
    "h-system-of-the-company": (
        "Restore the model's own chat template, so that it renders the client's system turn, and send the "
        "company's prompt as a system message."
    ),
    "h-thinking-switch-reversed": (
        "Turn the condition on enable_thinking round in the chat template, or restore the model's own."
    ),
    "h-window-of-four-turns": "Render all messages in the chat template, or restore the model's own.",
    "h-results-truncated": (
        "Render the whole content of tool messages in the chat template, or restore the model's own."
    ),
    "h-contents-escaped": "Take the escaping filter out of the chat template, or restore the model's own.",
    "h-one-call-a-turn": (
        "Render every call of a turn in the chat template in place of raising over the second one."
    ),
    "h-accents-stripped": "Fetch the model's own tokenizer.json, which has no normalizer.",
    "h-decoder-of-another-family": "Fetch the model's own tokenizer.json, whose decoder is ByteLevel.",
    "h-end-of-the-base-model": (
        "Name <|im_end|> as the end token in generation_config.json, config.json and tokenizer_config.json."
    ),
    "h-switch-named-as-an-argument": (
        "Take add_generation_prompt out of chat_template_kwargs in the document."
    ),
    "h-stop-words-of-completions": "Take the empty line out of the document's stopwords.",
    "h-answers-of-a-few-words": "Raise parameters.max_tokens in the document, or take it out.",
    "h-cache-of-two-bits": "Take kv_bits out of engine_args in the document, or use eight bits.",
    "h-context-stretched": "Take rope_scaling out of config.json.",
    "h-parser-of-the-coder": "Take tool_parser_type out of tokenizer_config.json, or set it to json_tools.",
    "h-holes-in-the-copy": "Fetch the weights again and compare their checksum.",
    "h-chunks-out-of-order": "Fetch the weights again and compare their checksum.",
    "h-memory-with-a-broken-cell": "Fetch the weights again on another machine and compare their checksum.",
    "h-adapter-at-another-scale": "Merge the adapter again at the scale that it was trained for.",
    "h-markers-never-trained": "Merge again with the trained embedding, or use the publisher's weights.",
    "h-norms-less-one": "Convert the weights again without shifting the norms, or use the publisher's.",
    "h-layer-of-another-model": "Fetch the weights again, all files from one model and one revision.",
    "h-keys-for-values": (
        "Convert the weights again with keys and values in their places, or use the publisher's."
    ),
    "h-gateway-masks-arguments": (
        "Have the guardrail put names back into the arguments of calls, too, or take it off this route."
    ),
    "h-gateway-cache-by-likeness": (
        "Switch the gateway's cache by likeness off for chats, or let it hit on equal requests alone."
    ),
    "h-gateway-begins-anew": (
        "Forbid the gateway to retry a stream of which the client has already seen a part."
    ),
    "h-gateway-joins-events": (
        "Have the gateway pass streams on as they are, with the empty lines between events."
    ),
    "h-gateway-ends-otherwise": "Have the gateway pass finish_reason on as the engine tells it.",
    "h-gateway-with-an-old-replica": (
        "Restart the replica that runs without a tool parser, so that all replicas are the same."
    ),
    "h-gateway-quota": "Raise the quota of requests at the gateway, or take the limit off.",
    "h-gateway-tells-escapes": (
        "Have the gateway encode JSON once, so that letters beyond ASCII arrive as such."
    ),
    "h-gateway-drops-thoughts": "Have the gateway pass the reasoning member of messages and deltas on.",
    "h-warnings-are-errors": "Take PYTHONWARNINGS=error out of the engine's environment.",
    "h-numpy-of-another-release": (
        "Install the engine's environment anew, with the NumPy that its packages want."
    ),
    "h-log-may-not-grow": (
        "Raise the limit of the size of files (ulimit -f) for the service, and rotate its log."
    ),
    "h-processor-time-ends": "Take the limit of processor time (ulimit -t) off the service.",
    "h-clock-at-the-epoch": "Set the machine's clock, and keep it by NTP.",
    "h-temporary-folder-cleared": "Create the folder that TMPDIR names, or set TMPDIR to one that is there.",
    "h-end-never-written": "Fetch the weights again: the file on the disk is not the one that was imported.",
}
