"""The plugin that vLLM's server loads with ``--tool-parser-plugin``: calls as Python writes them.

Written for vLLM 0.32, whose own ``pythonic`` parser reads a call only where nothing stands before it, no
argument without a name, and no call beside one that cannot be read.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.logger import init_logger
from vllm.tool_parsers import ToolParser, ToolParserManager

NAME = "importer_pythonic"
PACKAGE = f"{NAME}_parts"
logger = init_logger(f"vllm.{NAME}")


def parts() -> ModuleType:
    """Return the reader in this folder, loaded as a package of its own: importer is not installed here."""
    if PACKAGE not in sys.modules:
        here = Path(__file__).resolve().parent
        spec = importlib.util.spec_from_file_location(
            PACKAGE, here / "__init__.py", submodule_search_locations=[str(here)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{here} cannot be loaded")
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.reader")


class ImporterPythonicToolParser(ToolParser):
    """Calls of the functions on offer, in one piece or as a stream; each call is sent when it is complete."""

    engine_based_streaming = True  # it has state, and the server calls it for the rest at the end

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._reader = self._new(self.tools)

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Return all calls of a finished answer, and the text around them."""
        reader = self._new(self.tools or request.tools)
        pieces = [*reader.feed(model_output), *reader.finish()]
        self._report(reader)
        calls = [
            ToolCall(function=FunctionCall(name=piece.name, arguments=_json(piece)))
            for piece in pieces
            if not isinstance(piece, str)
        ]
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        content = (text.strip() or None) if calls else text
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=content)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,  # noqa: ARG002 - the interface's
        current_text: str,  # noqa: ARG002
        delta_text: str,
        previous_token_ids: Sequence[int],  # noqa: ARG002
        current_token_ids: Sequence[int],  # noqa: ARG002
        delta_token_ids: Sequence[int],  # noqa: ARG002
        request: Any,  # noqa: ARG002
    ) -> DeltaMessage | None:
        """Return the pieces that one more delta settles."""
        return self._delta(self._reader.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Return the pieces that were held back until the end."""
        delta = self._delta(self._reader.finish())
        self._report(self._reader)
        return delta

    def _new(self, tools: Any) -> Any:
        functions = [getattr(tool, "function", tool) for tool in tools or ()]
        return parts().Reader({function.name: function.parameters or {} for function in functions})

    def _delta(self, pieces: list[Any]) -> DeltaMessage | None:
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        calls = [self._sent(piece) for piece in pieces if not isinstance(piece, str)]
        if not text and not calls:
            return None
        return DeltaMessage(content=text or None, tool_calls=calls)

    def _sent(self, call: Any) -> DeltaToolCall:
        index, arguments = len(self.prev_tool_call_arr), _json(call)
        self.prev_tool_call_arr.append({"name": call.name, "arguments": call.arguments})
        self.streamed_args_for_tool.append(arguments)  # so that the server adds nothing at the end
        self.current_tool_id = index
        whole = ToolCall(function=FunctionCall(name=call.name, arguments=arguments))
        function = DeltaFunctionCall(name=call.name, arguments=arguments)
        return DeltaToolCall(index=index, id=whole.id, type="function", function=function)

    def _report(self, reader: Any) -> None:
        for problem in reader.problems:
            logger.warning("A call was left in the text, %s", problem)


def _json(call: Any) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


ToolParserManager.register_module(NAME, module=ImporterPythonicToolParser)
