"""Run by SGLang's Python: command lines of ``sglang serve``, as JSON lines, up to what its argparse makes of
them. A file of ``--config`` is read by its own reader.
"""

from __future__ import annotations

import argparse
import json
import sys

from sglang.srt.server_args import ServerArgs
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger

parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
for line in sys.stdin:
    words = json.loads(line)
    try:
        if "--config" in words:
            words = ConfigArgumentMerger(parser).merge_config_with_args(words)
        told = vars(parser.parse_args(words))
    except (SystemExit, ValueError) as error:
        told = {"refused": str(error)}
    print("answer:", json.dumps(told, default=str), flush=True)
