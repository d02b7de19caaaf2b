// Queue: who waits, since when, why, and what would help.

import { ask, repeat } from "./api.js";
import { fill, h } from "./dom.js";
import { QUEUES, count, events, number, queueOf, span } from "./words.js";

const REFRESH_MILLISECONDS = 2000;
const MAX_ROWS = 500;

export async function showQueue({ place, signal, about, tellProblem }) {
  let only = null;
  let last = null;
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Which pods" });
  const list = h("div", { class: "scroll" });
  fill(place, h("h1", {}, "Who waits, and why"), chips, list);

  const show = () => {
    const counts = {};
    for (const pod of last.pods) counts[queueOf(pod)] = (counts[queueOf(pod)] ?? 0) + 1;
    const chip = (key, name, amount, title) => h("button", { type: "button", class: "chip", title, data: { queue: key ?? "all" },
      "aria-pressed": String(only === key), on: { click: () => { only = key; show(); } } }, h("b", {}, count(amount)), " ", name);
    const focused = document.activeElement?.dataset?.queue;
    fill(chips, chip(null, "all", last.count, "all that wait"),
      Object.entries(QUEUES).map(([key, [name, title]]) => chip(key, name, counts[key] ?? 0, title)));
    if (focused) chips.querySelector(`[data-queue="${focused}"]`)?.focus();
    const pods = last.pods.filter((pod) => only === null || queueOf(pod) === only);
    fill(list, pods.length === 0
      ? h("p", { class: "empty" }, last.count === 0 ? "Nobody waits: every pod has a node." : "Nobody waits here.")
      : table(pods, last.events),
    last.count > last.pods.length ? h("p", { class: "faint" }, `The first ${count(last.pods.length)} of ${number(last.count, "pod")}.`) : null);
  };
  const load = async () => {
    last = await ask("queue", { limit: MAX_ROWS });
    if (!signal.aborted) show();
  };
  await load();
  if (about.live) repeat(REFRESH_MILLISECONDS, signal, load, tellProblem);
}

function table(pods, helpful) {
  const heads = ["Pod", "Where", "Since", "Attempts", "Why", "What would help"];
  return h("table", { class: "cards", id: "queue-table" }, h("caption", { class: "unseen" }, "Waiting pods"),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, pods.map((pod) => {
      const where = queueOf(pod);
      return h("tr", {},
        h("th", { scope: "row", data: { head: "Pod" } }, h("a", { href: `#decision/${pod.pod}` }, pod.pod),
          pod.priority ? h("small", { class: "faint" }, ` priority ${pod.priority}`) : null),
        h("td", { data: { head: "Where" } }, h("span", { class: `badge ${where}` }, QUEUES[where]?.[0] ?? where),
          pod.nominatedNode ? h("small", { class: "faint" }, ` on ${pod.nominatedNode}`) : null),
        h("td", { class: "nowrap", data: { head: "Since" }, title: pod.since }, span(pod.waits)),
        h("td", { class: "number", data: { head: "Attempts" } }, String(pod.attempts)),
        h("td", { data: { head: "Why" } }, why(pod)),
        h("td", { data: { head: "What would help" } }, help(pod, helpful)));
    })));
}

function why(pod) {
  if (pod.gatedBy) return [`held back by ${pod.gatedBy}`, pod.message ? `: ${pod.message}` : ""];
  if (pod.message) return pod.message;
  return pod.attempts ? "" : "not tried yet";
}

function help(pod, helpful) {
  const plugins = pod.gatedBy ? [pod.gatedBy] : pod.refusedBy;
  if (pod.nominatedNode) return `the pods that give way leave ${pod.nominatedNode}`;
  if (!plugins.length) return "";
  return h("ul", { class: "help" }, plugins.map((plugin) => h("li", {}, h("b", {}, plugin), ": ",
    events(helpful[plugin] ?? []).slice(0, 6).join("; ") || "–")));
}
