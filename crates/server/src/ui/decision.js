// Decision: nodes × plugins with the sums, why not another node, who was refused why; and weights as sliders.

import { ask } from "./api.js";
import { announce, copyButton, fill, h, sortHead } from "./dom.js";
import { colours, gradient, inkOn, painted, size, step, timed } from "./paint.js";
import { ScoreTable, work } from "./rescore.js";
import { count, number } from "./words.js";

const ROWS_PER_PAGE = 40;
const MAX_SHOWN_PODS = 24;
/** So many nodes × pods are fetched for comparison, unless somebody asks for more. */
const MAX_COMPARED = 200000;
const MAX_WEIGHT = 1000;
const CONFIGURATION_AFTER_MILLISECONDS = 250;
const HEAT_ROW = 20;

globalThis.supercargoWork = work;

export async function showDecision(frame) {
  const { rest, place } = frame;
  const [{ decisions }, configuration] = await Promise.all([ask("decisions", { limit: 200 }), ask("configuration")]);
  let pod = rest.length >= 2 ? `${rest[0]}/${rest[1]}` : null;
  pod ??= (decisions.find((decision) => decision.result === "Scheduled") ?? decisions[0])?.pod;
  if (!pod) {
    fill(place, h("h1", {}, "Decision"), h("p", { class: "empty" }, "Nothing was decided yet."));
    return;
  }
  const view = new DecisionView(frame, configuration, decisions);
  view.build();
  await view.open(pod);
  if (rest[2]) await view.whyNot(rest[2]);
  if (!frame.about.live) view.compare();
}

class DecisionView {
  constructor(frame, configuration, decisions) {
    this.frame = frame;
    this.configuration = configuration;
    this.recent = [...new Set(decisions.map((decision) => decision.pod))];
    this.tables = new Map();
    this.failed = new Map();
    this.weights = new Map();
    this.sorting = { key: "total", down: true };
    this.page = 0;
  }

  build() {
    this.title = h("div", { class: "title" });
    this.shownPods = h("div", { class: "shown-pods" });
    this.sliders = h("div", { class: "sliders", id: "sliders" });
    this.verdict = h("p", { class: "verdict", id: "verdict", role: "status" });
    this.heat = h("canvas", { class: "heat", "aria-hidden": "true", on: { click: (event) => this.onHeatClick(event), mousemove: (event) => this.onHeatMove(event) } });
    this.heatText = h("p", { class: "faint", "aria-hidden": "true" });
    this.table = h("div", { class: "scroll", id: "scores" });
    this.rejected = h("div", {});
    this.whyPlace = h("div", { id: "why-not", "aria-live": "polite" });
    this.whyInput = h("input", { id: "why-node", placeholder: "node", "aria-label": "Node" });
    this.yaml = h("pre", { class: "yaml", id: "weights-yaml", tabIndex: 0 });
    this.yamlSection = h("div", { hidden: true, id: "resulting", class: "resulting" },
      h("details", {}, h("summary", {}, "The resulting configuration"), this.yaml), copyButton(() => this.yaml.textContent));
    const find = h("form", { class: "inline", on: { submit: (event) => { event.preventDefault(); const pod = this.podInput.value.trim(); if (pod) location.hash = `#decision/${pod.includes("/") ? pod : `default/${pod}`}`; } } },
      this.podInput = h("input", { id: "open-pod", list: "pods", placeholder: "namespace/pod", "aria-label": "Another pod" }),
      h("datalist", { id: "pods" }, this.recent.map((pod) => h("option", { value: pod }))), h("button", {}, "Explain"));
    const ask = h("form", { class: "inline", on: { submit: (event) => { event.preventDefault(); this.whyNot(this.whyInput.value.trim()); } } },
      this.whyInput, h("button", {}, "Why not this node?"));
    fill(this.frame.place,
      h("div", { class: "split decision" },
        h("aside", { class: "side", "aria-label": "Shown pods" }, find, this.shownPods),
        h("div", { class: "wide" }, this.title,
          h("section", { "aria-label": "Weights" }, h("div", { class: "head" }, h("h2", {}, "Weights"),
            h("button", { type: "button", id: "reset", on: { click: () => this.reset() } }, "Reset")), this.sliders, this.verdict, this.yamlSection),
          h("section", { "aria-label": "Scores" }, h("div", { class: "head" }, h("h2", {}, "Nodes × plugins"), this.legend = h("div", { class: "legend", "aria-hidden": "true" })),
            this.heat, this.heatText, this.table),
          h("section", { "aria-label": "Why not" }, h("h2", {}, "Why not another node?"), ask, this.whyPlace),
          h("section", { "aria-label": "Refused nodes" }, this.rejected))));
    const { signal } = this.frame;
    addEventListener("theme", () => this.show(), { signal });
    addEventListener("resize", () => this.paintHeat(), { signal });
  }

