"""Faults of a seventh round around the model: servers and gateways, and the machine."""

from __future__ import annotations

from tests.faults.blind_g_steps import AtStart, BlocksMixed
from tests.faults.fault import Fault
from tests.faults.starting import Limited, Variable, Wire
from tests.faults.steps import Cut, Recorded, Weights

OLD_JINJA = """\
import jinja2

jinja2.__version__ = "3.1.2"
"""

ENGINE = (
    Fault(
        "g-first-call-has-index-one",
        "Streamed calls are counted from one, because a thought had the first place in what came before.",
        "engine",
        (Wire("index_from_one"),),
        bitten="LiteLLM's bridge to the Responses API, pipecat 4987",
    ),
    Fault(
        "g-names-become-nothing",
        "A later piece of a streamed call says that its name and its id are null.",
        "engine",
        (Wire("names_nulled"),),
        bitten="opencode 43328",
    ),
    Fault(
        "g-limit-by-its-new-name-unheard",
        "max_completion_tokens is dropped on the way: the server knows max_tokens alone.",
        "engine",
        (Wire("limit_by_its_new_name"),),
        bitten="gateways from before the newer name",
    ),
    Fault(
        "g-parts-as-text",
        "What is said in parts reaches the template as the text of a Python list.",
        "engine",
        (Wire("parts_as_text"),),
        bitten="servers that take content for text",
    ),
    Fault(
        "g-long-streams-closed",
        "A proxy closes a stream after a while, without a reason and without [DONE].",
        "engine",
        (Wire("cut_by_a_clock"),),
        bitten="proxy_read_timeout and its like",
    ),
    Fault(
        "g-thoughts-within-the-text",
        "A gateway puts thoughts between tags in front of the text.",
        "engine",
        (Wire("thoughts_within_the_text"),),
        bitten="LiteLLM's merge_reasoning_content_in_choices",
    ),
    Fault(
        "g-no-arguments-as-empty-text",
        "A call without arguments has an empty text in place of {}.",
        "engine",
        (Wire("no_arguments_at_all"),),
        bitten="bridges from interfaces in which arguments may be missing",
    ),
    Fault(
        "g-one-stop-string-of-several",
        "Of several stop strings the gateway passes on the first.",
        "engine",
        (Wire("one_stop_string"),),
    ),
    Fault(
        "g-streams-begun-again",
        "A gateway asks once more in the middle of a stream: the first words come twice.",
        "engine",
        (Wire("begun_again"),),
        base="qwen3coder",
        bitten="fallbacks in the middle of a stream",
    ),
)

ENVIRONMENT = (
    Fault(
        "g-temporary-folder-gone",
        "TMPDIR names a folder that is not there: the engine cannot write what it compiles.",
        "environment",
        (Variable("TMPDIR", "/nonexistent/tmp"),),
        bitten="jobs of Slurm whose folder was cleared",
    ),
    Fault(
        "g-jinja-too-old",
        "Another package brought an older jinja2 into the environment: no template is rendered.",
        "environment",
        (AtStart(OLD_JINJA),),
        mend="jinja2",
        bitten="apply_chat_template requires jinja2>=3.1.0",
    ),
    Fault(
        "g-processor-time-limited",
        "The engine's process may use some seconds of processor time, and is killed behind them.",
        "environment",
        (Limited("RLIMIT_CPU", 6),),
        bitten="ulimit -t on shared hosts",
    ),
    Fault(
        "g-generation-config-cut-short",
        "generation_config.json is there by half: nobody knows the token that ends a call.",
        "environment",
        (Cut("generation_config.json", 0.5), Recorded()),
        base="glm",
        bitten="a download that was broken off; mlx-lm goes on without the file",
    ),
    Fault(
        "g-blocks-in-the-wrong-place",
        "A copy wrote blocks of the weights over each other; length and header are right.",
        "environment",
        (BlocksMixed(4096, ((30, 60), (31, 61), (50, 20), (51, 21), (70, 44))), Recorded()),
        mend="weights",
        bitten="rsync --inplace that was broken off",
    ),
    Fault(
        "g-weights-of-a-later-training",
        "After the import a training wrote its weights into the folder that is served.",
        "environment",
        (Weights("declines"), Recorded()),
        bitten="a run whose output folder is the model's",
    ),
    Fault(
        "g-warnings-are-errors",
        "PYTHONWARNINGS makes every warning an error, as on a machine for tests.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
)
