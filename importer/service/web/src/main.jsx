// The beginning: what may stand in the page, then the page itself.

import "./safe.js";
import "./style/index.css";
import { render } from "preact";
import { Problem } from "./api.js";
import { App } from "./app.jsx";
import { say } from "./components/index.js";

addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Problem) {
    event.preventDefault();
    say(event.reason.message);
  }
});
const page = document.getElementById("page");
page.replaceChildren();
render(<App />, page);
