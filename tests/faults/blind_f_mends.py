"""What mends each fault of this round, in a sentence."""

from __future__ import annotations

MENDS: dict[str, str] = {
    "f-template-tools-until-it-has-spoken": (
        "Take the patch out of the chat template: tools belong into every prompt of a talk that has them."
    ),
    "f-template-carries-a-handbook": (
        "Take the house's rules out of the chat template, and use the model's own."
    ),
    "f-template-thinking-turned-round": (
        "Correct the condition in the chat template: an empty thought where enable_thinking is false."
    ),
    "f-template-thinking-under-another-name": (
        "Let the chat template read enable_thinking, as the model's own does."
    ),
    "f-template-clips-results": "Let the chat template write the whole of what a tool said.",
    "f-template-escapes-markup": "Take the escape filter out of the chat template.",
    "f-template-window-of-turns": "Let the chat template write all turns.",
    "f-template-thought-not-opened": (
        "Let the chat template open the thought again, as the model's own does."
    ),
    "f-template-splits-the-call-mark": (
        "Name the format's tool parser in tokenizer_config.json, or use the model's own template."
    ),
    "f-template-tools-behind-the-talk": "Let the chat template list the tools before the first turn.",
    "f-tokenizer-strips-accents": "Use the tokenizer.json that the model came with: it has no normalizer.",
    "f-tokenizer-keeps-its-dropout": "Set the dropout of the BPE model in tokenizer.json to null.",
    "f-document-stops-at-blank-lines": "Take the blank line out of the document's stop words.",
    "f-document-continues-the-last-turn": (
        "Take continue_final_message out of the document's chat_template_kwargs."
    ),
    "f-document-answers-of-a-line": "Raise the document's max_tokens, or leave it out.",
    "f-config-stretches-positions": "Take rope_scaling out of config.json.",
    "f-weights-one-layer-of-another-run": "Fetch the weights again, all files of one revision.",
    "f-weights-adapter-merged-twice": "Merge the adapter once, into the weights of the base model.",
    "f-weights-resumed-at-a-wrong-place": "Fetch the weights again from the beginning.",
    "f-weights-stripes-lost": "Fetch the weights again, onto a disk that is whole.",
    "f-weights-marks-averaged": "Use weights whose rows for the tokens around calls were trained.",
    "f-weights-half-gathered": "Save the checkpoint again, gathered from all ranks.",
    "f-weights-outliers-clipped": "Use the weights before they were shrunk.",
    "f-weights-gates-swapped": "Convert the weights again, with gate and up in the right order.",
    "f-cache-without-tools-in-its-key": "Switch the cache off, or put the whole request into its key.",
    "f-gateway-masks-names": "Let the gateway's filter leave requests as they are, or unmask what it masked.",
    "f-gateway-strips-unknown-fields": "Let the gateway pass on all fields of a request.",
    "f-replica-of-last-month": "Restart the replica that is behind, so that all are the same.",
    "f-gateway-streams-begin-again": "Let the gateway not try again behind a part of a stream.",
    "f-log-clips-answers": "Let the log's filter work on a copy of the answer.",
    "f-gateway-appends-a-rule": "Let the gateway put its rule into the first turn, or nowhere.",
    "f-started-with-a-cache-of-two-bits": "Start the server without --kv-bits.",
    "f-started-hot": "Start the server with the document's sampling: without further --temp and --top-k.",
    "f-machine-limits-processor-time": "Lift the limit of processor time for the engine's user (ulimit -t).",
    "f-disk-of-the-cache-not-mounted": "Mount the disk, or let HF_HUB_CACHE name a folder that exists.",
    "f-tokenizers-upgraded": "Install the release of tokenizers that transformers asks for.",
    "f-agent-scrubs-tokens": "Take the monitoring agent out of the engine's Python.",
    "f-transformers-of-old": "Install the release of transformers that the engine asks for.",
    "f-tokenizer-overwritten-since": "Fetch the model's own tokenizer.json again.",
    "f-weights-rotten-since": "Fetch the weights again, and look at the disk.",
}