  /** The table of a pod, asked for once. */
  async tableOf(pod) {
    if (!this.tables.has(pod)) this.tables.set(pod, new ScoreTable(await ask("explain", { pod, form: "columns" })));
    return this.tables.get(pod);
  }

  async open(pod) {
    this.current = await this.tableOf(pod);
    this.profile = this.current.explanation.schedulerName ?? this.configuration.profiles[0]?.name;
    if (this.frame.signal.aborted) return;
    this.buildSliders();
    this.tellRejected();
    this.show();
  }

  /** The weights of the profile's score plugins, as configured. */
  configured() {
    const profile = this.configuration.profiles.find(({ name }) => name === this.profile);
    const points = profile?.points.find(({ point }) => point === "score");
    return points?.plugins ?? [];
  }

  buildSliders() {
    const scored = new Set(this.current.plugins.map(({ name }) => name));
    fill(this.sliders, this.configured().map(({ name, weight }, i) => {
      const id = `weight-${i}`;
      const most = Math.max(10, 2 * weight);
      const set = (value, source) => {
        const chosen = Math.max(0, Math.min(MAX_WEIGHT, Math.round(Number(value) || 0)));
        this.weights.set(name, chosen);
        if (source !== range) range.value = String(chosen);
        if (source !== exact) exact.value = String(chosen);
        row.classList.toggle("changed", chosen !== weight);
        this.soon();
      };
      const now = this.weights.get(name) ?? weight;
      const range = h("input", { id, type: "range", min: "0", max: String(most), step: "1", value: String(now), data: { plugin: name },
        on: { input: () => set(range.value, range) } });
      const exact = h("input", { type: "number", min: "0", max: String(MAX_WEIGHT), value: String(now), "aria-label": `${name}, exactly`,
        on: { input: () => set(exact.value, exact) } });
      const row = h("div", { class: `slider${now === weight ? "" : " changed"}` },
        h("label", { for: id }, name, scored.has(name) ? null : h("small", {}, " skipped this pod")), range, exact, h("small", { class: "faint" }, `was ${weight}`));
      return row;
    }));
  }

  /** The weights that differ from the configuration. */
  changed() {
    return this.configured().filter(({ name, weight }) => (this.weights.get(name) ?? weight) !== weight)
      .map(({ name }) => [name, this.weights.get(name)]);
  }

  reset() {
    this.weights.clear();
    this.buildSliders();
    this.show();
    announce("weights as configured");
  }

  /** Re-scores with the next frame, however often a slider moves before it. */
  soon() {
    this.due ??= requestAnimationFrame(() => {
      this.due = undefined;
      this.show();
    });
  }

  show() {
    this.outcome = this.current.rescore(this.weights);
    this.order();
    this.tellTitle();
    this.tellPods();
    this.tellVerdict();
    this.paintHeat();
    this.tellTable();
    clearTimeout(this.later);
    this.later = setTimeout(() => this.tellConfiguration(), CONFIGURATION_AFTER_MILLISECONDS);
  }

  tellTitle() {
    const { explanation, nodes } = this.current;
    const ended = { Unschedulable: "no node", Gated: "gated", Error: "failed" }[explanation.result];
    const facts = [];
    if (nodes.length) facts.push(`${number(nodes.length, "feasible node")} of ${count(explanation.evaluated)} looked at${explanation.stoppedEarly ? ` (${count(explanation.nodeCount)} in the cluster: the search stopped early)` : ""}`);
    if (explanation.best?.length > 1) facts.push(`${count(explanation.best.length)} tied for the best total`);
    facts.push(`profile ${this.profile}`);
    if (explanation.basis === "what-if") facts.push("as it would be decided now");
    fill(this.title, h("h1", {}, explanation.pod, h("span", { class: "arrow", "aria-hidden": "true" }, " → "),
      explanation.placed ? h("a", { href: `#cluster/node/${explanation.placed}`, id: "chosen" }, explanation.placed) : h("span", { class: "badge bad", id: "chosen" }, ended ?? explanation.result)),
    h("p", { class: "faint" }, facts.join(" · "), explanation.boundTo ? ` · runs on ${explanation.boundTo}` : "", " · ",
      h("a", { href: `#cluster/score/${explanation.pod}` }, "on the map")),
    explanation.message ? h("p", { class: "message" }, explanation.message) : null,
    explanation.victims.length ? h("p", {}, `Room is made on ${explanation.preemption.nominatedNode} by evicting `,
      explanation.victims.map((victim) => `${victim.pod} (priority ${victim.priority})`).join(", ")) : null);
  }

