"""Sentences about exports: what they lose, why there is none, and the comments in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


def _source(fields: Mapping[str, Any]) -> str:
    at = f" at {fields['revision']}" if fields["revision"] else ""
    return f"{fields['name']}: {fields['model']}{at}, for {fields['engine']}"


def _feature(fields: Mapping[str, Any]) -> str:
    known = {"tool_calling": "Tool calls are parsed", "reasoning": "Reasoning is parsed"}
    return known.get(fields["name"], "Tokens are drafted before they are verified")


TEXTS: dict[str, dict[str, Text]] = {
    "Unexportable": {
        "directory": "its model is a directory of one machine",
        "frontend": "it is written for vLLM's Rust frontend, and {consumer} has a frontend of its own",
        "localai-backend": "LocalAI has no backend {backend}",
        "localai-directory": "LocalAI refuses paths and looks only into its own folder of models",
        "other-backend": "it is written for {backend}, not for {engine}",
        "template-in-folder": "its server takes a chat template from the model's folder only",
        "parser-is-data": "its parser is a response template, which this consumer reads from the model's {file} alone",
        "template-is-file": "its chat template is a file, which this consumer cannot be given",
        "vllm-lacks": "it is written for {backend}, whose parsers and settings vLLM does not have",
    },
    "ExportRemedy": {
        "import-for": "Import the model again for {backends:or}.",
        "import-from-hub": "Import the model from the Hub.",
        "python-frontend": "Import the model again for vLLM's Python frontend.",
        "import-a-copy": "Put the response template into {file} of a copy of the model, and import the copy.",
        "serve-a-copy": "Put the template into a copy of that folder as {file}, and serve the copy.",
        "without-template": "Serve it another way, or import the model again without the template.",
    },
    "Loss": {
        "added": "{values} is added: what the engine does by itself, in place of LocalAI's own values.",
        "environment": "env.{key} is left out: set the variable for LocalAI's process.",
        "argument-of-server": "engine_args.{key} is left out: it is the server's, "
        "and LocalAI runs the engine alone.",
        "arguments": "engine_args ({keys}): LocalAI's {backend} backend reads none.",
        "commit": "The commit is not pinned: LocalAI's {backend} backend asks the Hub for the newest one. "
        "HF_HUB_OFFLINE=1 after its first start keeps the one that is installed.",
        "context-as-maximum": "max_tokens is the whole context: "
        "unset, LocalAI's backend ends after {tokens} tokens.",
        "flag": "options: {option!r} is left out: LocalAI would make it a flag of the engine.",
        "greedy": "temperature 0 is written as {value}: LocalAI's backends take 0 for unset.",
        "key": "{key}",
        "auto-context": "max_model_len auto is left out: LocalAI takes a number, and vLLM the model's own context.",
        "maximum": "max_tokens is not set, so LocalAI's backend ends every answer after {tokens} tokens.",
        "parser-versions": "{key} {name} is not in vLLM {versions}; look which one LocalAI runs.",
        "no-pin": "The commit {revision} is not pinned: {consumer} has no place for a revision.",
        "penalties": "{keys}: LocalAI's own table may set what is zero or unset here.",
        "remote-code": "trust_remote_code: LocalAI's mlx-vlm backend never sets it.",
        "repeat-penalty": "repeat_penalty does not reach vLLM through LocalAI; "
        "clients cannot send it there either.",
        "seed": "seed 0 is none for LocalAI's backends.",
        "served-name": "Clients use the id {model} in place of the name {name}: a recipe serves no other name.",
        "stops": "stopwords: LocalAI looks for them in text, from which vLLM has taken special tokens out.",
        "template": "The chat template is not carried over, nor its tools: "
        "LocalAI renders with the model's own.",
        "thinking-off": "{key}: false does not reach the template; a template that thinks by default will.",
        "value": "{key} is left out: {problem}.",
        "variable": "chat_template_kwargs.{key} does not reach the template.",
    },
    "ExportComment": {
        "command": "{command}",
        "engine-of-consumer": "The document is for vLLM {version}; "
        "{consumer} runs the vLLM that is installed with it.",
        "fitted": "Context and memory were chosen for {device} ({kind}).",
        "fitted-to-other": "WARNING: this is for {meant}, and the document for something else.",
        "from-clients": "{server} takes these from clients only, so send them: {values}",
        "inferred": "The server infers its parsers from the chat template and the vocabulary; "
        "it takes no names.",
        "no-option": "{server} has no option for: {losses}",
        "no-revision": "{server} takes no revision, so this commit is fetched into {folder} "
        "and served from there.",
        "resources": "Look at the resources: {processors} processors are a guess, {memory}Gi is {why}.",
        "source": _source,
        "unapproved": "WARNING: nobody has approved this document as it is now.",
        "unpinned": "WARNING: the document names no commit, so whatever is newest will be served.",
        "unrun-compose": "Checked against a schema, not run. "
        "HF_TOKEN comes from your environment and is written nowhere.",
        "unrun-kserve": "Checked against a schema, not run. It needs KServe's runtime kserve-vllmserver; "
        "for a gated model, a service account whose secret holds HF_TOKEN.",
        "unrun-gpustack": "Checked by GPUStack's own model of a catalog, not run. It fetches the newest commit.",
        "unrun-job": "Checked against the schemas of Kubernetes, not run. Make the image {image} of vLLM's with the "
        "importer in it. A queue of Kueue is the label {label}; a gated model needs a secret {secret} with {key}.",
        "unrun-kaito": "Checked against a schema, not run. Kaito takes nodes with the label kaito.sh/nodes-of={name}. "
        "For a gated model, a secret {secret} with the key {key}.",
        "unrun-kubernetes": "Checked against the schemas of Kubernetes, not run. "
        "For a gated model, a secret {secret} with the key {key}.",
        "unrun-llm-d": "Checked against a schema, not run. KServe's template starts vLLM in a shell "
        "with the words of VLLM_ADDITIONAL_ARGS. For a gated model, a secret {secret} with the key {key}.",
        "unrun-ray": "Read by Ray's own models of its configuration, not run. "
        "HF_TOKEN comes from the environment of Ray's processes and is written nowhere.",
        "unrun-recipe": "Checked against a schema of the recipes' documented fields, not by their build. "
        "Add meta.hardware after a run on that hardware.",
        "unrun-sglang": "Checked against the argument parser of SGLang, not run: its server needs an NVIDIA card.",
        "written": "Written by importer {version} from the document {digest} (review: {review}).",
    },
    "RecipeText": {
        "description": "{model}, as a document of importer configures it.",
        "feature": _feature,
        "guide": "## Launch\n\nThe command above is that of a document written for {model}.\n",
        "variant": "The published weights",
    },
    "MemoryReason": {
        "estimate": "the fit's high estimate",
        "guess": "a guess",
        "weights-once": "{gib} GiB and the weights once",
    },
}
