// Parts of one thing, each with an address of its own.

import { keepTab } from "../router.js";
import { Link } from "./link.jsx";

// ``tabs``: names with their labels; ``to(name)`` is the place of one.
export function Tabs({ label, tabs, current, to }) {
  return (
    <nav aria-label={label} class="tabs"><ul>{Object.entries(tabs).map(([name, text]) => (
      <li key={name}><Link to={to(name)} aria-current={name === current ? "page" : undefined} onClick={keepTab}>{text}</Link></li>
    ))}</ul></nav>
  );
}
