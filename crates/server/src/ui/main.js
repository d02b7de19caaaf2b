// The frame: views, their addresses, dark and light, and what went wrong.

import { ask } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { showCluster } from "./cluster.js";
import { showQueue } from "./queue.js";
import { showDecision } from "./decision.js";
import { showNow } from "./now.js";
import { showConfiguration } from "./configuration.js";

const VIEWS = [
  ["cluster", "Cluster", showCluster],
  ["queue", "Queue", showQueue],
  ["decision", "Decision", showDecision],
  ["now", "Now", showNow],
  ["configuration", "Configuration", showConfiguration],
];

const main = document.getElementById("main");
let leaving = new AbortController();
let about;

/** What went wrong, or that nothing does any more. */
export function tellProblem(error) {
  const place = document.getElementById("problem");
  place.hidden = !error;
  place.textContent = error ? `${error.message ?? error}` : "";
}

function links(current) {
  fill(document.getElementById("views"), VIEWS.map(([id, name], i) =>
    h("li", {}, h("a", { href: `#${id}`, "aria-current": id === current ? "page" : undefined, title: `${name} (${i + 1})` }, name))));
}

/** Shows what the address says: `#view/what/more`. */
async function show() {
  if (location.hash === "#main") return;
  const [id, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  const [view, name, begin] = VIEWS.find(([known]) => known === id) ?? VIEWS[0];
  leaving.abort();
  leaving = new AbortController();
  links(view);
  document.title = `${name} · Supercargo`;
  main.dataset.view = view;
  delete main.dataset.ready;
  tellProblem(null);
  const { signal } = leaving;
  try {
    about ??= await ask("about");
    if (signal.aborted) return;
    document.getElementById("source").textContent = `${about.title} · ${about.version}`;
    fill(main);
    await begin({ place: main, rest, signal, about, tellProblem });
    if (!signal.aborted) main.dataset.ready = view;
  } catch (error) {
    if (!signal.aborted) tellProblem(error);
  }
  announce(name);
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("theme"));
}

function toggleTheme() {
  const chosen = document.documentElement.dataset.theme;
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = dark ? "light" : "dark";
  try { localStorage.setItem("theme", next); } catch { /* It holds until the page is left. */ }
  setTheme(next);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const view = VIEWS[Number(event.key) - 1];
  if (view) location.hash = `#${view[0]}`;
}

let stored = null;
try { stored = localStorage.getItem("theme"); } catch { /* As the system says. */ }
setTheme(stored);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
document.getElementById("theme").addEventListener("click", toggleTheme);
document.addEventListener("keydown", onKey);
addEventListener("hashchange", show);
show();
