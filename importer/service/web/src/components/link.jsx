// Links: to a place of this page, and to a page of the Hub. No component makes an <a> of its own.

import { mayLink } from "../safe.js";
import { place } from "../router.js";

// <Link to={["documents", name]} query={{state: "draft"}}>text</Link>
export const Link = ({ to, query, children, ...rest }) => <a href={place(to, query)} {...rest}>{children}</a>;

// A page of the Hub, or only its text where the server named no Hub.
export function HubLink({ href, children }) {
  const rel = "noopener noreferrer";
  return mayLink(href, rel) ? <a href={href} rel={rel}>{children}</a> : <span>{children}</span>;
}