  tellVerdict() {
    const compared = [...this.tables.values()].filter((table) => table.chosen >= 0);
    const moving = compared.filter((table) => table.rescore(this.weights).moves);
    this.verdict.classList.toggle("moves", moving.length > 0);
    this.verdict.textContent = this.changed().length === 0
      ? "Move a slider: the shown pods are scored again at once, exactly as the engine would."
      : `${count(moving.length)} of ${number(compared.length, "shown pod")} would move.`;
  }

  tellPods() {
    const left = this.recent.filter((pod) => !this.tables.has(pod) && !this.failed.has(pod)).length;
    const rows = [...this.tables.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([pod, table]) => {
      const outcome = table.chosen >= 0 ? table.rescore(this.weights) : null;
      const current = table === this.current;
      return h("li", { class: outcome?.moves ? "moves" : "" },
        h("a", { href: `#decision/${pod}`, "aria-current": current ? "true" : undefined,
          on: { click: (event) => { event.preventDefault(); this.switchTo(pod); } } }, pod),
        h("small", {}, outcome === null ? "no node"
          : outcome.moves ? [h("s", {}, table.nodes[table.chosen]), " → ", h("b", {}, table.nodes[outcome.node])] : table.nodes[table.chosen]));
    });
    fill(this.shownPods, h("h2", {}, "Shown pods"), h("ul", { id: "shown" }, rows),
      left > 0 ? h("button", { type: "button", id: "compare", on: { click: () => this.compare(true) } }, `Compare ${number(Math.min(left, MAX_SHOWN_PODS), "more pod")}`) : null);
  }

  /** Another of the shown pods, with the weights as they are. */
  async switchTo(pod) {
    history.replaceState(null, "", `#decision/${pod}`);
    this.page = 0;
    fill(this.whyPlace);
    await this.open(pod);
    announce(pod);
  }

  /** Fetches the tables of more pods, one after the other. */
  async compare(more = false) {
    const limit = more ? this.tables.size + MAX_SHOWN_PODS : MAX_SHOWN_PODS;
    const { signal } = this.frame;
    for (const pod of this.recent) {
      const cells = [...this.tables.values()].reduce((all, table) => all + table.nodes.length, 0);
      if (signal.aborted || this.tables.size >= limit || (!more && cells > MAX_COMPARED)) break;
      if (this.tables.has(pod) || this.failed.has(pod)) continue;
      try {
        await this.tableOf(pod);
      } catch (error) {
        // It may have been deleted since.
        this.failed.set(pod, error);
      }
    }
    if (signal.aborted) return;
    this.tellPods();
    this.tellVerdict();
    this.frame.place.dataset.compared = String(this.tables.size);
  }

  order() {
    const { nodes, plugins } = this.current;
    const { totals } = this.outcome;
    const plugin = plugins.find(({ name }) => name === this.sorting.key);
    const value = this.sorting.key === "node" ? (node) => nodes[node]
      : plugin ? (node) => plugin.normalized[node] : (node) => totals[node];
    const sign = this.sorting.down ? -1 : 1;
    this.ordered = nodes.map((_, node) => node);
    this.ordered.sort((a, b) => {
      const [one, other] = [value(a), value(b)];
      return one < other ? -sign : one > other ? sign : nodes[a] < nodes[b] ? -1 : 1;
    });
  }

  /** All nodes from left to right, the plugins below each other: narrow nodes share a column. */
  paintHeat() {
    const { plugins, nodes } = this.current ?? { nodes: [] };
    this.heat.hidden = this.heatText.hidden = nodes.length === 0;
    if (nodes.length === 0) return;
    const width = Math.max(100, this.heat.parentElement.clientWidth);
    const rows = [null, ...plugins];
    const context = size(this.heat, width, rows.length * HEAT_ROW);
    const palette = colours("score");
    fill(this.legend, "0", h("span", { class: "ramp", style: { background: gradient("score") } }), "100 points before weighing");
    const { totals, best } = this.outcome;
    const least = totals.reduce((low, one) => Math.min(low, one), best);
    const columns = Math.min(nodes.length, Math.floor(width));
    timed(() => rows.forEach((plugin, row) => {
      for (let column = 0; column < columns; column += 1) {
        const from = Math.floor(column * nodes.length / columns);
        const to = Math.max(from + 1, Math.floor((column + 1) * nodes.length / columns));
        let sum = 0;
        for (let i = from; i < to; i += 1) {
          const node = this.ordered[i];
          sum += plugin ? plugin.normalized[node] / 100 : best === least ? 1 : (totals[node] - least) / (best - least);
        }
        context.fillStyle = palette[step(sum / (to - from))];
        const x = Math.floor(column * width / columns);
        context.fillRect(x, row * HEAT_ROW, Math.ceil(width / columns), HEAT_ROW - (row === 0 ? 3 : 1));
        painted.cells += 1;
      }
    }));
    if (!this.heatText.textContent) this.heatText.textContent = `All ${number(nodes.length, "node")} from left to right as sorted below; first the total, then ${plugins.map(({ name }) => name).join(", ")}.`;
  }

