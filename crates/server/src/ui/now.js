// Now: figures of the running scheduler. Rates and quantiles are made here, from totals.

import { ask, repeat } from "./api.js";
import { fill, h, tile } from "./dom.js";
import { sparkline } from "./paint.js";
import { count, microseconds, number, span } from "./words.js";

const REFRESH_MILLISECONDS = 1000;
const POINTS = 120;
const DECISIONS = 15;
const LEADER = { alone: "no election", leading: "this one leads", standby: "standing by", lost: "the lease was lost", released: "the lease was released" };

export async function showNow({ place, signal, about, tellProblem }) {
  if (!about.live) return showSummary(place);
  const charts = Object.fromEntries(["rate", "latency", "waiting"].map((key) => [key, { canvas: h("canvas", { class: "spark", role: "img" }), value: h("dd", {}), lines: [[], []] }]));
  const chart = (key, name) => h("div", { class: "tile chart" }, h("dt", {}, name), charts[key].value, charts[key].canvas);
  const figures = h("dl", { class: "tiles", id: "figures" });
  const services = h("div", {});
  const stream = h("tbody", { id: "stream" });
  fill(place, h("h1", {}, "Now"),
    h("dl", { class: "tiles charts" }, chart("rate", "Decisions a second"), chart("latency", "A decision takes (p50, p99)"), chart("waiting", "Pods that wait")),
    figures, services,
    h("h2", {}, "Last decisions"),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["When", "Pod", "Result"].map((head) => h("th", { scope: "col" }, head)))), stream)));

  let before = null;
  const load = async () => {
    const [now, recent] = await Promise.all([ask("now"), ask("decisions", { limit: DECISIONS })]);
    if (signal.aborted) return;
    if (before && now.uptimeSeconds > before.uptimeSeconds) addPoint(charts, before, now);
    // The same answer again, because others look at it too.
    if (!before || now.uptimeSeconds > before.uptimeSeconds) before = now;
    showFigures(figures, now);
    showServices(services, now);
    fill(stream, recent.decisions.map(decisionRow));
    draw(charts);
  };
  addEventListener("theme", () => draw(charts), { signal });
  await load();
  repeat(REFRESH_MILLISECONDS, signal, load, tellProblem);
}

function addPoint(charts, before, now) {
  const seconds = now.uptimeSeconds - before.uptimeSeconds;
  const counts = now.decisionTimes.counts.map((one, i) => one - before.decisionTimes.counts[i]);
  const decided = counts.reduce((all, one) => all + one, 0);
  const waiting = Object.values(now.queues).reduce((all, one) => all + one, 0);
  const push = (chart, ...values) => values.forEach((value, i) => {
    chart.lines[i].push(value);
    if (chart.lines[i].length > POINTS) chart.lines[i].shift();
  });
  const ends = now.decisionTimes.endsMicroseconds;
  const [p50, p99] = [quantile(counts, ends, 0.5), quantile(counts, ends, 0.99)];
  push(charts.rate, decided / seconds);
  push(charts.latency, p50 ?? NaN, p99 ?? NaN);
  push(charts.waiting, waiting);
  charts.rate.value.textContent = count(decided / seconds);
  if (p50 !== null) charts.latency.value.textContent = `${microseconds(p50)} · ${microseconds(p99)}`;
  else if (!charts.latency.value.textContent) charts.latency.value.textContent = "–";
  charts.waiting.value.textContent = count(waiting);
}

/** The time that this part of the decisions did not exceed, to the end of its bucket. */
export function quantile(counts, ends, part) {
  const wanted = Math.max(1, Math.ceil(part * counts.reduce((all, one) => all + one, 0)));
  let seen = 0;
  for (let i = 0; i < counts.length; i += 1) {
    seen += counts[i];
    if (seen >= wanted) return ends[i];
  }
  return null;
}

function draw(charts) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  for (const [key, { canvas, lines, value }] of Object.entries(charts)) {
    sparkline(canvas, lines.filter((line, i) => i === 0 || line.length), [colour("--accent"), colour("--warm")]);
    canvas.setAttribute("aria-label", `${key}: ${value.textContent}`);
  }
}

