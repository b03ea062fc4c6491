"""Faults of round l whose part is ``environment``."""

from __future__ import annotations

from tests.faults.blind_l_machine_steps import Changed
from tests.faults.blind_l_steps import HalfCopied
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Module, Variable
from tests.faults.steps import Recorded, Text

CONFLICT = (
    "{{- '<|im_start|>' ~ message.role ~ '\\n' -}}",
    (
        "\n<<<<<<< HEAD\n  {{- '<|im_start|>' ~ message.role ~ '\\n' -}}\n"
        "=======\n  {{- '<|im_start|>' ~ message.role ~ ':\\n' -}}\n>>>>>>> origin/main\n"
    ),
)

FAULTS = (
    Fault(
        "l-warnings-are-errors",
        "A variable makes Python's warnings errors, and the server ends at one of its own.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
    Fault(
        "l-jinja-too-old",
        "Jinja in the environment is older than the filter that the template uses, and no chat is answered.",
        "environment",
        (Changed("jinja2.filters", "FILTERS.pop('items')"),),
        base="qwen3coder",
        bitten="jinja2 3.0: No filter named 'items'",
    ),
    Fault(
        "l-ranks-left-over",
        "Variables of an earlier run on two machines are still set, and the server waits or ends.",
        "environment",
        (Variable("MLX_RANK", "0"), Variable("MLX_HOSTFILE", "/tmp/hosts-of-last-week.json")),
        bitten="users of mlx.launch",
    ),
    Fault(
        "l-few-files",
        "A container may open 1024 files, fewer than the engine asks for, and it ends at its start.",
        "environment",
        (Limited("RLIMIT_NOFILE", 1024),),
    ),
    Fault(
        "l-seconds-of-processor",
        "The machine ends processes that have used some seconds of its processor.",
        "environment",
        (Limited("RLIMIT_CPU", 12),),
        bitten="login nodes of clusters",
    ),
    Fault(
        "l-merge-conflict",
        "A pull left marks of a conflict in the template, and both versions of each turn.",
        "environment",
        (Text(*CONFLICT), Recorded()),
    ),
    Fault(
        "l-module-shadowed",
        "A file queue.py of the user's is found before Python's own, and the server does not start.",
        "environment",
        (Module("queue", "jobs = []\n\n\ndef add(job):\n    jobs.append(job)\n"),),
    ),
    Fault(
        "l-half-copied",
        "A copy of newer weights over these stopped midway; the file holds parts of both.",
        "environment",
        (HalfCopied("qwen3coder", 0.6), Recorded()),
        bitten="rsync --inplace",
    ),
)
