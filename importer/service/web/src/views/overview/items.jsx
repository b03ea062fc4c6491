// Documents as dense rows: what each is, its state, its figures, and a box to choose it.

import { Link, Mark, Soft, When } from "../../components/index.js";
import { device } from "../../devices.js";
import { bytes } from "../../format.js";
import { TEXTS } from "../../text.js";
import { Figures, Initials } from "./facts.jsx";

const T = TEXTS.overview;

export function Items({ items, chosen, fits }) {
  const names = items.map((one) => one.name);
  const choose = (name) => ({
    type: "checkbox", "data-name": name, checked: chosen.has(name), "aria-label": T.choose(name),
    onClick: (event) => chosen.toggle(items, name, event.currentTarget.checked, event.shiftKey),
  });
  return (
    <ul class="plain items rows" aria-label={T.list} onKeyDown={(event) => moved(event, names)}>
      {items.map((one) => <Item key={one.name} one={one} box={choose(one.name)} fits={fits} />)}
    </ul>
  );
}

// Arrow keys lead from one item to the next, to the same control of it.
function moved(event, names) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], item = event.target.closest(".item");
  if (!step || !item || event.altKey || event.ctrlKey || event.metaKey) return;
  const next = step > 0 ? item.nextElementSibling : item.previousElementSibling;
  if (!next || names.length < 2) return;
  event.preventDefault();
  (next.querySelector(event.target.matches("input") ? "input" : "a") ?? next).focus();
}

function Item({ one, box, fits }) {
  const { facts } = one;
  return (
    <li class="item">
      <input {...box} />
      <Initials model={one.model} />
      <div class="what">
        <h2><Link to={["documents", one.name]}>{one.name}</Link></h2>
        <p class="marks"><Mark word={one.state} />{one.release ? <Soft class="small">{T.release(one.release)}</Soft> : null}
          {one.attention.map((kind) => <Link key={kind} class="needs" to={["documents"]} query={{ attention: kind }}>{T.attentions[kind] ?? kind}</Link>)}</p>
        <p class="soft small break">{one.model ?? TEXTS.common.none}{one.backend ? ` · ${one.backend}` : ""}{one.family ? ` · ${one.family}` : ""}</p>
        {facts.description ? <p class="about break">{facts.description}</p> : null}
        {one.reason ? <p class="soft small break why">{one.reason}</p> : null}
      </div>
      <Figures told={told(one, fits)} />
    </li>
  );
}

function told(one, fits) {
  const { facts, run } = one, F = T.facts;
  return [
    [F.parameters, facts.parameters && T.parameters(facts.parameters)],
    [F.context, facts.context && T.tokens(facts.context)],
    [F.weights, facts.weights && bytes(facts.weights)],
    [F.memory, facts.memory && memory(one, fits)],
    [F.modalities, facts.modalities.join(", ")],
    [F.quantization, facts.quantization],
    [F.tool_parser, facts.tool_parser],
    [F.reasoning_parser, facts.reasoning_parser],
    [F.license, facts.license],
    [F.validation, one.validation === "never" ? null : [<Mark word={one.validation} />, " ", run ? T.validated(run) : ""]],
    [one.validation === "never" ? F.read : F.checked, one.checked_at && <When at={one.checked_at} />],
  ];
}

function memory({ facts, backend }, fits) {
  const size = T.memory(bytes(facts.memory), facts.device && device(facts.device), facts.devices);
  if (!fits) return size;
  const [style, mark, told] = T.holds[held(facts, backend, fits)];
  return [size, " ", <span class={style} title={`${device(fits.device)}: ${told}`}>{mark}</span>];
}

function held({ whole_bytes: whole, part_bytes: part }, backend, { budget, backends }) {
  if (!backends.includes(backend)) return "other";
  if (part === null) return "unknown";
  return whole <= budget ? "yes" : part <= budget ? "part" : "no";
}
