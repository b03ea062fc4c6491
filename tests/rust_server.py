"""The real ``vllm-rs`` over the demo model: ``python rust_server.py ENGINES MODEL TOOL REASONING``.

Run by the Python of vllm's environment; ENGINES is the folder of ``parser_worker``. transformers takes the
place of the engine's core, which needs a card: each prompt that the server renders is answered greedily. The
port is printed; the server ends with standard input.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import torch
import transformers

sys.path.insert(0, sys.argv[1])
from parser_worker import scripted_core
from parser_worker.vllm_rust_worker import binary

sys.path.pop(0)  # a module of ENGINES has the name of the package with the binary

CUT = 1  # the finish reason of a limit


class Server(scripted_core.Frontend):
    """The server, and a core that runs the model."""

    def __init__(self, folder: str, tool: str, reasoning: str) -> None:
        self._model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self._ends = {self._model.config.eos_token_id, self._model.config.pad_token_id}
        super().__init__(binary(), folder, tool, reasoning, 60)

    @property
    def port(self) -> int:
        return self._port

    def _answer(self, request: Sequence[Any], answered: Any) -> None:
        name, prompt, sampling = request[0], request[1], request[scripted_core.SAMPLING]
        stops = self._ends | set(sampling.get("stop_token_ids") or ())
        for token, reason in self._written(prompt, sampling.get("max_tokens") or 256, stops):
            output = [name, [token], None, None, None, reason]
            answer = [0, [output], None, time.monotonic(), None, None if reason is None else [name]]
            answered.send(msgspec.msgpack.encode(answer))

    @torch.inference_mode()
    def _written(self, prompt: list[int], limit: int, stops: set[int]) -> Iterator[tuple[int, int | None]]:
        """The likeliest tokens, the last one with the reason of the end."""
        ids, past = torch.tensor([prompt]), None
        for number in range(1, limit + 1):
            made = self._model(input_ids=ids, past_key_values=past, use_cache=True)
            token, past = int(made.logits[0, -1].argmax()), made.past_key_values
            ended = scripted_core.STOPPED if token in stops else CUT if number == limit else None
            yield token, ended
            if ended is not None:
                return
            ids = torch.tensor([[token]])


if __name__ == "__main__":
    with Server(*sys.argv[2:5]) as server:
        print(server.port, flush=True)
        sys.stdin.read()
