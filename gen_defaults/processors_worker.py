"""Runs in vLLM's own environment: starts the toy of a folder and prints one line with the result."""

from __future__ import annotations

import sys


def main(folder: str) -> None:
    """Print ``RESULT runs``, ``RESULT fails WHY`` or ``RESULT refused WHY``."""
    import torch
    from vllm import LLM, SamplingParams
    from vllm.engine.arg_utils import EngineArgs

    torch.cpu._init_amx()  # noqa: SLF001 - its server does so; in one process the kernels would die without
    options = {"model": folder, "load_format": "dummy", "skip_tokenizer_init": True, "max_model_len": 256}
    try:
        EngineArgs(**options, enforce_eager=True).create_engine_config()
    except Exception as error:
        report("refused", error)
        return
    try:
        model = LLM(**options, enforce_eager=True, max_num_seqs=4)
        sampling = SamplingParams(max_tokens=2, temperature=0, detokenize=False)
        model.generate([{"prompt_token_ids": [1, 2, 3]}], sampling, use_tqdm=False)
    except Exception as error:
        report("fails", error)
        return
    sys.stdout.write("\nRESULT runs\n")


def report(kind: str, error: Exception) -> None:
    """Print the kind and the first sentence of an error."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    text = next(
        (x for x in lines if x.startswith("Value error, ")), lines[0] if lines else type(error).__name__
    )
    short = text.removeprefix("Value error, ").partition(" [type=")[0].partition(". ")[0][:160]
    sys.stdout.write(f"\nRESULT {kind} {short}\n")


if __name__ == "__main__":
    main(sys.argv[1])
