"""Run by vLLM's Python: each line of stdin is a command line of ``vllm``, answered by its own parser as JSON.

It makes the parser as vLLM's ``main`` does, reads and checks the words, and starts nothing. The first answer
is the list of the engine's own fields.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser

print("answer:", json.dumps([field.name for field in dataclasses.fields(AsyncEngineArgs)]), flush=True)
parser = FlexibleArgumentParser(prog="vllm")
command = ServeSubcommand()
command.subparser_init(parser.add_subparsers(required=False, dest="subparser"))
for line in sys.stdin:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = parser.parse_args(json.loads(line))
            command.validate(found)
        answer = {"parsed": vars(found)}
    except (SystemExit, TypeError, ValueError) as error:
        answer = {"refused": f"{said.getvalue()} {error}"}
    print("answer:", json.dumps(answer, default=repr), flush=True)
