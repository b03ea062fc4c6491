"""Sentences about what goes wrong around the probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from importer.messages.signals import KINDS

if TYPE_CHECKING:
    from importer.messages import Text


VALIDATION: dict[str, dict[str, Text]] = {
    "AnswerFailure": {
        "unreachable": "the connection failed: {problem}",
        "timed-out": "no whole answer within {seconds:.0f} s",
        "refused": "the engine answered {status}: {says}",
        "overloaded": "the server refuses for load, also after {seconds:.0f} s: {status}, {says}",
        "reports-error": "the engine reports an error: {says}",
        "died": "the engine died: {says}",
        "answered-again": "sent again, the same request was answered",
        "log-lacks": "its log: {lacking}",
        "log-raised": "its log: {raised}",
        "template-refuses": "the chat template refuses it: {says}",
    },
    "JournalReason": {
        "log-gone": "its log is gone",
    },
    "PromiseReason": {
        "not-offered": lambda fields: (
            f"{fields.get('engine') or 'the engine'} does not offer: {', '.join(fields['names'])}"
        ),
        "offer-unknown": "nobody knows whether the engine offers it",
        "base-model": "a base model completes text and does not chat",
        "no-tool-parser": "the document names no tool parser",
        "no-reasoning-parser": "the document names no reasoning parser",
        "no-context": "the document names no longest context",
        "other-task": lambda fields: f"{KINDS[fields['of']]} does something else",
    },
    "CommonReason": {
        "template-in": "the chat template in use is that of {place}",
        "result-unseen": "the tool's result does not reach the prompt: a longer one makes it no longer",
        "tools-unseen": "the tools do not reach the prompt: a second one makes it no longer",
        "thought-unread": "the model thinks and no parser takes the thoughts",
        "call-unread": "the model wrote a call that no parser took",
        "still-writing": "the model was still writing at the limit of tokens",
        "next-turn": "the answer does not end: it goes on into another turn",
        "goes-on": "the answer does not end: the model writes {token} and the engine goes on",
        "nothing-arrived": "the model wrote {tokens} tokens and nothing of them arrived",
        "not-counted": "the engine does not count the prompt's tokens",
        "at-limit": "the answer came to the limit of tokens",
        "turns-unseen": "earlier turns do not reach the prompt",
        "answered": "answered {content!r}",
        "empty": "the answer is empty",
        "not-stopped": "finish_reason is {finish_reason!r}, not 'stop'",
        "not-rendered": "nobody can tell what the template writes",
        "given-twice": "the answer is given twice, as reasoning and as content",
        "still-thinking": "the model was still thinking at the limit of tokens",
        "no-thought": "the model answered without a thought",
        "done-before": "the model was done before the limit",
        "prompt-changed": "the tokenizer makes {changed!r} of the prompt",
        "other-merges": "{unmade} of {sampled} words of the vocabulary are more than one token, such as {example!r}: the merges are in another order, or some are gone",
        "thinking-marker": "the thinking marker {marker} is in the {place}",
        "not-proved": "the template beside the weights is not the one that was proved",
        "no-template": "there is no chat template beside the weights",
        "whole-is-right": "the whole answer is right",
        "refused-cleanly": "refused cleanly: {error}",
        "unended": "by itself the model ends no thought here",
        "not-asked": "not asked: {why}",
        "no-tokenizer": "there is no tokenizer.json that could be asked",
        "tokenizer-away": lambda fields: (
            f"tokenizer.json of {fields['model']} is not on this disk"
            + (
                f"; the Hub client's download of commit {fields['revision']} has it"
                if fields["revision"]
                else ""
            )
        ),
        "tokenizer-unread": "tokenizer.json is here, and no engine is installed whose library reads it",
        "chat-is-right": "/v1/chat/completions is right",
        "tools-left-out": "the tools do not reach the prompt: {here} tokens instead of {chat}",
    },
    "BlameReason": {
        "another-read": "the template would render it, and the engine reads another one",
        "left-out": "the model's template renders it, and the engine leaves it out",
        "other-numbers": "{key} {value} has the model reckon with other numbers than its own",
        "thought-unended": "here the model itself does not end its thought",
        "listed": "told of the same tools in another form, the model calls them",
        "retold": "the model writes {own!r}, and its template tells that as {told!r} later",
        "no-whole-call": "in its template's own format the model writes no whole call",
    },
    "ControlReason": {
        "package-unfit": "{package} asks for {requirement}, and the engine's environment has {installed}",
        "passes-without": "a second start without {setting} passes, and one with it does not",
    },
    "SpoiltReason": {
        "passes-without": "without {name} {value:g} it passes",
    },
    "LimitReason": {
        "cut-thoughts": "no reasoning parser of {engine} that reads this model's thoughts reads a cut one",
        "in-pieces": "no tool parser of {engine} that reads this model's calls reads all of them in pieces",
    },
    "SilenceReason": {
        "no-answers": "not asked: {probes} probes before it had no answer within {seconds:g} s",
        "time-is-up": "not asked: the time limit of the validation is over",
        "bytes-spent": "not asked: the answers of the validation have {limit:,} bytes already",
    },
    "ClientReason": {
        "not-json": "the answer of {path} is not JSON",
        "too-large": "the answer is larger than {limit} bytes",
    },
    "RequestHeaderReason": {
        "not-a-name": "has no valid name",
        "reserved": "belongs to the request itself",
        "no-value": "has no value",
        "not-a-value": "has a value that is not one line of printable ASCII",
        "twice": "is given twice",
        "beside-key": "is given beside a key, which is sent under this name",
    },
    "ReplyReason": {
        "call-nulled": "a piece of a streamed call has null for {key!r}, which belongs left out",
        "events-joined": "no empty line stands between the events of a stream",
        "goes-on": "the stream goes on after [DONE]",
        "cut": "the stream was cut before its end",
        "too-long": "the texts of the answer have more than {limit:,} characters",
        "not-json": "the engine sent what is not JSON: {start!r}",
        "not-object": "{part} is not an object",
        "no-choices": "what has no list of choices stands for an answer or a piece of one: {start}",
        "no-choice": "the answer has no choice",
        "not-text": "`{key}` is not text",
        "calls-no-list": "`tool_calls` is not a list",
        "call-without-index": "a streamed tool call has no index",
        "calls-miscounted": "streamed tool calls have the indexes {places}, and none is {missing}",
        "no-number": "`{key}` is not a number of tokens",
        "logprobs-no-list": "`logprobs.content` is not a list",
    },
    "EventReason": {
        "too-large": "an event of the stream is larger than {limit} bytes",
        "not-utf8": "the stream is not UTF-8",
    },
    "MessagesReason": {
        "not-a-message": "the answer is no message of the assistant: {words}",
        "no-blocks": "the message has no list of blocks",
        "event-name": "an event's name is not its type, and Anthropic's clients go by it",
        "no-stop": "the stream ended without message_stop",
        "wrong-place": "{event} came at the wrong place of the stream",
        "wrong-index": "{name} has the index {index!r}, not {expected}",
        "wrong-block": "a {delta} is in a block of {block}",
        "block-not-object": "a block of the message is not an object",
        "input-not-object": "the input of a tool is not an object: {given}",
        "not-json": "the engine sent what is not JSON",
        "not-object": "the engine sent what is not an object",
        "field-not-object": "`{key}` of {part} is not an object",
        "field-not-text": "`{key}` of a block is not text",
    },
    "ResponsesReason": {
        "not-a-response": "the answer is no response: {words}",
        "no-output": "the response has no list of items, or an item no list of parts",
        "no-item-id": "an item of the output has no id: {item}",
        "event-name": "an event's name is not its type",
        "not-begun": "the stream begins with {event}, not with response.created",
        "not-ended": "the stream ended without response.completed",
        "goes-on": "{event} came after the end of the response",
        "wrong-number": "an event has the sequence number {number}, and the one before it {before}",
        "other-response": "{event} names another response",
        "wrong-index": "an item has the output_index {index!r}, not {expected}",
        "other-item": "{event} names another item than its output_index",
        "item-closed": "{event} came after the end of its item",
        "item-open": "the response ended before its item {index}",
        "pieces-differ": "the pieces before {event} do not add up to it",
        "end-differs": "the {part} of the whole response at the end is not what was streamed",
        "unnumbered": "no event has a sequence number",
    },
    "OwnReason": {
        "answer": "{text}",
    },
}


VALIDATION_CALLS: dict[str, dict[str, Text]] = {
    "CallReason": {
        "call-in-content": "the call was read, but its text is still in the content: {remains!r}",
        "not-finished": "finish_reason is {finish_reason!r}, not 'tool_calls'",
        "letters-changed": "letters changed on the way: {arguments!r}",
        "asks-other": "the call asks for something else: {arguments}",
        "called": "{name} {arguments}",
        "no-good-call": "there is no good call to go on from: see tool-call",
        "arrived-as": "the model wrote a call and it arrived as {place}: {quote!r}",
        "lost": "finish_reason says tool_calls and there is none: the parser lost it",
        "old-field": "the call came as {field}, which clients have not read since there are several",
        "no-call": "the model answered without a call",
        "name-holds-more": "the call's name holds more than a name: {name!r}",
        "not-offered": "the model called {name!r}, which it was not offered",
        "no-id": "the call has no id, so no result can be given for it",
        "not-json": "the arguments are not JSON: {arguments!r}",
        "encoded-twice": "the arguments are encoded twice: {arguments!r}",
        "text-for-value": "a value is text where it is not meant to be: {message}",
        "argument-lost": "the model wrote {lost!r}, and the call arrived without it",
        "unfit": "the arguments do not fit the tool's schema: {problem}",
    },
    "CallsKeptReason": {
        "calls-unseen": "earlier calls do not reach the prompt: a longer one makes it no longer",
        "null-is-no-text": "null is no text",
        "null-is-text": (
            "a call's turn whose content is null makes {null} tokens of prompt, one without text {empty}"
        ),
        "other-form": "the template writes a call's arguments as {form}: {quote!r}; the model does not",
        "kept": "earlier calls reach the prompt",
    },
    "CutCallReason": {
        "not-counted": "the engine does not count the tokens of a call",
        "says-cut": "the answer says that it was cut",
        "half": "half a call is given out as a whole one: {arguments!r}",
        "whole": "the call was whole before the cut",
        "not-said": "the call was cut, and finish_reason says {finish_reason!r}",
    },
    "InventedToolReason": {
        "none": "no call of a tool that was not offered",
        "not-written": "{name!r} was called; nobody offered it and the model did not write it",
        "written": "{name!r} was called and nobody offered it",
    },
    "LaterTurnsReason": {
        "calls": "calls after {lengths} lengths of history",
    },
    "NoToolNeededReason": {
        "calls": "the model calls {name} to say hello",
    },
    "ParallelCallsReason": {
        "shared": "{count} calls share an id or an index",
        "arrived": "{count} calls: {names}",
        "lost": "the model wrote a call for {name} and it did not arrive",
        "one-at-a-time": "the model calls one tool at a time",
    },
    "ToolChoiceReason": {
        "required": "a call was required",
        "named": "{name} was named",
        "at-limit": "{asked}, and the answer came to the limit of tokens",
        "none-came": "{asked}, and none came: {content!r}",
        "other-called": "{asked}, and {called} was called",
        "called": "{asked}: {called}",
        "forbidden-called": "tools were forbidden, and {name} was called",
        "forbidden-kept": "tools were forbidden: no call",
        "parser-rejects": "the parser {parser} rejects a required or named tool choice",
    },
    "ToolResultReason": {
        "other-order": (
            "of two results the engine's answer tells {here}, and the model {there} by its template"
        ),
        "one-of-two": "of the results of two calls only one reaches the prompt",
        "calls-again": "the model calls the tool again",
        "not-used": "the answer does not use the result: {text!r}",
    },
    "ToolsInPromptReason": {
        "seen": "a second tool makes the prompt longer",
        "shown-later": "later questions show the tools as well",
        "not-shown-later": (
            "once a tool has answered, the template shows no tools any more: a second one changes nothing"
        ),
    },
    "TypedArgumentsReason": {
        "pointed": "a whole number arrives as {number}, and the model did not write it so",
    },
}


VALIDATION_ANSWERS: dict[str, dict[str, Text]] = {
    "PlainChatReason": {
        "begins-a-call": "the model begins a call to say hello",
        "dated": "an answer is of {day} by the clock of the server",
        "call-not-offered": "a tool call arrived where no tool was offered",
        "all-reasoning": "content is empty: the whole answer arrived as reasoning",
        "no-word": "the model ended its turn without a word",
    },
    "CompletionReason": {
        "chats": "the model chats",
        "nothing": "the model had nothing to add",
        "went-on": "went on {text!r}",
    },
    "SimpleAnswersReason": {
        "right": "{right} of {asked} are right",
        "unbroken": "the template begins an answer without the {rest!r} that stands before earlier ones",
        "wrong": "{missed} of {asked} simple questions are answered wrong",
        "unknown-marker": "the template's {marker} is no token of the tokenizer's",
        "other-form": "in turns of {form} all of them are right",
        "unopened": "behind {opening!r} all of them are right, and the template does not write it",
        "right-by-itself": "behind the same text the weights answer right, where no chat is asked for",
        "gap": "counting to ten, the model leaves out {gap!r} and goes on",
    },
    "HistoryReason": {
        "not-said": "the answer does not say what was told: {content!r}",
    },
    "ReasoningApartReason": {
        "switched-off": "the document switches thinking off",
        "in-content": "the model thinks, and its thoughts are in the content",
        "other-field": "no thought arrives as reasoning, and {field!r} holds a text",
        "not-apart": "the model thinks, and no thought arrives as reasoning",
        "answer-inside": "the answer is inside the reasoning, content is empty",
        "apart": "thought {reasoning!r}, answered {content!r}",
    },
    "ReasoningCutReason": {
        "no-thought-now": "the model answers without a thought this time",
        "in-content": "the cut thought is in the content: {content!r}",
        "in-both": "the cut thought is in the content, too",
        "cut": "thought {reasoning!r}, no content, finish_reason 'length'",
        "not-said": "the thought was cut, and finish_reason is {finish_reason!r}, not 'length'",
    },
    "ReasoningOffReason": {
        "no-switch": "the template has no switch for thinking",
        "switch-lost": "the switch does not reach the prompt",
        "switch-unknown": "nobody can tell whether its template has a switch",
        "inverted": (
            "the template closes the thinking block where it is asked to think, and not where it is "
            "told not to"
        ),
        "left-open": "told not to think, the template opens {marker} and does not close it",
        "as-reasoning": "the answer arrives as reasoning",
        "thinks": "the model thinks though it is told not to",
    },
    "SpecialTokensReason": {
        "none": "no markup in what is served",
        "pieces": "pieces of words as {piece!r} are in the {place}",
        "call-marker": "the call marker {marker} is in the {place}",
        "stops-and-shows": "the engine stops at {token} and shows it in the {place}",
        "stray": "{token} is in the {place}",
        "only-streamed": "only when streamed",
    },
    "StopStringsReason": {
        "no-middle": "the answer has no middle to stop in: {content!r}",
        "shown": "the stop string is shown",
        "cut-out": "the stop string is cut out, and the answer goes on after it",
        "part-shown": "a part of the stop string is shown: {shown!r}",
        "not-whole": "the text before the stop string is not whole: it ends in {shown!r}",
        "ends": "ends before {stop!r}",
        "other": "the model wrote something else this time: {shown!r}",
    },
    "StopWordsReason": {
        "not-set": "the document has no stop words",
        "not-in-calls": "no stop word within calls",
        "between-calls": "the stop word {word!r} stands between two calls: the second is never written",
        "in-answer": "the stop word {word!r} stands within an answer, before {after!r}",
        "in-text": "the stop word {word!r} stands within what the model writes, before {after!r}",
        "in-thought": "the stop word {word!r} stands within a thought, before {after!r}",
        "none": "no stop word within {answers} answers",
    },
    "StreamReason": {
        "not-done": "the stream ends without [DONE]",
        "alike": "both are alike",
        "same-ones": "answers vary from one to the next; both ways give the same ones",
        "same-parts": "answers vary from one to the next; both ways give the same parts",
        "differs": "{name} differs: whole {whole!r}, streamed {streamed!r}",
    },
    "StructuredReason": {
        "not-json": "the content is not JSON: {text!r}",
        "in-thought": "the content is not JSON (the reasoning holds an object): {text!r}",
        "unfit": "the content does not fit the schema: {problem}",
        "fits": "fits the schema: {text}",
        "spaces": "the schema bound the answer, then white space came to the limit of tokens: {text}",
    },
    "GuidedReason": {
        "other": "the answer is not what was asked for: {text!r}",
        "bound": "{text}",
    },
    "SamplingArrivesReason": {
        "nothing-at-start": "the document sets no value at the start that shows",
        "nothing-shows": "the document sets no value that would show",
        "too-cold": "the temperature is too low to show",
        "no-seed": "the engine takes no seed: {error}",
        "alike": "{count} answers alike",
        "never-alike": "the engine never repeats itself, whatever is sent",
        "differ": "{different} answers of {asked} differ; with the document's values sent they are one",
        "seed-ignored": "a seed does not decide what the model writes",
        "seeds-differ": (
            "for {differ} of {steady} seeds the answer is another once the document's values are sent"
        ),
        "seeds-alike": "{alike} of {steady} seeds give the answer that the document's values give",
        "varied": "{different} answers of {asked} differ",
        "one-answer": "the model gives one answer, whether the temperature is sent or not",
        "not-varied": "{asked} answers are one; with the document's values sent {different} differ",
        "no-effect": "{name} changes nothing in what the model writes",
        "heard": "{name} is heard without being sent",
        "unheard": "{name} is not heard unless it is sent",
        "not-told": "it was started without {names:and}",
        "name-never-alike": "{name}: the engine never repeats itself",
    },
    "TokenLimitReason": {
        "too-many": "{count} tokens where {limit} were allowed",
        "cut": "cut at {limit} tokens, finish_reason 'length'",
        "not-said": "the answer was cut, and finish_reason is {finish_reason!r}, not 'length'",
    },
}

TEXTS: dict[str, dict[str, Text]] = {**VALIDATION, **VALIDATION_CALLS, **VALIDATION_ANSWERS}
