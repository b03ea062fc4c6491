// API keys: made, listed and revoked. The secret of a new one is shown once, and kept nowhere in this page.

import { useRef, useState } from "preact/hooks";
import { ask, post } from "../../api.js";
import { Action, Boxes, Empty, Failure, Input, Section, SoftWhen, Table, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { Secret, Sure } from "./parts.jsx";

const T = TEXTS.access;
const SCOPES = ["import", "approve", "admin"]; // beside read, which every key has

export function Keys({ items }) {
  const { again } = useView(), [made, tell] = useState(null), [asking, sure] = useState(null);
  const revoke = (one) => async () => {
    await ask("DELETE", ["keys", one.id]);
    sure(null);
    tell(null); // its secret is of no use now
    await again();
    say(T.revoked(one.name));
  };
  const there = items.filter((one) => !one.revoked_at), gone = items.filter((one) => one.revoked_at);
  const row = (one) => [
    one.name, one.scopes.replaceAll(" ", ", "), <SoftWhen at={one.created_at} />, one.created_by,
    one.revoked_at ? <SoftWhen at={one.revoked_at} /> : <button type="button" aria-label={T.act(T.revoke, one.name)} onClick={() => sure(one)}>{T.revoke}</button>,
  ];
  const table = (label, rows) => <Table label={label} heads={[...T.keyHeads, label === T.gone ? T.revokedAt : ""]} kind="stack named" keys={rows.map((one) => one.id)} rows={rows.map(row)} />;
  return (
    <Section title={T.keys}>
      <p class="soft">{T.aboutKeys}</p>
      {there.length ? table(T.keys, there) : <Empty text={T.noKeys} />}
      <Made made={made} tell={tell} />
      {made ? <Secret what={T.keyOf(made.name)} text={made.key} done={() => tell(null)} /> : null}
      {gone.length ? <details class="small"><summary>{T.gone}</summary>{table(T.gone, gone)}</details> : null}
      {asking ? <Sure title={T.askRevoke(asking.name)} effect={T.effectRevoke} yes={T.revoke} onYes={revoke(asking)} onClose={() => sure(null)} /> : null}
    </Section>
  );
}

function Made({ tell }) {
  const { again } = useView(), form = useRef(null), act = useAction();
  const make = async () => {
    const said = new FormData(form.current), name = said.get("name").trim();
    const { key } = await post(["keys"], { body: { name, scopes: ["read", ...said.getAll("scope")] } });
    form.current.reset();
    await again();
    tell({ name, key });
  };
  return (
    <form class="form" ref={form} aria-label={T.newKey} onSubmit={(event) => { event.preventDefault(); act.run("make", make); }}>
      <h3>{T.newKey}</h3>
      <Input id="key-name" name="name" label={T.name} placeholder={T.names} maxlength={100} required />
      <Boxes name="scope" legend={T.may} options={SCOPES} chosen={["import"]} draw={(scope) => T.scopes[scope]} />
      <p class="buttons"><Action act={act} name="make" type="submit" label={T.makeKey} /></p>
      <Failure of={act} />
    </form>
  );
}
