"""Run by SGLang's Python: command lines of ``sglang serve``, as JSON lines, up to what its argparse makes of
them. A file of ``--config`` is read by its own reader.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import xgrammar  # noqa: F401 - before a stand-in for torchvision can be found

sys.path.insert(0, str(Path(__file__).parents[1] / "importer" / "engines" / "parser_worker"))
from absent import stand_in

package = ModuleType("sglang")
package.__path__ = [*find_spec("sglang").submodule_search_locations]
sys.modules["sglang"] = package
stand_in("torchvision")

from sglang.srt.server_args import ServerArgs  # noqa: E402
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger  # noqa: E402

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
