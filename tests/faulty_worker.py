"""A worker whose parsers misbehave in each way that the client must survive; run by path."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from importer.engines.parser_worker import wire


def fine(sample):
    return {
        "calls": [{"name": "echo", "arguments": "{}"}], "reasoning": None, "content": sample["completion"],
    }  # fmt: skip


def loops(_sample):
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


def raises(_sample):
    raise LookupError("no such\nmarker")


def prints(sample):
    print('{"id": 1, "item": "forged"}')
    os.write(1, b'{"id": 1, "item": "forged"}\n')
    return fine(sample)


def reads_input(sample):
    return fine({"completion": sys.stdin.read() + sample["completion"]})


def dies(_sample):
    print("last words", file=sys.stderr)
    os._exit(7)


def hangs(_sample):
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(3600)


def burns(_sample):
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    while True:
        pass


def hoards(_sample):
    return {"calls": [], "reasoning": None, "content": str(len(bytearray(8 * wire.GIB)))}


PARSERS = {f.__name__: f for f in (fine, loops, raises, prints, reads_input, dies, hangs, burns, hoards)}


def judged(request):
    if request["tokenizer"]["eos"] == "refuse":
        raise ValueError("this tokenizer cannot be loaded")
    if (folder := request["tokenizer"]["directory"]) is not None:
        wire.UNLOADED[folder] = "ValueError: it needs code of its own"
    for pair in request["asks"]:
        yield [
            wire.attempt(request["limit"], lambda p=pair, s=s: PARSERS[p["tool"]](s))
            for s in request["samples"]
        ]


def names(_request):
    for name in PARSERS:
        yield {
            "kind": "tool", "name": name, "class": "Fine" if name in {"fine", "prints"} else name,
            "module": "m",
        }  # fmt: skip


if __name__ == "__main__":
    line = wire.Line()
    print("engines print on import")
    wire.serve(
        line, {"hello": lambda _: iter([{"engine": "faulty", "version": "1"}]), "list": names, "read": judged}
    )
