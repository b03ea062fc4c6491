// One case: the conversation, the prompt as it is rendered, and the calls as they are read.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../../api.js";
import { Block, Choice, Code, Failure, Mark, Section, Soft, useAction } from "../../components/index.js";
import { here, place } from "../../router.js";
import { TEXTS } from "../../text.js";

const T = TEXTS.cases;
const FIRST = "question";
const MARKS = { right: "pass", wrong: "fail", unknown: "not-applicable" };

// The case that an address names, else the first one.
export const named = (query) => (Object.hasOwn(T.names, query.get("case") ?? "") ? query.get("case") : FIRST);

export function Case({ name, sheet }) {
  const [shown, set] = useState(sheet.case), act = useAction();
  const leaving = useRef(null);
  useEffect(() => () => leaving.current?.abort(), []);
  const choose = (ident) => async () => {
    leaving.current = new AbortController();
    const found = await get(["configs", name, "review"], { query: { case: ident }, signal: leaving.current.signal });
    set(found.case);
    history.replaceState(null, "", place(here().parts, { ...Object.fromEntries(here().query), case: ident }));
  };
  const wrong = sheet.cases.filter(({ read }) => read === "wrong").length;
  return (
    <Section title={T.title}>
      {wrong ? <p><Mark word="fail">{T.wrong(wrong)}</Mark></p> : null}
      <Choice id="case" label={T.choose} value={shown.id} options={sheet.cases.map((one) => [one.id, T.option(T.names[one.id], one.read)])}
        onChange={(event) => act.run("case", choose(event.currentTarget.value))} />
      <Failure of={act} />
      <div class="sides" aria-live="polite" aria-busy={act.busy ? "true" : "false"}><Prompt one={shown} /><Calls one={shown} /></div>
      <details class="small"><summary>{T.conversation}</summary><Block label={T.conversation} text={JSON.stringify({ messages: shown.messages, ...(shown.tools ? { tools: shown.tools } : {}) }, null, 1)} /></details>
    </Section>
  );
}

const Prompt = ({ one }) => (
  <div><h3>{T.prompt}</h3>
    {one.prompt === null ? <p class="remedy break">{T.because(T.refused[one.refused?.kind] ?? T.refused.failed, one.refused?.message)}</p>
      : <Block label={T.prompt} text={one.prompt} />}
  </div>
);

function Calls({ one }) {
  if (!one.calls.length) return <div><h3>{T.calls}</h3><p class="soft">{T.none}</p></div>;
  return (
    <div><h3>{T.calls}</h3>
      <Block label={T.calls} text={one.calls.map((call) => `${call.name} ${JSON.stringify(call.arguments)}`).join("\n")} />
      {one.written ? [<h3>{T.written}</h3>, <Block label={T.written} text={one.written} />] : null}
      <p class="break"><Mark word={MARKS[one.read]}>{T.read[one.read]}</Mark>{" "}<Soft>{one.parser ? T.reader(one.parser) : T.noParser}</Soft>
        {one.why ? [T.why(""), <Code>{one.why}</Code>] : null}</p>
      {one.read === "unknown" ? <p class="soft small">{T.unproved}</p> : null}
    </div>
  );
}
