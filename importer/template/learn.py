"""Learn what a template writes: render every case, and cut out what the model itself would write."""

from __future__ import annotations

from importer.template import answers, calls, thinking, turns
from importer.template.bench import Bench
from importer.template.render import Renders
from importer.template.source import Template
from importer.template.study import Study
from importer.template.vocabulary import Vocabulary


def learn(template: Template, vocabulary: Vocabulary, renderer: Renders) -> Study:
    """All that rendering shows; what the template refuses is a problem with its reason, never an error."""
    bench = Bench(template, vocabulary, renderer)
    form = calls.find_form(bench)
    thought = thinking.study_thinking(bench)
    called = calls.study_calls(bench, thought)
    spoken = answers.study_answers(bench, thought)
    return Study(
        digest=template.digest,
        samples=(*called.samples, *spoken.samples),
        thinking=thought,
        tools_rendered=called.tools_rendered,
        calls_rendered=called.calls_rendered,
        tools_prompt=called.tools_prompt,
        end_of_turn=bench.end_of_turn,
        next_turns=() if bench.end_of_turn else turns.next_turns(bench),
        problems={
            **called.problems,
            **spoken.problems,
            **({"template": bench.unsafe} if bench.unsafe is not None else {}),
        },
        form=form,
    )
