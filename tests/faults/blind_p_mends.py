"""What mends each fault of round p, as an expert would tell the operator."""

from __future__ import annotations

from collections.abc import Mapping

MENDS: Mapping[str, str] = {
    "p-first-tool-only": "Correct the chat template so that it loops over all tools of the request.",
    "p-roles-must-alternate": (
        "Use a chat template that allows turns of tools, without its rule that roles alternate."
    ),
    "p-system-or-tools": (
        "Correct the chat template so that it writes the system's turn where tools are offered, too."
    ),
    "p-tool-use-template-plain": (
        "Take the template 'tool_use' out of tokenizer_config.json, or have it write tools, calls and "
        "results."
    ),
    "p-decoder-lost": "Restore the decoder (ByteLevel) in tokenizer.json, from the original repository.",
    "p-accents-stripped": (
        "Take the normalizer that strips accents out of tokenizer.json, as the original has none."
    ),
    "p-prefix-space": "Set add_prefix_space to false in tokenizer.json and tokenizer_config.json.",
    "p-call-end-ends-turn": (
        "Take </tool_call> (4) out of eos_token_id in generation_config.json and config.json."
    ),
    "p-base-repository-ends": (
        "Make <|im_end|> (2) an end token again, in generation_config.json, config.json and "
        "tokenizer_config.json."
    ),
    "p-kwargs-of-a-snippet": (
        "Take tokenize and add_generation_prompt out of the document's chat_template_kwargs."
    ),
    "p-document-short": "Raise parameters.max_tokens in the document, or leave it out.",
    "p-quantisation-note-overwritten": (
        "Put the quantization of the converted weights (8 bits, groups of 32) back into config.json."
    ),
    "p-norms-around-zero": (
        "Convert the weights again with one added to the weights of the norms, or take another upload."
    ),
    "p-scales-of-fp8-forgotten": (
        "Convert the weights again from the FP8 checkpoint with their scales multiplied in."
    ),
    "p-shard-of-another-revision": (
        "Download all files of the weights again from one revision of the repository."
    ),
    "p-new-tokens-untrained": (
        "Take weights in which the embeddings of <tool_call> and <think> are trained, or train those rows."
    ),
    "p-key-heads-changed-places": "Convert the weights again with the heads of keys in their original order.",
    "p-other-model-taken-away": (
        "Take the original weights in place of the merge, or merge again with right shares."
    ),
    "p-one-row-not-a-number": (
        "Take weights without NaN in the embedding: convert again or download another upload."
    ),
    "p-positions-of-the-larger-sister": (
        "Set rope_theta in config.json to the model's own 10000, or convert again."
    ),
    "p-embedding-cut-at-multiple": "Convert the weights again with all 640 rows of the embedding.",
    "p-pieces-trimmed": (
        "Have the proxy pass on pieces of a stream as they are, without trimming white space."
    ),
    "p-calling-turns-dropped": (
        "Have the gateway keep turns of the assistant that hold tool calls and no content."
    ),
    "p-cache-by-likeness": "Turn off the gateway's semantic cache, or have its key hold the whole request.",
    "p-escaped-for-html": "Turn off the escaping of HTML in the gateway for answers of the API.",
    "p-names-masked": "Turn off the gateway's masking of names for this model, or have it put names back.",
    "p-one-replica-of-two-older": (
        "Bring both servers behind the balancer to the same version with the tool parser."
    ),
    "p-stop-words-of-the-gateway": (
        "Take the empty line out of the stop words that the gateway adds to requests."
    ),
    "p-streams-mixed": (
        "Have the gateway keep a buffer for each stream, or serve clients without that gateway."
    ),
    "p-stream-cut-at-buffer": (
        "Turn off buffering of answers in the proxy, or its limit on their size, for streams."
    ),
    "p-stream-begun-again": "Turn off the gateway's retry once pieces of a stream have been sent.",
    "p-stream-as-one-body": (
        "Have the gateway send server-sent events where a request wants a stream; turn off its cache."
    ),
    "p-own-script-named-queue": "Rename the script queue.py or take its folder off PYTHONPATH.",
    "p-template-file-unread": (
        "Install the version of transformers that the engine was locked to, which reads chat_template.jinja."
    ),
    "p-jinja-too-old": "Install jinja2 3.1.6 or later in the engine's environment.",
    "p-library-returns-mapping": "Install the version of transformers that the engine was locked to.",
    "p-cache-pruned": (
        "Download the chat template again: its link leads to a file that is gone from the cache."
    ),
    "p-log-on-a-full-disk": (
        "Make room for the engine's log: free the disk, or raise the limit on the size of files."
    ),
    "p-weights-with-a-hole": "Download or copy the weights again: the file is not the one that was imported.",
    "p-template-pulled": "Restore the chat template of the import, or import the folder again as it is now.",
}
