// Documents that are chosen, and one action on all of them: each one has a result of its own.

import { useEffect, useRef, useState } from "preact/hooks";
import { may } from "../../api.js";
import { Action, Failure, Link, Mark, Table, say, useAction } from "../../components/index.js";
import { TEXTS } from "../../text.js";
import { useView } from "../../view.js";
import { Confirm } from "./confirm.jsx";
import { each, every } from "./each.js";

const T = TEXTS.actions;
const SCOPES = {
  approve: "approve", validate: "import", recheck: "import", reimport: "import", release: "approve", withdraw: "approve", delete: "approve",
};
const ASKED = ["approve", "release", "withdraw", "delete"]; // their names are shown before

// The documents as they were seen. Other filters begin with none.
export function useChosen(key) {
  const [state, set] = useState({ key, seen: new Map(), all: false });
  const last = useRef(null);
  const now = state.key === key ? state : { key, seen: new Map(), all: false };
  const put = (seen, all = false) => set({ key, seen, all });
  const change = (rows, on) => {
    const seen = new Map(now.seen);
    for (const one of rows) if (on) seen.set(one.name, one); else seen.delete(one.name);
    put(seen);
  };
  return {
    size: now.seen.size, all: now.all, seen: now.seen,
    has: (name) => now.all || now.seen.has(name),
    toggle(items, name, on, range) {
      const at = items.findIndex((one) => one.name === name), from = range ? items.findIndex((one) => one.name === last.current) : -1;
      const rows = from < 0 ? [items[at]] : items.slice(Math.min(at, from), Math.max(at, from) + 1);
      last.current = name;
      change(rows, on);
    },
    page: change,
    every: () => put(now.seen, true),
    none: () => put(new Map()),
  };
}

export function Bulk({ query, chosen, total, items }) {
  const { me, again } = useView(), act = useAction();
  const [asking, ask] = useState(null), [results, tell] = useState(null);
  const number = chosen.all ? total : chosen.size;
  const done = async (action, found) => {
    tell({ action, found });
    chosen.none();
    await again();
  };
  const start = (action) => async () => {
    const rows = chosen.all ? await every(query) : [...chosen.seen.values()];
    return ASKED.includes(action) ? ask({ action, rows }) : done(action, await each(action, rows));
  };
  const confirmed = async (publish) => {
    const { action, rows } = asking, found = await each(action, rows, publish);
    ask(null);
    await done(action, found);
  };
  const lacking = [...new Set(Object.values(SCOPES))].filter((scope) => !may(me, scope));
  const page = items.length > 0 && items.every((one) => chosen.has(one.name));
  return [
    items.length ? <p class="choosing">
      <label class="box"><input type="checkbox" checked={page} onChange={(event) => chosen.page(items, event.currentTarget.checked)} />{TEXTS.overview.choosePage}</label>
      {page && !chosen.all && total > items.length ? <button type="button" class="inline" onClick={chosen.every}>{TEXTS.overview.chooseAll(total)}</button> : null}
      <span class="soft small hint">{TEXTS.overview.keys}</span>
    </p> : null,
    <div class="bulk" role="region" aria-label={T.label}>{number ? [
      <strong role="status">{T.chosen(number)}</strong>,
      ...Object.entries(SCOPES).map(([action, scope]) => (
        <Action key={action} act={act} name={action} label={T.names[action]} disabled={!may(me, scope)} onAct={start(action)} />
      )),
      <button type="button" class="inline" onClick={chosen.none}>{T.clear}</button>,
      lacking.length ? <span class="soft small">{T.mayNot(lacking)}</span> : null,
    ] : null}<Failure of={act} /></div>,
    asking ? <Confirm {...asking} onYes={confirmed} onClose={() => ask(null)} /> : null,
    results ? <Results {...results} onClose={() => tell(null)} /> : null,
  ];
}

const counted = (found) => {
  const refused = found.filter((one) => one.refused).length;
  return [[found.length - refused, "done"], [refused, "refused"]].filter(([n]) => n).map(([n, word]) => T.counted(n, T.counts[word])).join(", ");
};

// The refused ones first; the others as one line.
function Results({ action, found, onClose }) {
  const head = useRef(null);
  useEffect(() => {
    head.current.focus();
    say(T.told(T.names[action], counted(found)));
  }, [found]);
  const refused = found.filter((one) => one.refused), jobs = new Set(found.map((one) => one.job).filter(Boolean));
  const [first] = jobs;
  return (
    <section class="results" aria-labelledby="results">
      <h2 id="results" tabindex={-1} ref={head}>{T.told(T.names[action], counted(found))}</h2>
      {first ? <p>{jobs.size === 1 ? <Link to={["jobs", first]}>{T.job}</Link> : <Link to={["jobs"]}>{T.jobs(jobs.size)}</Link>}</p> : null}
      {refused.length ? <Table label={T.results} heads={T.heads} kind="stack named" rows={refused.map((one) => [
        <Link to={["documents", one.name]}>{one.name}</Link>, <Mark word="failed">{T.counts.refused}</Mark>, one.refused.message,
      ])} /> : null}
      <p><button type="button" class="inline" onClick={onClose}>{T.dismiss}</button></p>
    </section>
  );
}
