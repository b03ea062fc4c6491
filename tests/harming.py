"""What means harm, in words that a file can hold, and the command line that it is given to."""

from __future__ import annotations

TOKEN = "hf_thisTokenMustNeverLeave"
CONFIG = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Sets a terminal's title, clears it, colours it by a one-byte sequence, turns the writing direction around.
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028\x85"
INJECTION = f"x\n- injected: true # {ESCAPES}"


def calm(text: str) -> bool:
    """Whether a terminal would only print it."""
    return all(c.isprintable() or c == "\n" for c in text)