function showFigures(place, now) {
  const { attempts, decisions, queues, preemption, cache, leader } = now;
  const fast = decisions.fast ?? 0;
  const all = Object.values(decisions).reduce((sum, one) => sum + one, 0);
  const queueWords = Object.entries(queues).filter(([, pods]) => pods).map(([name, pods]) => `${count(pods)} ${name}`).join(", ");
  fill(place,
    tile("Scheduled", count(attempts.scheduled ?? 0), `${count(attempts.unschedulable ?? 0)} times in vain, ${number(attempts.error ?? 0, "error")}`),
    tile("On the fast path", all ? `${Math.round(100 * fast / all)} %` : "–", `of ${number(all, "decision")}`),
    tile("Queue", count(Object.values(queues).reduce((sum, one) => sum + one, 0)), queueWords || "nobody waits"),
    tile("Preemptions", count(preemption.made), `${number(preemption.victims, "pod")} evicted, ${number(preemption.attempts, "attempt")}`),
    tile("Known", number(cache.nodes ?? 0, "node"), `${number(cache.pods ?? 0, "pod")}, ${count(cache.assumed_pods ?? 0)} being bound`),
    tile("Leader", LEADER[leader.state] ?? leader.state, leader.holder || "this one decides alone"),
    tile("Up for", span(now.uptimeSeconds)));
}

function showServices(place, { extenders, guests }) {
  const table = (title, services, heads, row) => Object.keys(services).length === 0 ? null : [h("h2", {}, title),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, Object.entries(services).map(([name, service]) => h("tr", {}, h("th", { scope: "row" }, name), row(service).map((cell) => h("td", {}, cell)))))))];
  fill(place,
    table("Extenders", extenders, ["Extender", "Health", "Calls"], (service) => {
      const { circuitOpen = 0, skipped = 0, ...calls } = service;
      const bad = (calls.failed ?? 0) + (calls.timeout ?? 0) + (calls.invalid ?? 0);
      const health = circuitOpen ? "circuit open" : bad ? "failed before" : "well";
      return [h("span", { class: `badge ${circuitOpen ? "bad" : bad ? "caution" : "good"}` }, health),
        [...Object.entries(calls), ["skipped", skipped]].filter(([, n]) => n).map(([name, n]) => `${count(n)} ${name}`).join(", ")];
    }),
    table("Guests", guests, ["Plugin", "Health", "Reloads"], ({ failures = 0, ...reloads }) => [
      h("span", { class: `badge ${failures ? "caution" : "good"}` }, failures ? number(failures, "failure") : "well"),
      Object.entries(reloads).map(([name, n]) => `${name.replace("reload ", "")}: ${count(n)}`).join(", ")]));
}

function decisionRow(decision) {
  const when = decision.time ? new Date(decision.time).toLocaleTimeString() : span(decision.after);
  const result = decision.result === "Scheduled"
    ? [h("span", { class: "badge good" }, "scheduled"), " ", h("a", { href: `#cluster/node/${decision.node}` }, decision.node),
      h("small", { class: "faint" }, ` best of ${count(decision.feasible)}${decision.total === null ? "" : `, total ${decision.total}`}${decision.ties > 1 ? `, ${decision.ties} tied` : ""}`)]
    : [h("span", { class: "badge bad" }, "no node"), " ", h("small", {}, decision.message)];
  return h("tr", {}, h("td", { class: "nowrap faint" }, when), h("td", {}, h("a", { href: `#decision/${decision.pod}` }, decision.pod)), h("td", {}, result));
}

async function showSummary(place) {
  const [{ summary }, { decisions }] = await Promise.all([ask("now"), ask("decisions", { limit: 200 })]);
  fill(place, h("h1", {}, "Now"),
    h("p", {}, "This is a cluster of files: its pending pods were scheduled once, offline, and nothing runs. With ",
      h("code", {}, "supercargo run"), " or ", h("code", {}, "supercargo demo"), " the figures here are live."),
    h("dl", { class: "tiles", id: "figures" }, tile("Decisions", count(summary.decisions)), tile("Scheduled", count(summary.scheduled)),
      tile("Still waiting", count(summary.waiting)), tile("Nodes", count(summary.nodes)), tile("Pods on nodes", count(summary.pods))),
    h("h2", {}, "Decisions, the last first"),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["After", "Pod", "Result"].map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", { id: "stream" }, decisions.map(decisionRow)))));
}
