"""A sound chat template that writes every field by itself, and faults to plant into it.

Each fault is one replacement, the kind of its finding, the field, and the numbers of turns, tools or calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from importer.chat_template.request_coverage.findings import CoverageField as Field
from importer.chat_template.request_coverage.findings import CoverageKind as Kind

SOUND = """
{%- macro schema(name, one, required) -%}
{%- set plain = one.type is string and not one.const and not one.get('items', {}).enum -%}
{%- if not plain or (one.enum and one.type != 'string') -%}
{{- '- ' ~ name ~ ': ' ~ (one | tojson) ~ '\\n' -}}
{%- else -%}
{{- '- ' ~ name ~ ' (' ~ one.type ~ (', required' if name in required else '') ~ ')' -}}
{%- if one.description %}{{- ': ' ~ one.description -}}{% endif -%}
{%- if one.enum %}{{- ' one of ' ~ (one.enum | tojson) -}}{% endif -%}
{{- '\\n' -}}
{%- for key, inner in (one.properties or {}) | items -%}{{- schema(key, inner, []) -}}{%- endfor -%}
{%- for key, inner in (one.get('items') or {}).get('properties', {}) | items -%}
{{- schema(key, inner, []) -}}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- macro said(content) -%}
{%- if content is string -%}{{- content -}}
{%- else -%}
{%- for part in content -%}{{- '<|image|>' if part.type == 'image' else part.text -}}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- set system = said(messages[0].content) if messages[0].role == 'system' else '' -%}
{%- set turns = messages[1:] if messages[0].role == 'system' else messages -%}
{%- if system or tools -%}
{{- '<|im_start|>system\\n' ~ system -}}
{%- if tools -%}
{{- '\\n# Tools\\n' -}}
{%- for tool in tools -%}
{%- set f = tool.function -%}
{{- '## ' ~ f.name ~ '\\n' ~ f.description ~ '\\n' -}}
{%- set held = f.parameters or {} -%}
{%- for name, one in (held.properties or {}) | items -%}
{{- schema(name, one, held.required or []) -}}
{%- endfor -%}
{%- if held['$defs'] %}{{- held['$defs'] | tojson -}}{% endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for m in turns -%}
{{- '<|im_start|>' ~ m.role ~ '\\n' -}}
{%- if m.role == 'assistant' -%}
{%- if m.reasoning_content %}{{- '<think>\\n' ~ m.reasoning_content ~ '\\n</think>\\n\\n' -}}{% endif -%}
{{- m.content or '' -}}
{%- for call in m.tool_calls or [] -%}
{{- '<tool_call>\\n<function=' ~ call.function.name ~ '>\\n' -}}
{%- for key, value in call.function.arguments | items -%}
{{- '<parameter=' ~ key ~ '>\\n' ~ (value if value is string else value | tojson) ~ '\\n</parameter>\\n' -}}
{%- endfor -%}
{{- '</function>\\n</tool_call>' -}}
{%- endfor -%}
{%- elif m.role == 'tool' -%}
{{- '<tool_response>\\n' ~ said(m.content) ~ '\\n</tool_response>' -}}
{%- else -%}
{{- said(m.content) -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' -}}{% endif -%}
"""
# The same in JSON, whole tools and whole calls at a time.
JSON = """
{%- if tools -%}
{{- '<|im_start|>system\\n' ~ (messages[0].content if messages[0].role == 'system' else '') -}}
{%- for tool in tools -%}{{- '\\n' ~ tool | tojson -}}{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- elif messages[0].role == 'system' -%}
{{- '<|im_start|>system\\n' ~ messages[0].content ~ '<|im_end|>\\n' -}}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role != 'system' or not loop.first -%}
{{- '<|im_start|>' ~ m.role ~ '\\n' ~ (m.content or '') -}}
{%- for call in m.tool_calls or [] -%}
{{- '<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' -}}
{{- (call.function.arguments | tojson) ~ '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' -}}{% endif -%}
"""


@dataclass(frozen=True)
class Fault:
    """A replacement in a sound template, and the finding that must show it."""

    name: str
    old: str
    new: str
    kind: Kind
    field: Field | None = None
    numbers: tuple[int, ...] = ()
    base: str = SOUND

    @property
    def text(self) -> str:
        assert self.old in self.base, self.name
        return self.base.replace(self.old, self.new)


ARGUMENT = "(value if value is string else value | tojson)"
FAULTS = (
    Fault("tools never shown", "{%- if tools -%}", "{%- if tools and false -%}", Kind.TOOLS_LOST),
    Fault(
        "tools without a system turn only", "{%- if tools -%}", "{%- if tools and not system -%}",
        Kind.TOOLS_ONLY_WITHOUT_SYSTEM,
    ),
    Fault(
        "tools with a system turn only", "{%- if tools -%}", "{%- if tools and system -%}",
        Kind.TOOLS_ONLY_WITH_SYSTEM,
    ),
    Fault(
        "tools before the first result only", "{%- if tools -%}",
        "{%- if tools and messages[-1].role != 'tool' -%}", Kind.TOOLS_LOST_AFTER_RESULT,
    ),
    Fault("const dropped", " and not one.const", "", Kind.LOST, Field.CONST, (1,)),
    Fault(
        "definitions dropped", "{%- if held['$defs'] %}", "{%- if false %}", Kind.LOST, Field.REFERENCE, (1,)
    ),
    Fault(
        "a parameter needs a type", "{%- set plain =",
        "{%- set shouted = one.type.upper() -%}{%- set plain =", Kind.FAILS, Field.UNTYPED, (1,),
    ),
    Fault(
        "a developer is refused", "{%- for m in turns -%}",
        "{%- for m in turns -%}{%- if m.role == 'developer' %}{{ raise_exception('who?') }}{% endif -%}",
        Kind.REFUSED, Field.DEVELOPER, (1,),
    ),
    Fault(
        "the second system turn is refused", "{%- for m in turns -%}",
        "{%- for m in turns -%}{%- if m.role == 'system' %}{{ raise_exception('again?') }}{% endif -%}",
        Kind.REFUSED, Field.SECOND_SYSTEM, (1,),
    ),
    Fault(
        "tools are refused", "{%- if tools -%}", "{%- if tools -%}{{ raise_exception('no tools here') }}",
        Kind.TOOLS_REFUSED,
    ),
    Fault(
        "tools from a variable of its own", "{%- for tool in tools -%}",
        "{%- for tool in functions or [] -%}", Kind.NEEDS_FIELD, Field.TOOL_NAME, (1,),
    ),
    Fault(
        "first tool only", "{%- for tool in tools -%}", "{%- for tool in tools[:1] -%}",
        Kind.LOST, Field.TOOL_NAME, (2, 3),
    ),
    Fault(
        "descriptions of tools dropped", " ~ f.description", "",
        Kind.LOST, Field.TOOL_DESCRIPTION, (1, 2, 3, 4),
    ),
    Fault(
        "description as HTML", "': ' ~ one.description", "': ' ~ one.description | e",
        Kind.ALTERED, Field.PARAMETER_DESCRIPTION, (1, 2, 4),
    ),
    Fault("permitted values dropped", "{%- if one.enum %}", "{%- if false %}", Kind.LOST, Field.ENUM, (1,)),
    Fault(
        "required or not is not shown", "(', required' if name in required else '')", "''",
        Kind.LOST, Field.REQUIRED, (1,),
    ),
    Fault("types dropped", " ~ one.type ~ ", " ~ ", Kind.LOST, Field.TYPE, (1,)),
    Fault("system turn twice", "~ system -}}", "~ system ~ system -}}", Kind.DOUBLED, Field.SYSTEM, (1,)),
    Fault("system turn dropped", "~ system -}}", "-}}", Kind.LOST, Field.SYSTEM, (1,)),
    Fault(
        "system turn dropped beside tools",
        "(messages[0].content if messages[0].role == 'system' else '') -}}", "'' -}}",
        Kind.LOST, Field.SYSTEM, (1,), JSON,
    ),
    Fault(
        "later system turn dropped", "{%- for m in turns -%}",
        "{%- for m in turns if m.role != 'system' -%}", Kind.LOST, Field.LATER_SYSTEM, (2,),
    ),
    Fault(
        "later system turn refused", "{%- for m in turns -%}",
        "{%- for m in turns -%}"
        "{% if m.role == 'system' %}{{ raise_exception('system comes first') }}{% endif %}",
        Kind.REFUSED, Field.LATER_SYSTEM, (1,),
    ),
    Fault(
        "text of the user in capitals", "{%- else -%}\n{{- said(m.content) -}}",
        "{%- else -%}\n{{- said(m.content) | upper -}}", Kind.ALTERED, Field.USER, tuple(range(1, 12)),
    ),
    Fault(
        "line breaks become spaces", "{%- else -%}\n{{- said(m.content) -}}",
        "{%- else -%}\n{{- said(m.content) | replace('\\n', ' ') -}}",
        Kind.ALTERED, Field.USER, tuple(range(1, 12)),
    ),
    Fault(
        "the last four turns only", "{%- for m in turns -%}", "{%- for m in turns[-4:] -%}",
        Kind.LOST, Field.USER, tuple(range(1, 10)),
    ),
    Fault(
        "turns in reverse", "{%- for m in turns -%}", "{%- for m in turns | reverse -%}",
        Kind.OUT_OF_ORDER, Field.USER, tuple(range(2, 12)),
    ),
    Fault(
        "no text at all", "{%- for m in turns -%}", "{%- for m in [] -%}",
        Kind.EVERYTHING_LOST, Field.USER,
    ),
    Fault(
        "a field that is not sent", "~ m.role ~ '\\n' -}}", "~ m.role ~ m.meta.time ~ '\\n' -}}",
        Kind.NEEDS_FIELD, Field.USER, (1,),
    ),
    Fault(
        "answers dropped", "{{- m.content or '' -}}", "{{- m.content if m.tool_calls else '' -}}",
        Kind.LOST, Field.ANSWER, tuple(range(1, 11)),
    ),
    Fault("calls dropped", "in m.tool_calls or [] -%}", "in [] -%}", Kind.LOST, Field.CALL, (1, 2, 3)),
    Fault(
        "two calls are refused", "{%- for call in m.tool_calls or [] -%}",
        "{%- if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('one call') }}{% endif -%}"
        "{%- for call in m.tool_calls or [] -%}", Kind.REFUSED, Field.CALL, (2,),
    ),
    Fault(
        "arguments dropped", "in call.function.arguments | items -%}", "in {} | items -%}",
        Kind.LOST, Field.ARGUMENT_NAME, (1, 2, 3),
    ),
    Fault(
        "arguments as JSON text only", "call.function.arguments | tojson", "call.function.arguments + ''",
        Kind.TEXT_ARGUMENTS, Field.ARGUMENT, (1,), JSON,
    ),
    Fault(
        "results dropped", "~ said(m.content) ~ '\\n</tool_response>'", "~ '\\n</tool_response>'",
        Kind.LOST, Field.RESULT, (1, 2, 3),
    ),
    Fault(
        "results in reverse",
        "{%- set turns = messages[1:] if messages[0].role == 'system' else messages -%}",
        "{%- set turns = messages[1:] if messages[0].role == 'system' else messages -%}"
        "{%- if turns | length > 1 and turns[-1].role == 'tool' and turns[-2].role == 'tool' -%}"
        "{%- set turns = turns[:-2] + [turns[-1], turns[-2]] -%}{%- endif -%}",
        Kind.OUT_OF_ORDER, Field.RESULT, (2,),
    ),
    Fault(
        "reasoning before a call dropped", "{%- if m.reasoning_content %}",
        "{%- if m.reasoning_content and not m.tool_calls %}", Kind.LOST, Field.REASONING, (1,),
    ),
    Fault(
        "images dropped", "'<|image|>' if part.type == 'image' else part.text",
        "'' if part.type == 'image' else part.text", Kind.LOST, Field.IMAGE, (1,),
    ),
    Fault(
        "one image of several", "'<|image|>' if part.type == 'image' else part.text",
        "('<|image|>' if loop.index == 2 else '') if part.type == 'image' else part.text",
        Kind.LOST, Field.IMAGE, (2,),
    ),
)  # fmt: skip
