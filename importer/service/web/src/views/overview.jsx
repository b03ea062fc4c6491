// The overview: every document as a row, with search, facets, sorting and actions; all of it in the address.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.js";
import { Choice, Empty, Link, Pager, Title } from "../components/index.js";
import { go, here, replace } from "../router.js";
import { TEXTS } from "../text.js";
import { useView } from "../view.js";
import { Bulk, useChosen } from "./overview/bulk.jsx";
import { Chips, Facets } from "./overview/facets.jsx";
import { Items } from "./overview/items.jsx";
import { PER_PAGE, addressed, asked, filtered, filters } from "./overview/query.js";

const T = TEXTS.overview;
const PAUSE = 250; // milliseconds without a key before a search begins

export function load({ route, signal }) {
  const query = asked(route);
  const { sort, cursor } = query;
  return get(["configs"], { query: { ...filters(query), sort, cursor, limit: PER_PAGE }, signal });
}

export function View({ data }) {
  const { route, turn } = useView();
  const query = asked(route);
  const counts = useCounts(query, turn);
  const chosen = useChosen(JSON.stringify(filters(query)));
  const anew = data.total === 0 && !filtered(query);
  return (
    <div class="overview">
      <div class="title"><Title>{T.title}</Title><Count data={data} query={query} counts={counts} /></div>
      {anew ? <Empty text={T.empty}><Link to={["import"]}>{T.start}</Link></Empty> : [
        <Bar query={query} />,
        <Facets query={query} counts={counts} />,
        <div class="found">
          <Chips query={query} />
          <Bulk query={query} chosen={chosen} total={data.total} items={data.items} />
          {data.items.length ? <Items items={data.items} chosen={chosen} fits={counts?.fits} /> : <Nothing query={query} />}
          <Pager label={T.pages} to={["documents"]} query={addressed(query)} cursor={query.cursor} next={data.next} />
        </div>,
      ]}
      <p class="foot"><Link to={["deleted"]}>{T.deleted}</Link></p>
    </div>
  );
}

// Counts of facets come after the rows; they stay while others are counted, and another page has the same.
function useCounts(query, turn) {
  const [counts, set] = useState(null);
  const key = JSON.stringify([filters(query), query.fits]);
  useEffect(() => {
    const leaving = new AbortController();
    const more = query.device ? {} : { fits: query.fits };
    get(["overview"], { query: { ...filters(query), ...more }, signal: leaving.signal })
      .then(set, (error) => { if (error.name !== "AbortError") set({ error }); });
    return () => leaving.abort();
  }, [key, query.cursor ? "" : turn]);
  return counts;
}

function Count({ data, query, counts }) {
  const some = counts?.documents > data.total ? T.of(counts.documents) : "";
  return (
    <p class="soft count">
      <span id="count" role="status">{T.count(data.total)}{query.cursor ? T.after : ""}</span>{some}
      {counts?.attention ? [", ", <Link to={["documents"]} query={addressed(query, { attention: ["any"] })}>{T.attention(counts.attention)}</Link>] : null}
    </p>
  );
}

function Bar({ query }) {
  return (
    <form class="bar" role="search" aria-label={T.title} onSubmit={(event) => event.preventDefault()}>
      <Search query={query} />
      <Choice id="sort" label={T.sort} value={query.sort} options={Object.entries(T.sorts)}
        onChange={(event) => go(["documents"], addressed(query, { sort: event.currentTarget.value === "-attention" ? "" : event.currentTarget.value }))} />
    </form>
  );
}

// Searches as one types: the first change is a step of the browser's history, further ones take its place.
function Search({ query }) {
  const field = useRef(null), sent = useRef(""), timer = useRef(0), stepped = useRef(false);
  useEffect(() => {
    if (query.q !== sent.current) field.current.value = query.q; // from elsewhere: a link, the back button
    sent.current = query.q;
  }, [query.q]);
  useEffect(() => {
    const leads = (event) => {
      const typing = /^(input|textarea|select)$/i.test(event.target.tagName) || event.target.isContentEditable;
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current.focus();
    };
    addEventListener("keydown", leads);
    return () => { removeEventListener("keydown", leads); clearTimeout(timer.current); };
  }, []);
  const search = () => {
    clearTimeout(timer.current);
    // A browser reports the change of a field that leaves the page, too: a search never leads back to this view.
    if (!field.current || here().parts.join("/") !== "documents") return;
    const q = field.current.value.trim();
    if (q === sent.current) return;
    sent.current = q;
    const to = addressed({ ...query, q });
    if (stepped.current) replace(["documents"], to);
    else go(["documents"], to);
    stepped.current = true;
  };
  const typed = () => { clearTimeout(timer.current); timer.current = setTimeout(search, PAUSE); };
  return (
    <div class="field">
      <label for="q">{T.search}</label>
      <input id="q" name="q" type="search" ref={field} placeholder={T.searched} autocomplete="off" spellcheck={false} maxlength={200}
        aria-keyshortcuts="/" onInput={typed} onChange={search} onFocus={() => { stepped.current = false; }}
        onKeyDown={(event) => { if (event.key === "Enter") search(); }} />
    </div>
  );
}

function Nothing({ query }) {
  return <Empty text={query.q ? T.noMatchSearch(query.q) : T.noMatch}><Link to={["documents"]}>{T.clear}</Link></Empty>;
}
