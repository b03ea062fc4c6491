"""Faults of the round in gateways and servers, and in the machine, its Python and its disk."""

from __future__ import annotations

from tests.faults.blind_h_steps import Customised
from tests.faults.fault import Fault
from tests.faults.rebuilt import Hole
from tests.faults.starting import Limited, Module, Variable, Wire
from tests.faults.steps import Recorded

NUMPY = """raise ImportError(
    "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.4.6 as it may crash. "
    "numpy.core.multiarray failed to import"
)
"""
CLOCK = """import time
now = time.time
time.time = lambda: now() % 86400
"""

GATEWAYS = (
    Fault(
        "h-gateway-masks-arguments",
        "A guardrail hides names from the engine, and puts them back into text, but not into calls.",
        "engine",
        (Wire("entities_masked"),),
        bitten="LiteLLM 31950",
    ),
    Fault(
        "h-gateway-cache-by-likeness",
        "A gateway's cache answers a question as it answered one of nearly the same words.",
        "engine",
        (Wire("alike_remembered"),),
    ),
    Fault(
        "h-gateway-begins-anew",
        "A gateway tries a broken stream again, and the client gets its beginning twice.",
        "engine",
        (Wire("begun_anew"),),
        bitten="NuGuard 455",
    ),
    Fault(
        "h-gateway-joins-events",
        "A gateway's filter drops empty lines, and the events of a stream run together.",
        "engine",
        (Wire("events_run_together"),),
    ),
    Fault(
        "h-gateway-ends-otherwise",
        "A gateway tells why an answer ends in another interface's words.",
        "engine",
        (Wire("ends_in_another_interface"),),
    ),
    Fault(
        "h-gateway-with-an-old-replica",
        "Of two replicas one was not restarted, and reads no calls: every second answer has them as text.",
        "engine",
        (Wire("calls_of_the_old_replica"),),
    ),
    Fault(
        "h-gateway-quota",
        "The manager of interfaces has the engine in a plan of ten chats a minute.",
        "engine",
        (Wire("quota_of_a_trial"),),
    ),
    Fault(
        "h-gateway-tells-escapes",
        "A gateway writes JSON within JSON: letters beyond ASCII come out as escapes.",
        "engine",
        (Wire("escapes_told"),),
    ),
    Fault(
        "h-gateway-drops-thoughts",
        "A gateway drops the thoughts of an answer, which its model of answers lacks.",
        "engine",
        (Wire("thoughts_dropped"),),
    ),
)
MACHINES = (
    Fault(
        "h-warnings-are-errors",
        "The service's environment makes errors of Python's warnings, as a test run's does.",
        "environment",
        (Variable("PYTHONWARNINGS", "error"),),
    ),
    Fault(
        "h-numpy-of-another-release",
        "An upgrade left a NumPy that the other packages were not built for.",
        "environment",
        (Module("numpy", NUMPY),),
    ),
    Fault(
        "h-log-may-not-grow",
        "A limit of the size of files ends the engine's log, and every answer that would write to it.",
        "environment",
        (Limited("RLIMIT_FSIZE", 8000),),
    ),
    Fault(
        "h-processor-time-ends",
        "A shared machine ends processes that have computed for a while.",
        "environment",
        (Limited("RLIMIT_CPU", 4),),
    ),
    Fault(
        "h-clock-at-the-epoch",
        "The machine's clock stands at its beginning, in 1970.",
        "environment",
        (Customised(CLOCK),),
    ),
    Fault(
        "h-temporary-folder-cleared",
        "The service's folder for temporary files was cleared away with the account that had it.",
        "environment",
        (Variable("TMPDIR", "/var/tmp/engine-of-a-former-account"),),
    ),
    Fault(
        "h-end-never-written",
        "After the import a restored backup has weights of the full length whose end is empty.",
        "environment",
        (Hole(0.72, 1.0), Recorded()),
    ),
)
FAULTS = (*GATEWAYS, *MACHINES)
