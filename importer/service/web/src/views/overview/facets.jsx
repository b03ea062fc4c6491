// Filters with the count of each value, and the ones that are set as chips that take them away.

import { useEffect, useState } from "preact/hooks";
import { get } from "../../api.js";
import { Choice, Link, Mark, Problem } from "../../components/index.js";
import { grouped } from "../../devices.js";
import { go } from "../../router.js";
import { remember } from "../../remembered.js";
import { TEXTS } from "../../text.js";
import { FACETS, OPEN, addressed, filtered, filters } from "./query.js";

const T = TEXTS.overview;
const SHOWN = 8; // values of a facet before the others are behind a summary
const WORDS = { attention: T.attentions, size: T.sizes };

export const named = (facet, value) => (value === "none" ? T.none : value === "any" ? T.any : WORDS[facet]?.[value] ?? value);

export function Facets({ query, counts }) {
  const wide = matchMedia("(min-width: 60rem)").matches;
  return (
    <details class="facets" open={wide || undefined}>
      <summary>{T.filters}</summary>
      {counts?.error ? <Problem error={counts.error} /> : null}
      <form aria-label={T.filters} onSubmit={(event) => event.preventDefault()}>
        <Device query={query} fits={counts?.fits} />
        {FACETS.map((name, at) => <Facet key={name} name={name} query={query} values={counts?.facets?.[name] ?? []} open={at < OPEN} />)}
      </form>
    </details>
  );
}

function Facet({ name, query, values, open }) {
  const chosen = query[name];
  const rows = values.map(({ value, count }) => ({ value: value ?? "none", count }));
  for (const value of chosen) if (!rows.some((one) => one.value === value)) rows.push({ value, count: value === "any" ? null : 0 });
  if (!rows.length || (rows.length === 1 && !chosen.length && rows[0].value === "none")) return null;
  const change = (event) => {
    const { value, checked } = event.currentTarget;
    const next = checked ? [...chosen, value] : chosen.filter((one) => one !== value);
    go(["documents"], addressed({ ...query, [name]: next }));
  };
  const box = ({ value, count }) => (
    <li key={value}><label class="box"><input type="checkbox" name={name} value={value} checked={chosen.includes(value)} onChange={change} />
      <span class="break">{name === "state" || name === "validation" ? <Mark word={value} /> : named(name, value)}</span>
      {count === null ? null : <span class="soft number">{count.toLocaleString("en")}</span>}</label></li>
  );
  const first = rows.filter((one, at) => at < SHOWN || chosen.includes(one.value)), rest = rows.filter((one) => !first.includes(one));
  return (
    <details open={open || chosen.length > 0 || undefined}>
      <summary>{T.facets[name]}</summary>
      <ul class="plain" aria-label={T.facets[name]}>{first.map(box)}</ul>
      {rest.length ? <details class="more"><summary>{T.more(rest.length)}</summary><ul class="plain" aria-label={T.facets[name]}>{rest.map(box)}</ul></details> : null}
    </details>
  );
}

// The device is remembered: its counts are there in the next tab, too; it filters only where that is asked for.
function Device({ query, fits }) {
  const [devices, set] = useState([]);
  useEffect(() => { get(["devices"]).then(set, () => {}); }, []);
  const options = [["", T.anyDevice], ...grouped(devices.filter((one) => one.memory), [query.fits])];
  const change = (event) => {
    const { value } = event.currentTarget;
    remember("device", value);
    go(["documents"], addressed({ ...query, device: query.device && value }, { fits: query.device ? "" : value }));
  };
  const only = (event) => go(["documents"], addressed({ ...query, device: event.currentTarget.checked ? query.fits : "" }));
  return [
    <Choice id="device" label={T.device} value={query.fits} options={options} onChange={change} />,
    query.fits ? <p class="fits">
      <label class="box"><input type="checkbox" name="fitting" checked={Boolean(query.device)} onChange={only} />{T.fitting}</label>
      {fits ? <span class="soft small">{T.fits(fits)}</span> : null}
    </p> : null,
  ];
}

// What is filtered by, each a link to the documents without it.
export function Chips({ query }) {
  if (!filtered(query)) return null;
  const set = Object.entries(filters(query)).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  const without = (name, value) => addressed({ ...query, [name]: Array.isArray(query[name]) ? query[name].filter((one) => one !== value) : "" });
  return (
    <ul class="plain chips">
      {set.map(([name, value]) => (
        <li key={`${name} ${value}`}><Link to={["documents"]} query={without(name, value)} aria-label={T.removed(T.facets[name], named(name, value))}>
          <span class="soft">{T.facets[name]}</span>{" "}{named(name, value)}<span aria-hidden="true">{" ×"}</span></Link></li>
      ))}
      <li key="all"><Link to={["documents"]}>{T.clear}</Link></li>
    </ul>
  );
}
