"""Chat templates written for these tests, one per style of wire format."""
# ruff: noqa: E501 - a template is one long text

TURNS = """
{%- for m in messages %}
{%- if m.role == 'assistant' and m.tool_calls %}
{{- '<|im_start|>assistant\\n' + (m.content or '') }}
{%- for c in m.tool_calls %}
{{- ('\\n' if m.content or not loop.first else '') }}CALL
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
OFFER = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"

CHATML_JSON = OFFER + TURNS.replace(
    "CALL",
    """{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments | tojson) """
    """+ '}\\n</tool_call>' }}""",
)

XML_PARAMETERS = OFFER + TURNS.replace(
    "CALL",
    """{{- '<tool_call>\\n<function=' + c.function.name + '>\\n' }}
{%- for key, value in c.function.arguments | items %}
{{- '<parameter=' + key + '>\\n' + (value if value is string else value | tojson) + '\\n</parameter>\\n' }}
{%- endfor %}
{{- '</function>\\n</tool_call>' }}""",
)

ARGUMENTS_AS_TEXT = OFFER + TURNS.replace(
    "CALL", """{{- '<call>' + c.function.name + ' ' + c.function.arguments + '</call>' }}"""
)

PYTHONIC = OFFER + TURNS.replace(
    "CALL",
    """{{- '<call>' + c.function.name + '(' }}
{%- for key, value in c.function.arguments | items %}
{{- key + '=' }}{{ '"' + value + '"' if value is string else value }}{{ ', ' if not loop.last else '' }}
{%- endfor %}
{{- ')</call>' }}""",
)

KIMI_IDS = OFFER + TURNS.replace(
    "CALL",
    """{{- '<|call_begin|>' + c.id + '<|call_args|>' + (c.function.arguments | tojson) + '<|call_end|>' }}""",
)

NULL_CONTENT = (
    OFFER
    + """
{%- for m in messages %}
{%- if m.role == 'assistant' and m.content is none %}
{{- '<|im_start|>assistant\\n<call>' + m.tool_calls[0].function.name + (m.tool_calls[0].function.arguments | tojson)
    + '</call><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
)

HEADERS = """{{ bos_token }}
{%- for m in messages %}
{%- if m.role == 'assistant' and m.tool_calls %}
{%- if m.tool_calls | length > 1 %}{{ raise_exception('one call at a time') }}{% endif %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' + m.tool_calls[0].function.name
    + '", "parameters": ' + (m.tool_calls[0].function.arguments | tojson) + '}<|eom_id|>' }}
{%- else %}
{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' }}
{%- if m.role == 'user' and loop.first and tools %}{{- 'Tools: ' + (tools | tojson) + '\\n' }}{% endif %}
{{- m.content + '<|eot_id|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

INST = """{{ bos_token }}
{%- for m in messages %}
{%- if m.role == 'user' %}
{%- if tools and loop.last %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{% endif %}
{{- '[INST]' + m.content + '[/INST]' }}
{%- elif m.role == 'tool' %}{{- '[TOOL_RESULTS]' + m.content + '[/TOOL_RESULTS]' }}
{%- elif m.tool_calls %}
{{- '[TOOL_CALLS][' }}
{%- for c in m.tool_calls %}
{%- if c.id | length != 9 %}{{ raise_exception('ids have nine characters') }}{% endif %}
{{- '{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments | tojson) + ', "id": "' + c.id + '"}' }}
{{- ', ' if not loop.last else '' }}
{%- endfor %}
{{- ']' + eos_token }}
{%- elif m.role == 'assistant' %}{{- m.content + eos_token }}
{%- else %}{{ raise_exception('roles are user, tool and assistant') }}
{%- endif %}
{%- endfor %}"""

CHANNELS = """
{%- for m in messages %}
{%- if m.role == 'assistant' %}
{%- if m.thinking %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}
{%- if m.tool_calls %}
{%- set f = m.tool_calls[0].function %}
{{- '<|start|>assistant to=functions.' + f.name + '<|channel|>commentary<|message|>' + (f.arguments | tojson)
    + '<|call|>' }}
{%- else %}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}
{%- endif %}
{%- else %}{{- '<|start|>' + m.role + '<|message|>' + (m.content | tojson) + '<|end|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{% endif %}"""

ALTERNATING = """
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + m.content + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{% endif %}"""

# Turns must alternate, the first system turn goes into the user's, parts of the content may be images.
IMAGES = """{{- bos_token }}
{%- set turns = messages[1:] if messages[0].role == 'system' else messages %}
{%- set head = messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' %}
{%- for m in turns %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + (head if loop.first else '') }}
{%- if m.content is string %}{{ m.content | trim }}
{%- else %}{% for part in m.content %}{{ '<start_of_image>' if part.type == 'image' else part.text | trim }}{% endfor %}
{%- endif %}
{{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{% endif %}"""

ENDS_WITH_USER = """
{%- if messages[-1].role != 'user' %}{{ raise_exception('the last turn is the user\\'s') }}{% endif %}
{%- for m in messages %}
{{- '<|' + m.role + '|>' + m.content + ('</s>' if m.role == 'assistant' else '') }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% endif %}"""

PARTS_ONLY = """
{%- for m in messages %}
{{- '<|' + m.role + '|>' }}{% for part in m.content %}{{ part.text }}{% endfor %}{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% endif %}"""

REFUSES_TOOLS = "{% if tools %}{{ raise_exception('this model has no tools') }}{% endif %}" + ALTERNATING

ALWAYS_OPENS = """
{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}
{{- '<|im_start|>assistant\\n' }}"""

THINKING = """
{%- set last = namespace(user=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and loop.index0 > last.user %}
{{- '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}
{%- endif %}
{{- m.content }}
{%- for c in m.tool_calls or [] %}
{{- '<tool_call>\\n' + ({'name': c.function.name, 'arguments': c.function.arguments} | tojson) + '\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
PROMPT
{%- endif %}"""
SWITCHED = THINKING.replace(
    "PROMPT", "{%- if enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)
OPENED = THINKING.replace("PROMPT", "{{- '<think>\\n' }}")
OPENED_ON_DEMAND = THINKING.replace(
    "PROMPT", "{{- '<think>\\n' if enable_thinking | default(false) else '<think>\\n\\n</think>\\n\\n' }}"
)
EFFORT = THINKING.replace(
    "PROMPT",
    "{%- set effort = reasoning_effort if reasoning_effort is defined else 'no_think' %}"
    "{{- '<think></think>' if effort == 'no_think' else '<think>' if effort in ['low', 'high'] else '' }}",
)
UNSAID = THINKING.replace(
    "PROMPT",
    "{%- if enable_thinking is defined %}"
    "{{- '<think>\\n' if enable_thinking else '<think>\\n\\n</think>\\n\\n' }}{% endif %}",
)
OTHER_NAME = THINKING.replace(
    "PROMPT", "{%- if quick_reply %}{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)

CHATML = TURNS.replace("CALL", "")

STRIPS = """
{%- for m in messages %}
{%- set text = m.content.split('</think>')[-1] if m.role == 'assistant' else m.content %}
{{- '<|im_start|>' + m.role + '\\n' + text + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

STRIPS_AND_OPENS = STRIPS.replace("assistant\\n' }}{% endif %}", "assistant\\n<think>\\n' }}{% endif %}")
