"""mlx-lm's inference of a tool parser from the chat template and the tokens, by its own function."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released, run

MODULE = "mlx_lm/tokenizer_utils.py"
SCRIPT = """
import ast, json, sys, types
given = json.load(sys.stdin)
wanted = ("_infer_tool_parser", "_is_xtml_vocab")
functions = [node for node in ast.parse(given["source"]).body if getattr(node, "name", "") in wanted]
scope = {}
exec(compile(ast.Module(functions, []), "tokenizer_utils.py", "exec"), scope)
answers = {}
for model_id, template, tokens in given["models"]:
    tokenizer = types.SimpleNamespace(chat_template=template, get_vocab=lambda: tokens)
    name = scope["_infer_tool_parser"](tokenizer)
    answers[model_id] = {"tool_parser": name} if name else {}
print(json.dumps(answers))
"""


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Run the function of the newest wheel."""
    version, texts = released.package("mlx-lm", lambda path: path == MODULE)
    rows = [(m.model_id, m.template, m.tokens) for m in models]
    return Entry(version, run(SCRIPT, {"source": texts[MODULE], "models": rows}), engine="mlx-lm")