  heatNode(event) {
    const box = this.heat.getBoundingClientRect();
    const at = Math.floor((event.clientX - box.left) / box.width * this.ordered.length);
    return this.ordered[Math.max(0, Math.min(this.ordered.length - 1, at))];
  }

  onHeatMove(event) {
    const node = this.heatNode(event);
    const row = Math.floor((event.clientY - this.heat.getBoundingClientRect().top) / HEAT_ROW);
    const plugin = this.current.plugins[row - 1];
    this.heatText.textContent = `${this.current.nodes[node]}: ${plugin ? `${plugin.name} ${plugin.normalized[node]} (raw ${plugin.raw[node]})` : `total ${this.outcome.totals[node]}`}`;
  }

  onHeatClick(event) {
    this.page = Math.floor(this.ordered.indexOf(this.heatNode(event)) / ROWS_PER_PAGE);
    this.tellTable();
  }

  tellTable() {
    const { nodes, plugins, chosen } = this.current;
    if (nodes.length === 0) {
      fill(this.table, h("p", { class: "empty" }, "No node is feasible: nothing was scored."));
      return;
    }
    const { totals } = this.outcome;
    const palette = colours("score");
    const ranks = rankOf(totals);
    const pages = Math.ceil(nodes.length / ROWS_PER_PAGE);
    this.page = Math.min(this.page, pages - 1);
    const sort = (key) => {
      this.sorting = { key, down: this.sorting.key === key ? !this.sorting.down : key !== "node" };
      this.page = 0;
      this.order();
      this.paintHeat();
      this.tellTable();
      this.table.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
    };
    const turn = (by) => { this.page += by; this.tellTable(); };
    const weightOf = (plugin) => this.weights.get(plugin.name) ?? plugin.weight;
    const cell = (plugin, node) => {
      const colour = palette[step(plugin.normalized[node] / 100)];
      return h("td", { class: `number heat-cell${weightOf(plugin) === 0 ? " out" : ""}`, style: { background: colour, color: inkOn(colour) },
        title: `raw ${plugin.raw[node]} → ${plugin.normalized[node]} × ${weightOf(plugin)}` }, String(plugin.normalized[node] * weightOf(plugin)));
    };
    const row = (node) => {
      const isNew = this.outcome.moves && node === this.outcome.node;
      return h("tr", { class: [node === chosen ? "chosen" : "", isNew ? "would" : ""].join(" ") },
        h("td", { class: "number faint" }, String(ranks[node])),
        h("th", { scope: "row" }, h("button", { type: "button", class: "link", on: { click: () => this.whyNot(nodes[node]) } }, nodes[node]),
          node === chosen ? h("span", { class: "badge good" }, "chosen") : null, isNew ? h("span", { class: "badge caution" }, "would be chosen") : null),
        h("td", { class: "number total" }, String(totals[node])),
        plugins.map((plugin) => cell(plugin, node)));
    };
    fill(this.table,
      h("table", { class: "scores" }, h("caption", { class: "unseen" }, "Points by node and plugin"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number" }, "Rank"), sortHead("Node", "node", this.sorting, sort),
          sortHead("Total", "total", this.sorting, sort, { class: "number" }),
          plugins.map((plugin) => sortHead(`${plugin.name} × ${weightOf(plugin)}`, plugin.name, this.sorting, sort, { class: "number plugin" })))),
        h("tbody", {}, this.ordered.slice(this.page * ROWS_PER_PAGE, (this.page + 1) * ROWS_PER_PAGE).map(row))),
      pages > 1 ? h("div", { class: "pager" }, h("button", { type: "button", disabled: this.page === 0, on: { click: () => turn(-1) } }, "Before"),
        h("span", {}, `page ${this.page + 1} of ${pages}`),
        h("button", { type: "button", disabled: this.page >= pages - 1, on: { click: () => turn(1) } }, "After")) : null);
  }

  tellRejected() {
    const { rejections, ruledOut, kinds, skippedPlugins, allotments = [] } = this.current.explanation;
    const names = (nodes) => [nodes.slice(0, 200).map((name) => [h("button", { type: "button", class: "link", on: { click: () => this.whyNot(name) } }, name), " "]),
      nodes.length > 200 ? `and ${count(nodes.length - 200)} more` : null];
    const group = (plugin, reason, nodes) => {
      const alike = kinds.filter((kind) => kind.reason === reason).map((kind) => `${count(kind.count)} ${kind.kind}`).join(", ");
      return h("details", {}, h("summary", {}, h("b", {}, count(nodes.length)), ` ${reason} `, h("small", { class: "faint" }, [plugin, alike].filter(Boolean).join(" · "))), h("p", { class: "names" }, names(nodes)));
    };
    const all = rejections.reduce((sum, one) => sum + one.count, 0) + (ruledOut?.nodes.length ?? 0);
    fill(this.rejected,
      allotments.map(({ node, plugin, details }) => [h("h2", {}, `Allotted on ${node} by ${plugin}`), h("ul", {}, details.map(({ text }) => h("li", {}, text)))]),
      h("h2", {}, `Refused: ${number(all, "node")}`),
      rejections.map(({ plugin, reason, nodes }) => group(plugin, reason, nodes)),
      ruledOut ? group("ruled out unseen", ruledOut.reason, ruledOut.nodes) : null,
      skippedPlugins.length ? h("p", { class: "faint" }, `Plugins that skipped this pod: ${skippedPlugins.join(", ")}.`) : null);
    this.heatText.textContent = "";
  }

  async whyNot(node) {
    if (!node) return;
    this.whyInput.value = node;
    try {
      const { whyNot, basis } = await ask("explain", { pod: this.current.pod, node, form: "columns" });
      if (!this.frame.signal.aborted) fill(this.whyPlace, whyNot.map((one) => whyNotText(one, basis)));
      this.whyPlace.scrollIntoView({ block: "nearest" });
      this.frame.tellProblem(null);
    } catch (error) {
      this.frame.tellProblem(error);
    }
  }

  async tellConfiguration() {
    const changed = this.changed();
    this.yamlSection.hidden = changed.length === 0;
    if (changed.length === 0) return;
    try {
      const { yaml } = await ask("configuration", { profile: this.profile, weight: changed.map(([name, weight]) => `${name}=${weight}`) });
      if (!this.frame.signal.aborted) this.yaml.textContent = yaml;
    } catch (error) {
      this.frame.tellProblem(error);
    }
  }
}

