"""More faults to plant: order in a turn, values without a nonce, escapes, parts, cuts; and sound twins."""

from __future__ import annotations

from importer.chat_template.request_coverage.findings import CoverageField as Field
from importer.chat_template.request_coverage.findings import CoverageKind as Kind
from tests.coverage_faults import ARGUMENT, JSON, SOUND, Fault

WORDS = "{{- m.content or '' -}}\n"
THOUGHT = SOUND[SOUND.index("{%- if m.reasoning_content %}") : SOUND.index(WORDS)]
CALLS = SOUND[SOUND.index("{%- for call in m.tool_calls") : SOUND.index("{%- elif m.role == 'tool' -%}")]
EACH = "in call.function.arguments | items -%}"
DUMPED = "call.function.arguments | tojson"
PARTS = "in content -%}"
MORE = (
    Fault(
        "words after the calls", WORDS + CALLS, CALLS + WORDS,
        Kind.OUT_OF_ORDER, Field.WORDS_BESIDE_CALL, (1,),
    ),
    Fault(
        "reasoning after the calls", THOUGHT + WORDS + CALLS, WORDS + CALLS + THOUGHT,
        Kind.OUT_OF_ORDER, Field.REASONING, (1,),
    ),
    Fault(
        "reasoning after the words", THOUGHT + WORDS, WORDS + THOUGHT,
        Kind.OUT_OF_ORDER, Field.REASONING, (1,),
    ),
    Fault(
        "values before their names", "'<parameter=' ~ key ~ '>\\n' ~ " + ARGUMENT,
        "'<parameter=' ~ " + ARGUMENT + " ~ '>\\n' ~ key",
        Kind.OUT_OF_ORDER, Field.ARGUMENT_NAME, (1, 2, 3, 4),
    ),
    Fault(
        "calls without arguments dropped", "in m.tool_calls or [] -%}",
        "in m.tool_calls or [] if call.function.arguments -%}", Kind.LOST, Field.CALL, (1,),
    ),
    Fault(
        "what is false or empty left out", EACH, EACH.replace("items", "items if value"),
        Kind.LOST, Field.BOOLEAN, (1,),
    ),
    Fault(
        "zero left out", EACH, EACH.replace("items", "items if value is not integer or value"),
        Kind.LOST, Field.NUMBER, (1,),
    ),
    Fault(
        "false left out", EACH, EACH.replace("items", "items if value is not false"),
        Kind.LOST, Field.BOOLEAN, (1,),
    ),
    Fault(
        "null left out", EACH, EACH.replace("items", "items if value is not none"),
        Kind.LOST, Field.NULL, (1,),
    ),
    Fault(
        "empty text left out", EACH, EACH.replace("items", "items if value != ''"),
        Kind.LOST, Field.EMPTY, (1,),
    ),
    Fault(
        "empty list left out", EACH, EACH.replace("items", "items if value != []"),
        Kind.LOST, Field.EMPTY, (1,),
    ),
    Fault(
        "empty object left out", EACH, EACH.replace("items", "items if value != {}"),
        Kind.LOST, Field.EMPTY, (1,),
    ),
    Fault(
        "empty in an object left out", DUMPED, DUMPED + " | replace(': []', ': 1')",
        Kind.ALTERED, Field.EMPTY, (1,), JSON,
    ),
    Fault(
        "booleans as Python prints them", ARGUMENT,
        "(value if value is string or value is boolean else value | tojson)", Kind.REPR, Field.BOOLEAN, (1,),
    ),
    Fault(
        "null as Python prints it", ARGUMENT,
        "(value if value is string or value is none else value | tojson)", Kind.REPR, Field.NULL, (1,),
    ),
    Fault(
        "null as nothing", ARGUMENT,
        "(value if value is string else '' if value is none else value | tojson)",
        Kind.LOST, Field.NULL, (1,),
    ),
    Fault(
        "booleans in JSON as Python prints them", DUMPED, DUMPED + " | replace('true', 'True')",
        Kind.REPR, Field.BOOLEAN, (1,), JSON,
    ),
    Fault(
        "booleans as text", DUMPED, DUMPED + " | replace(': false', ': \"false\"')",
        Kind.ALTERED, Field.BOOLEAN, (1,), JSON,
    ),
    Fault(
        "null as text", DUMPED, DUMPED + " | replace(': null', ': \"null\"')",
        Kind.ALTERED, Field.NULL, (1,), JSON,
    ),
    Fault(
        "null as an empty text", DUMPED, DUMPED + " | replace(': null', ': \"\"')",
        Kind.ALTERED, Field.NULL, (1,), JSON,
    ),
    Fault(
        "zero as text", DUMPED, DUMPED + " | replace(': 0', ': \"0\"')",
        Kind.ALTERED, Field.NUMBER, (1,), JSON,
    ),
    *(
        Fault(f"{field} with ASCII escapes", "tool | tojson", "tool | tojson(ensure_ascii=true)",
              Kind.ASCII, field, numbers, JSON)
        for field, numbers in (
            (Field.TOOL_DESCRIPTION, (1, 2, 3, 4, 5)), (Field.PARAMETER_DESCRIPTION, (1, 2, 4)),
            (Field.NESTED_DESCRIPTION, (4,)), (Field.ENUM, (1,)),
        )
    ),
    *(
        Fault(f"{field} with ASCII escapes", DUMPED, DUMPED + "(ensure_ascii=true)",
              Kind.ASCII, field, numbers, JSON)
        for field, numbers in ((Field.ARGUMENT, (1, 2, 3)), (Field.NESTED_ARGUMENT, (1, 2, 3, 4)))
    ),
    Fault(
        "results with ASCII escapes", "said(m.content) ~ '\\n</tool_response>'",
        "said(m.content) | tojson(ensure_ascii=true) ~ '\\n</tool_response>'",
        Kind.ASCII, Field.RESULT, (1, 2, 3),
    ),
    *(
        Fault(f"first part only: {field}", PARTS, "in content[:1] -%}", Kind.LOST, field, (2,))
        for field in (Field.USER_PART, Field.SYSTEM_PART, Field.RESULT_PART)
    ),
    *(
        Fault(f"last part only: {field}", PARTS, "in content[-1:] -%}", Kind.LOST, field, (1,))
        for field in (Field.USER_PART, Field.SYSTEM_PART, Field.RESULT_PART)
    ),
    Fault(
        "parts in reverse", PARTS, "in content | reverse -%}", Kind.OUT_OF_ORDER, Field.USER_PART, (2,)
    ),
    Fault(
        "first part of an answer only", "{{- m.content or '' -}}",
        "{{- m.content if m.content is string else (m.content or [{'text': ''}])[0].text -}}",
        Kind.LOST, Field.ANSWER_PART, (2,),
    ),
    Fault(
        "text behind an image dropped", PARTS,
        "in (content[:2] if content | length > 1 and content[1].type == 'image' else content) -%}",
        Kind.LOST, Field.USER_PART, (2,),
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
    "[:800]",
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
