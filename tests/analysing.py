"""Chat templates as importer analyses them, each once for a process: one costs hundreds of renderings."""

from __future__ import annotations

import atexit

from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.render import Renderer
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary

VOCABULARY = Vocabulary(named={"bos_token": "<s>", "eos_token": "</s>"}, stops=("</s>",))
RENDERER = Renderer()
atexit.register(RENDERER.close)
_ANALYSED: dict[tuple[str, str, str], TemplateAnalysis] = {}


def analysed(text: str, vocabulary: Vocabulary = VOCABULARY, plain: str = "") -> TemplateAnalysis:
    """Return the analysis of a template, and of a plain one beside it."""
    key = text, plain, repr(vocabulary)
    if key not in _ANALYSED:
        template = Template(text, "chat_template.jinja", plain=plain)
        _ANALYSED[key] = analyze(template, vocabulary, RENDERER)
    return _ANALYSED[key]
