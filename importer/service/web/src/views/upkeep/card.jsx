// A finding: its causes, the decisions it changes, and what may be done about it.

import { may, post } from "../../api.js";
import { Action, Code, Failure, Link, Mark, Section, Soft, SoftWhen, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";

const T = TEXTS.upkeep;
const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// ``done`` is called after it was accepted or rejected.
export function Finding({ finding, done }) {
  return (
    <Section title={T.card(finding.name, finding.kinds.map((kind) => T.causes[kind] ?? kind))}>
      <p><Mark word={finding.state} />{" "}<Link to={["documents", finding.name]}>{finding.name}</Link>{" "}<SoftWhen at={finding.seen_at} />{" "}
        <Link to={["upkeep", finding.id]} aria-label={T.sidesOf(finding.name)}>{T.sides}</Link></p>
      {finding.outdated && finding.state === "open" ? <p class="remedy">{T.outdated}</p> : null}
      <ul class="plain small">{finding.causes.map((cause, at) => <li class="break" key={at}><Reason cause={cause} /></li>)}</ul>
      {finding.refused ? <p class="break">{finding.refused.message}</p> : null}
      <ul class="changes">{finding.decisions.map((d) => (
        <li key={d.key}><Code>{d.key}</Code>{T.colon}<span class="before">{text(d.before)}</span>{" → "}<span class="after">{text(d.after)}</span>
          {d.covered ? <Soft>{T.covered}</Soft> : null}<p class="soft small break">{d.why.join("; ")}</p></li>
      ))}</ul>
      {finding.why ? <p class="break">{T.said(finding.by, finding.why)}</p> : null}
      {finding.state === "open" ? <Actions finding={finding} done={done} /> : null}
    </Section>
  );
}

function Reason({ cause }) {
  const sides = cause.before || cause.after ? `${cause.before ?? T.none} → ${cause.after ?? T.none}` : (cause.keys ?? []).join(", ");
  return [T.reason(cause.what, sides), cause.files?.length ? <Soft>{T.files(cause.files)}</Soft> : null];
}

function Actions({ finding, done }) {
  const { me } = useView(), act = useAction();
  const settle = (step, body) => async () => {
    await post(["upkeep", finding.id, step], { body });
    await done();
    say(step === "accept" ? T.accepted(finding.name) : T.rejected(finding.name));
  };
  const button = (label, scope, step, body = {}) => <Action act={act} name={label} label={label} told={T.act(label, finding.name)}
    disabled={!may(me, scope)} onAct={settle(step, body)} />;
  const accept = finding.conflicts.length
    ? [button(T.acceptMine, "import", "accept", { take: "mine" }), button(T.acceptTheirs, "import", "accept", { take: "theirs" })]
    : button(T.accept, "import", "accept");
  return [<span class="buttons">{finding.refused ? null : accept}{button(T.reject, "approve", "reject")}</span>, <Failure of={act} />];
}
