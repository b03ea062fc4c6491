"""More faults to plant: escapes and cuts; and sound twins."""

from __future__ import annotations

from importer.chat_template.request_coverage.findings import CoverageField as Field
from importer.chat_template.request_coverage.findings import CoverageKind as Kind
from tests.coverage_faults import JSON, SOUND, Fault

CALLS = SOUND[SOUND.index("{%- for call in m.tool_calls") : SOUND.index("{%- elif m.role == 'tool' -%}")]
MORE = (
    Fault(
        "calls without arguments dropped", "in m.tool_calls or [] -%}",
        "in m.tool_calls or [] if call.function.arguments -%}", Kind.LOST, Field.CALL, (1,),
    ),
    Fault(
        "tools with ASCII escapes", "tool | tojson", "tool | tojson(ensure_ascii=true)",
        Kind.ASCII_ESCAPED, Field.TOOL_DESCRIPTION, (1, 2, 3, 4), JSON,
    ),
    Fault(
        "results with ASCII escapes", "said(m.content) ~ '\\n</tool_response>'",
        "said(m.content) | tojson(ensure_ascii=true) ~ '\\n</tool_response>'",
        Kind.ASCII_ESCAPED, Field.RESULT, (1, 2, 3),
    ),
)  # fmt: skip

# What a template writes of a text, by field, and ways to cut a text short.
TEXTS = {
    Field.TOOL_DESCRIPTION: "f.description", Field.PARAMETER_DESCRIPTION: "': ' ~ one.description",
    Field.SYSTEM: "'<|im_start|>system\\n' ~ system", Field.USER: "{%- else -%}\n{{- said(m.content)",
    Field.ANSWER: "{{- m.content or ''", Field.WORDS_BESIDE_CALL: "{{- m.content or ''",
    Field.REASONING: "'<think>\\n' ~ m.reasoning_content", Field.ARGUMENT: "(value if value is string",
    Field.RESULT: "'<tool_response>\\n' ~ said(m.content)",
}  # fmt: skip
CUTS = (
    ".split('. ')[0]", ".split('\\n')[0]", ".split('\\n\\n')[0]", ".split(': ')[0]", ".split('! ')[0]",
    "[:80]",
)  # fmt: skip


def cut_short(field: Field, cut: str) -> str:
    """Return the sound template with one field cut short."""
    old = TEXTS[field]
    assert old in SOUND
    if field is Field.ARGUMENT:
        return SOUND.replace(old, f"(value{cut} if value is string")
    head, word = ("", old) if " " not in old else (old[: old.rindex(" ") + 1], old[old.rindex(" ") + 1 :])
    if old.endswith("or ''"):
        head, word = "{{- ", "(m.content or '')"
    return SOUND.replace(old, f"{head}{word}{cut}")


# Other ways of writing the same.
TWINS = {
    "lines of comments": SOUND.replace(
        "f.description ~", "'// ' ~ (f.description or '').split('\\n') | select | join('\\n// ') ~"
    ),
    "parts in lines": SOUND.replace(
        "'<|image|>' if part.type == 'image' else part.text",
        "('<|image|>' if part.type == 'image' else part.text) ~ ('' if loop.last else '\\n')",
    ),
    "calls of Python": SOUND.replace(
        CALLS,
        "{%- for call in m.tool_calls or [] -%}{{- '[' ~ call.function.name ~ '(' -}}"
        "{%- for key, value in call.function.arguments | items -%}"
        "{{- key ~ '=' ~ '%r' | format(value) ~ (', ' if not loop.last else '') -}}"
        "{%- endfor -%}{{- ')]' -}}{%- endfor -%}",
    ),
    "arguments as text within JSON": JSON.replace(
        "(call.function.arguments | tojson)",
        "((call.function.arguments if call.function.arguments is string"
        " else call.function.arguments | tojson) | tojson)",
    ),
    "indented": JSON.replace("tool | tojson", "tool | tojson(indent=2)"),
}
