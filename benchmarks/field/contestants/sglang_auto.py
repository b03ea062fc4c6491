"""SGLang's ``auto``: the rules of its own module over the chat template and the tokens."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released, run

MODULE = "sglang/srt/parser/template_detection.py"
SCRIPT = """
import importlib.abc, importlib.machinery, json, sys, types

class Others(importlib.abc.MetaPathFinder, importlib.abc.Loader):  # the rest of SGLang is not asked
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sglang":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: None
        return module
    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Others())
given = json.load(sys.stdin)
rules = types.ModuleType("rules")
sys.modules["rules"] = rules
exec(compile(given["source"], "template_detection.py", "exec"), rules.__dict__)
answers = {}
for model_id, template, tokens in given["models"]:
    tokenizer = types.SimpleNamespace(get_vocab=lambda: dict.fromkeys(tokens, 0))
    force, config = rules.detect_reasoning_pattern(template)
    found = {"tool_parser": rules.detect_tool_call_parser(template, tokenizer, config, force),
             "reasoning_parser": rules.detect_reasoning_parser(template, tokenizer, config, force)}
    answers[model_id] = {field: name for field, name in found.items() if name}
print(json.dumps(answers))
"""


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Run the rules of the newest wheel."""
    version, texts = released.package("sglang", lambda path: path == MODULE)
    rows = [(m.model_id, m.template, m.tokens) for m in models]
    return Entry(version, run(SCRIPT, {"source": texts[MODULE], "models": rows}), engine="sglang")
