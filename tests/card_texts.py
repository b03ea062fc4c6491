"""Model cards in the manner of several vendors, in words of our own."""

SWITCHING = """\
---
license: apache-2.0
pipeline_tag: text-generation
---
# Switcher-8B

## Quickstart
```python
generated = model.generate(**inputs, max_new_tokens=32768)
```

### `enable_thinking=True`
> [!NOTE]
> In thinking mode, use `Temperature=0.6`, `TopP=0.95`, `TopK=20`, and `MinP=0` (these are the defaults).
> **DO NOT decode greedily**: greedy decoding, that is `temperature=0`, ends in endless loops.

### `enable_thinking=False`
> [!NOTE]
> For non-thinking mode we suggest `Temperature=0.7`, `TopP=0.8`, `TopK=20`, and `MinP=0`.

## Best Practices
For the best results, we recommend these settings:

1. **Sampling Parameters**:
   - Thinking mode (`enable_thinking=True`): `Temperature=0.6`, `TopP=0.95`, `TopK=20`, `MinP=0`.
   - Non-thinking mode (`enable_thinking=False`): `Temperature=0.7`, `TopP=0.8`, `TopK=20`, `MinP=0`.
   - Where supported, you may move `presence_penalty` between 0 and 2 against repetitions.
     At 1.5 it may mix languages.
2. **Output Length**: We recommend an output length of 32,768 tokens for most questions. For benchmarks in
   maths and programming, we suggest a max output length of 38,912 tokens.
"""

BY_TASK = """\
# Tasks-27B
## Best Practices
1. **Sampling Parameters**: we suggest a set for each mode and kind of task:
   - **Thinking mode for general tasks**: `temperature=1.0, top_p=0.95, top_k=20, presence_penalty=1.5`
   - **Thinking mode for precise coding (e.g. HTML)**: `temperature=0.6, top_p=0.95, presence_penalty=0.0`
   - **Instruct (or non-thinking) mode for general tasks**:
     `temperature=0.7, top_p=0.8, presence_penalty=1.5`
   - **Instruct (or non-thinking) mode for reasoning tasks**:
     `temperature=1.0, top_p=1.0, presence_penalty=2.0`
"""

RANGE = """\
# Reasoner
## 3. Evaluation Results
Wherever sampling is required we use a temperature of $0.9$, a top-p value of $0.7$ and 64 answers.

## 5. How to run it
### Usage Recommendations
**We recommend the following when you work with this series, benchmarking included:**

1. Set the temperature within the range of 0.5-0.7 (0.6 is recommended), or it repeats itself without end.
2. Avoid a system prompt.
"""

ONE_LINE = """\
# Mini-12B
> [!IMPORTANT]
> This one wants smaller temperatures. We recommend a temperature of 0.3.
"""

EQUALS = """\
# Grouper
We recommend these parameters for best performance: `temperature=1.0`, `top_p = 0.95`, `top_k = 40`.
Default system prompt:
```
You are helpful.
```
"""

COLONS = """\
# Colons
**Generation parameters**: We advise:

* `temperature`: 0.3
* `min_p`: 0.15
* `repetition_penalty`: 1.05
* **Top-p:** 0.9
"""

TABLE_OF_MODES = """\
# Table
## Recommended settings
| Parameter | Thinking | Non-thinking |
|:----------|---------:|-------------:|
| temperature | 0.6 | 0.7 |
| `top_p` | 0.95 | 0.8 |
| license | MIT | MIT |
"""

TABLE_OF_PARAMETERS = """\
# Table
We suggest the following sampling parameters:

| Mode | Temperature | Top P | Top K |
|---|---|---|---|
| Thinking mode | 1.0 | 0.95 | 20 |
| Non-thinking mode | 0.7 | 0.8 | 20 |
"""

BEHIND = """\
# Instant
The recommended temperature will be `1.0` for Thinking mode and `0.6` for Instant mode.
The recommended `top_p` is `0.95`.
"""

ON_AND_OFF = """\
# Onoff
## Recommendations
1. The system prompt turns reasoning on and off
2. We recommend temperature `0.6`, and Top P `0.95`, for Reasoning ON mode
3. We recommend greedy decoding for Reasoning OFF mode
"""

CONDITIONS = """\
# Conditions
> - For reasoning mode we recommend `temperature=0.6` and `top_p=0.95`.
>     - If it repeats itself, we recommend `presence_penalty=1.5`.
> - For non-reasoning mode we recommend a low temperature such as `temperature<0.6`.
"""

INSTEAD = """\
# Instead
## Usage Guidelines
- Use Temperature=0.6, TopP=0.95 instead of greedy decoding to avoid loops.
- Use TopK between 20 and 40 to filter out rare tokens.
- Never set repetition_penalty=1.2.
"""

EXAMPLES = """\
# Examples
```python
llm = LLM(model="acme/examples")
params = SamplingParams(temperature=0.7, top_p=0.8, repetition_penalty=1.05, max_tokens=512)
```
```python
text = model.generate(**inputs, do_sample=True, temperature=0.7)
```
```bash
curl localhost:8000/v1/chat/completions -d '{"messages": [], "top_k": 20}'
```
"""

TRAINING = """\
# Trained
## Training
We recommend a temperature of 0.5 for distillation.
```python
TrainingArguments(learning_rate=2e-5); model.generate(temperature=0.1)
```
## Model Evaluation
| benchmark | temperature |
|---|---|
| maths | 0.4 |
"""

CONTRADICTION = """\
# Two minds
We recommend a temperature of 0.6. For chat, we suggest a temperature of 0.8.
"""

HEADER = """\
---
license: mit
inference:
  parameters:
    temperature: 0.5
    repetition_penalty: 1.1
    max_new_tokens: 200
---
# Header
We recommend a temperature of 0.8.
"""