/** One more than the number of nodes with a higher total, for each. */
function rankOf(totals) {
  const sorted = Float64Array.from(totals).sort().reverse();
  const ranks = new Map();
  sorted.forEach((total, i) => { if (!ranks.has(total)) ranks.set(total, i + 1); });
  return Array.from(totals, (total) => ranks.get(total));
}

function whyNotText(one) {
  const lines = [];
  if (!one.exists) lines.push(h("p", {}, "There is no such node."));
  else if (one.chosen) lines.push(h("p", {}, `It is the one: total ${one.total}.`));
  else if (one.feasible && one.rank) {
    lines.push(h("p", {}, `It would do: rank ${one.rank}, total ${one.total}, ${one.behind === 0 ? "tied with the best" : `${one.behind} points behind the best`}.`));
    if (one.plugins.length) lines.push(h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["Plugin", "Points", "Chosen node", "Behind"].map((head, i) => h("th", { scope: "col", class: i ? "number" : "" }, head)))),
      h("tbody", {}, one.plugins.map((gap) => h("tr", {}, h("th", { scope: "row" }, gap.plugin), [gap.points, gap.chosen, gap.behind].map((value) => h("td", { class: "number" }, String(value))))))));
  } else if (one.feasible) lines.push(h("p", {}, "It would do, and the search did not get to it."));
  for (const objection of one.objections) {
    lines.push(h("div", { class: "objection" }, h("b", {}, objection.plugin), " refuses it", objection.forNominated ? ", because of pods that are nominated to it" : "", ": ", objection.reasons.join(", "),
      objection.reported ? null : h("small", { class: "faint" }, " (asked after the first refusal)"),
      h("ul", {}, objection.details.map((detail) => h("li", {}, detail.text)))));
  }
  return h("div", { class: "why" }, h("h3", {}, one.node), lines);
}
