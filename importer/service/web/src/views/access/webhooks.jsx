// Webhooks: added, listed, tried, switched off and removed, each with its last deliveries.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask, get, post } from "../../api.js";
import { Action, Boxes, Empty, Failure, Input, Mark, Section, Soft, SoftWhen, Table, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { useLooking } from "../jobs/rows.jsx";
import { Secret, Sure } from "./parts.jsx";

const T = TEXTS.access;
const TYPES = Object.keys(T.types);
const SHOWN = 10; // deliveries of one webhook
const MARKS = { enabled: "running", disabled: "cancelled", delivered: "succeeded", waiting: "queued", failed: "failed" };

export function Webhooks({ items, turn }) {
  const [made, tell] = useState(null);
  return (
    <Section title={T.webhooks}>
      <p class="soft">{T.aboutWebhooks}</p>
      {items.length ? items.map((one) => <Webhook key={one.id} one={one} turn={turn} />) : <Empty text={T.noWebhooks} />}
      <Added tell={tell} />
      {made ? <Secret what={T.secretOf(made.url)} text={made.secret} done={() => tell(null)} /> : null}
    </Section>
  );
}

function Added({ tell }) {
  const { again } = useView(), form = useRef(null), act = useAction();
  const add = async () => {
    const said = new FormData(form.current), note = said.get("note").trim();
    const hook = await post(["webhooks"], { body: { url: said.get("url").trim(), types: said.getAll("type"), ...(note ? { note } : {}) } });
    form.current.reset();
    await again();
    tell(hook);
  };
  return (
    <form class="form" ref={form} aria-label={T.newWebhook} onSubmit={(event) => { event.preventDefault(); act.run("add", add); }}>
      <h3>{T.newWebhook}</h3>
      <Input id="webhook-url" name="url" type="url" label={T.url} placeholder={T.urls} maxlength={2000} required />
      <Input id="webhook-note" name="note" label={T.note} maxlength={4000} />
      <Boxes name="type" legend={T.events} options={TYPES} chosen={TYPES} draw={(type) => T.types[type]} />
      <p class="buttons"><Action act={act} name="add" type="submit" label={T.addWebhook} /></p>
      <Failure of={act} />
    </form>
  );
}

function Webhook({ one, turn }) {
  const { again } = useView(), act = useAction();
  const [asking, sure] = useState(false), [sent, count] = useState(0);
  const test = async () => {
    await post(["webhooks", one.id, "ping"]);
    count(sent + 1);
  };
  const change = (state) => async () => {
    await ask("PATCH", ["webhooks", one.id], { body: { state } });
    await again();
  };
  const remove = async () => {
    await ask("DELETE", ["webhooks", one.id]);
    sure(false);
    await again();
    say(T.removed(one.url));
  };
  const button = (name, label, onAct) => <Action act={act} name={name} label={label} told={T.act(label, one.url)} onAct={onAct} />;
  const off = one.state === "disabled";
  return (
    <article class="webhook" aria-label={one.url}>
      <h3 class="break">{one.url}</h3>
      <p class="marks"><Mark word={MARKS[one.state]}>{T.states[one.state]}</Mark>{one.failures ? <Soft>{T.failures(one.failures)}</Soft> : null}{one.note ? <span class="break">{one.note}</span> : null}</p>
      <p class="soft small">{one.types.map((type) => T.types[type] ?? type).join(", ")}</p>
      <p class="buttons">{button("test", T.test, test)}{off ? button("on", T.enable, change("enabled")) : button("off", T.disable, change("disabled"))}
        <button type="button" aria-label={T.act(T.remove, one.url)} onClick={() => sure(true)}>{T.remove}</button></p>
      <Failure of={act} />
      <Deliveries webhook={one} key={sent} turn={turn} />
      {asking ? <Sure title={T.askRemove} effect={T.effectRemove(one.url)} yes={T.remove} onYes={remove} onClose={() => sure(false)} /> : null}
    </article>
  );
}

// The last ones; they are looked at again while one is on its way.
function Deliveries({ webhook, turn }) {
  const [found, set] = useState(null);
  const look = async (signal) => set(await get(["webhooks", webhook.id, "deliveries"], { query: { limit: SHOWN }, signal }));
  useEffect(() => {
    const leaving = new AbortController();
    look(leaving.signal).catch(() => {});
    return () => leaving.abort();
  }, [turn]);
  useLooking(webhook.state === "enabled" && Boolean(found?.items.some((one) => one.state === "waiting")), look);
  if (!found?.items.length) return <p class="soft small">{T.noDeliveries}</p>;
  return <Table label={T.deliveriesOf(webhook.url)} heads={T.deliveryHeads} kind="stack" keys={found.items.map((one) => one.id)} rows={found.items.map((one) => [
    <SoftWhen at={one.at} />, T.types[one.type] ?? T.ping, <Mark word={MARKS[one.state]}>{T.delivered[one.state]}</Mark>, String(one.tries),
    <span class="break">{one.problem ?? (one.status === null ? "" : T.answered(one.status))}</span>,
  ])} />;
}
