// Cluster: every node as a cell, by zone, coloured by its load or by its score for a pod.

import { ask, repeat } from "./api.js";
import { announce, fill, h, meter, sortHead, tile } from "./dom.js";
import { CellGrid, EMPTY, REFUSED, colours, gradient, step, timed } from "./paint.js";
import { amount, count, number, percent } from "./words.js";

const REFRESH_MILLISECONDS = 2000;
const ROWS_PER_PAGE = 100;
const MIN_CELL = 3;
const MAX_CELL = 104;
/** Larger cells are for clusters so small that nodes can be named in them. */
const MAX_PLAIN_CELL = 26;
const MAX_NAMED_NODES = 60;
const MIN_ZONE_WIDTH = 250;
const STATES = [[1, "cordoned"], [2, "not ready"], [4, "tainted"]];

const statesOf = (state) => STATES.filter(([bit]) => state & bit).map(([, word]) => word).join(", ");

export async function showCluster(frame) {
  const view = new ClusterView(frame);
  await view.load();
  view.build();
  if (frame.rest[0] === "score" && frame.rest.length >= 3) await view.colourByScore(`${frame.rest[1]}/${frame.rest[2]}`);
  if (frame.rest[0] === "node" && frame.rest[1]) view.select(view.nodes.names.indexOf(frame.rest[1]));
  if (frame.about.live) repeat(REFRESH_MILLISECONDS, frame.signal, () => view.refresh(), frame.tellProblem);
}

class ClusterView {
  constructor(frame) {
    this.frame = frame;
    this.state = undefined;
    this.resource = 0;
    this.scores = null;
    this.cursor = -1;
    this.asTable = false;
    this.sorting = { key: "name", down: false };
    this.page = 0;
    this.filter = "";
  }

  async load() {
    const known = this.generation;
    const answer = await ask("cluster", { known, state: this.state });
    this.generation = answer.generation;
    this.used = answer.used;
    if (answer.nodes) {
      this.nodes = answer.nodes;
      this.starts = this.nodes.zones.map((_, zone) => this.nodes.zone.indexOf(zone));
      this.starts.push(this.nodes.names.length);
    }
    return Boolean(answer.nodes);
  }

  async refresh() {
    const otherNodes = await this.load();
    if (this.frame.signal.aborted) return;
    this.tellTotals();
    if (otherNodes) this.buildZones();
    else this.paint();
  }

  build() {
    const { place, about, signal } = this.frame;
    const { resources } = this.nodes;
    this.totals = h("dl", { class: "tiles" });
    this.by = h("select", { id: "colour-by", on: { change: () => this.onColourBy() } },
      resources.map((name, i) => h("option", { value: String(i) }, name)),
      h("option", { value: "score" }, "score for a pod"));
    this.pod = h("input", { id: "score-pod", list: "score-pods", placeholder: "namespace/pod", hidden: true, "aria-label": "Score for this pod",
      on: { change: () => this.colourByScore(this.pod.value.trim()) } });
    this.pods = h("datalist", { id: "score-pods" });
    this.search = h("input", { id: "find-node", type: "search", placeholder: "Find a node", "aria-label": "Find a node",
      on: { input: () => this.onSearch() } });
    this.tableButton = h("button", { type: "button", id: "as-table", "aria-pressed": "false", on: { click: () => this.toggleTable() } }, "Table");
    const states = about.live ? null : h("label", {}, "State ",
      h("select", { id: "cluster-state", on: { change: (event) => this.onState(event.target.value) } },
        h("option", { value: "" }, "with the pending pods scheduled"), h("option", { value: "before" }, "as it was read")));
    this.legend = h("div", { class: "legend", "aria-hidden": "true" });
    this.zones = h("div", { class: "zones", id: "map", tabIndex: 0, role: "application", "aria-roledescription": "map of nodes",
      "aria-label": "Nodes by zone. Arrow keys go from node to node, Enter shows one. The button Table shows the same as a table.",
      on: { keydown: (event) => this.onKey(event) } });
    this.table = h("div", { class: "scroll", id: "node-table", hidden: true });
    this.detail = h("aside", { class: "detail", "aria-label": "Node", hidden: true });
    this.tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.hover = h("div", { class: "hover" });
    this.mark = h("div", { class: "mark" });
    this.star = h("div", { class: "star" });
    fill(place,
      h("h1", { class: "unseen" }, "Cluster"),
      this.totals,
      h("div", { class: "toolbar" }, h("label", {}, "Colour by ", this.by), this.pod, this.pods, states, this.search, this.tableButton, this.legend),
      h("div", { class: "split" }, h("div", { class: "wide" }, this.zones, this.table), this.detail), this.tip);
    this.tellTotals();
    this.buildZones();
    const repaint = () => { this.grids?.forEach((grid) => grid.forget()); this.paint(); };
    addEventListener("theme", repaint, { signal });
    let width = this.zones.clientWidth;
    const observer = new ResizeObserver(() => {
      if (this.zones.clientWidth !== width && this.zones.clientWidth > 0) {
        width = this.zones.clientWidth;
        this.buildZones();
      }
    });
    observer.observe(this.zones);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  tellTotals() {
    const { names, zones, resources, allocatable, state } = this.nodes;
    const sum = (column) => column.reduce((all, one) => all + one, 0);
    const part = (i) => sum(this.used[i]) / sum(allocatable[i]);
    const pods = sum(this.used[resources.indexOf("pods")]);
    const apart = state.filter((one) => one & 3).length;
    const more = resources.map((name, i) => ({ name, i })).filter(({ name, i }) =>
      name !== "pods" && name !== "ephemeral-storage" && sum(allocatable[i]) > 0);
    fill(this.totals,
      tile("Nodes", count(names.length), `${number(zones.length, "zone")}${apart ? `, ${count(apart)} cordoned or not ready` : ""}`),
      tile("Pods", count(pods)),
      more.slice(0, 4).map(({ name, i }) => tile(name, percent(part(i)), [meter(part(i), `${name}: ${percent(part(i))}`),
        `${amount(name, sum(this.used[i]))} of ${amount(name, sum(allocatable[i]))}`])));
  }

  buildZones() {
    const { zones } = this.nodes;
    const width = this.zones.clientWidth || 800;
    const perRow = Math.max(1, Math.min(zones.length, Math.floor(width / MIN_ZONE_WIDTH)));
    const inner = Math.floor((width - (perRow - 1) * 16) / perRow) - 26;
    const rows = Math.ceil(zones.length / perRow);
    const largest = Math.max(1, ...zones.map((_, zone) => this.starts[zone + 1] - this.starts[zone]));
    const height = Math.max(140, innerHeight * 0.6 / rows);
    const cell = Math.max(MIN_CELL, Math.min(this.nodes.names.length <= MAX_NAMED_NODES ? MAX_CELL : MAX_PLAIN_CELL, Math.floor(Math.sqrt(inner * height / largest))));
    const columns = Math.max(1, Math.floor(inner / cell));
    this.zones.style.setProperty("--zones", perRow);
    this.heads = [];
    this.grids = zones.map(() => new CellGrid(h("canvas", { "aria-hidden": "true" })));
    this.frames = zones.map((name, zone) => {
      const head = h("figcaption", {});
      this.heads.push(head);
      const grid = this.grids[zone];
      grid.layOut(this.starts[zone + 1] - this.starts[zone], columns, cell);
      const box = h("div", { class: "cells", on: {
        mousemove: (event) => this.onHover(zone, event), mouseleave: () => this.endHover(),
        click: (event) => this.select(this.nodeAt(zone, event)) } }, grid.canvas);
      return h("figure", { class: "zone", data: { zone: name } }, head, box);
    });
    fill(this.zones, this.frames);
    this.putMark();
    this.paint();
    if (this.asTable) this.showTable();
  }

  /** The part of a node that colours it. */
  part(node) {
    if (this.scores) return this.scores.parts.get(node) ?? NaN;
    return this.used[this.resource][node] / this.nodes.allocatable[this.resource][node];
  }

  paint() {
    if (!this.grids) return;
    const scale = this.scores ? "score" : "load";
    const palette = colours(scale);
    timed(() => this.grids.forEach((grid, zone) => {
      const start = this.starts[zone];
      const steps = new Uint8Array(this.starts[zone + 1] - start);
      for (let i = 0; i < steps.length; i += 1) {
        const node = start + i;
        const part = this.part(node);
        steps[i] = Number.isNaN(part) ? (this.scores ? REFUSED : EMPTY) : step(part);
      }
      grid.paint(steps, palette, (i) => this.lines(start + i));
    }));
    this.tellZones();
    const ends = this.scores
      ? [String(this.scores.least), String(this.scores.most), `total for ${this.scores.pod}`]
      : ["0 %", "100 %", this.nodes.resources[this.resource]];
    fill(this.legend, ends[0], h("span", { class: "ramp", style: { background: gradient(scale) } }), ends[1],
      this.scores ? [h("span", { class: "swatch", style: { background: palette[REFUSED] } }), "refused"] : null);
    this.putStar();
  }

  tellZones() {
    this.nodes.zones.forEach((name, zone) => {
      const [start, end] = [this.starts[zone], this.starts[zone + 1]];
      const label = name || "no zone";
      if (this.scores) {
        let feasible = 0;
        for (let node = start; node < end; node += 1) feasible += this.scores.parts.has(node) ? 1 : 0;
        fill(this.heads[zone], h("b", {}, label), h("span", {}, `${count(feasible)} of ${number(end - start, "node")} feasible`));
        return;
      }
      let used = 0, all = 0;
      for (let node = start; node < end; node += 1) {
        used += this.used[this.resource][node];
        all += this.nodes.allocatable[this.resource][node];
      }
      const part = all ? used / all : 0;
      fill(this.heads[zone], h("b", {}, label), h("span", {}, number(end - start, "node")), meter(part, percent(part)), h("span", {}, percent(part)));
    });
  }

  nodeAt(zone, event) {
    const box = this.grids[zone].canvas.getBoundingClientRect();
    const i = this.grids[zone].at(event.clientX - box.left, event.clientY - box.top);
    return i < 0 ? -1 : this.starts[zone] + i;
  }

  onHover(zone, event) {
    const node = this.nodeAt(zone, event);
    if (node < 0) return this.endHover();
    this.putOver(this.hover, node);
    fill(this.tip, h("b", {}, this.nodes.names[node]), h("br"), this.inWords(node));
    this.tip.hidden = false;
    const x = Math.min(event.clientX + 14, innerWidth - 240);
    this.tip.style.left = `${x}px`;
    this.tip.style.top = `${event.clientY + 16}px`;
  }

  endHover() {
    this.tip.hidden = true;
    this.hover.remove();
  }

  inWords(node) {
    const { resources, allocatable, state } = this.nodes;
    const states = statesOf(state[node]);
    const pods = this.used[resources.indexOf("pods")][node];
    if (this.scores) {
      const total = this.scores.totals.get(node);
      return total === undefined ? `refused: ${this.scores.reasons.get(node) ?? "not looked at"}` : `total ${total}, rank ${this.scores.ranks.get(node)}`;
    }
    const i = this.resource;
    const load = `${resources[i]} ${percent(this.part(node))} (${amount(resources[i], this.used[i][node])} of ${amount(resources[i], allocatable[i][node])})`;
    return `${load}, ${number(pods, "pod")}${states ? `, ${states}` : ""}`;
  }

  /** What is written in a large cell. */
  lines(node) {
    const pods = this.used[this.nodes.resources.indexOf("pods")][node];
    const first = this.scores ? (this.scores.totals.has(node) ? `total ${this.scores.totals.get(node)}` : "refused") : percent(this.part(node));
    return [this.nodes.names[node], first, number(pods, "pod"), statesOf(this.nodes.state[node] & 3)];
  }

  zoneOf(node) {
    return this.nodes.zone[node];
  }

  /** Puts something over a node's cell. */
  putOver(element, node) {
    const zone = this.zoneOf(node);
    const { left, top, size } = this.grids[zone].place(node - this.starts[zone]);
    element.style.left = `${left}px`;
    element.style.top = `${top}px`;
    element.style.width = element.style.height = `${size}px`;
    this.frames[zone].lastElementChild.append(element);
  }

  putMark() {
    if (this.cursor >= 0 && this.cursor < this.nodes.names.length) this.putOver(this.mark, this.cursor);
    else this.mark.remove();
  }

  putStar() {
    if (this.scores && this.scores.chosen >= 0) this.putOver(this.star, this.scores.chosen);
    else this.star.remove();
  }

  onKey(event) {
    const zone = this.cursor < 0 ? 0 : this.zoneOf(this.cursor);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.grids[zone].columns, ArrowUp: -this.grids[zone].columns };
    const last = this.nodes.names.length - 1;
    let next = null;
    if (event.key in steps) next = this.cursor < 0 ? 0 : Math.max(0, Math.min(last, this.cursor + steps[event.key]));
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else if (event.key === "PageDown") next = this.starts[Math.min(zone + 1, this.nodes.zones.length - 1)];
    else if (event.key === "PageUp") next = this.starts[Math.max(zone - 1, 0)];
    else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.select(this.cursor);
      return;
    } else return;
    event.preventDefault();
    this.cursor = next;
    this.putMark();
    announce(`${this.nodes.names[next]}, ${this.nodes.zones[this.zoneOf(next)] || "no zone"}: ${this.inWords(next)}`);
  }

  onSearch() {
    const wanted = this.search.value.trim();
    this.filter = wanted;
    this.page = 0;
    if (this.asTable) return this.showTable();
    if (!wanted) return;
    const found = this.nodes.names.findIndex((name) => name.includes(wanted));
    if (found >= 0) {
      this.cursor = found;
      this.putMark();
      announce(`${this.nodes.names[found]}: ${this.inWords(found)}`);
    } else announce("no such node");
  }

  async select(node) {
    if (node < 0) return;
    this.cursor = node;
    this.putMark();
    try {
      const detail = await ask("node", { name: this.nodes.names[node], state: this.state });
      if (!this.frame.signal.aborted) this.showDetail(detail, node);
    } catch (error) {
      this.frame.tellProblem(error);
    }
  }

  showDetail(detail, node) {
    const states = statesOf(detail.state);
    const heading = h("h2", { tabIndex: -1 }, detail.name);
    fill(this.detail,
      h("button", { type: "button", class: "quiet close", "aria-label": "Close", on: { click: () => { this.detail.hidden = true; this.zones.focus(); } } }, "×"),
      heading,
      h("p", { class: "faint" }, [detail.zone || "no zone", states].filter(Boolean).join(" · ")),
      this.scores ? h("p", {}, `For ${this.scores.pod}: ${this.inWords(node)}. `,
        h("a", { href: `#decision/${this.scores.pod}/${detail.name}` }, "Why?")) : null,
      h("table", { class: "plain" }, h("caption", { class: "unseen" }, "Resources"),
        h("tbody", {}, detail.resources.map(({ name, allocatable, used }) => h("tr", {}, h("th", { scope: "row" }, name),
          h("td", {}, meter(used / allocatable, percent(used / allocatable))), h("td", { class: "number" }, percent(used / allocatable)),
          h("td", { class: "number faint" }, `${amount(name, used)} of ${amount(name, allocatable)}`))))),
      detail.taints.length ? h("p", {}, "Taints: ", detail.taints.map((taint) => h("code", {}, taint, " "))) : null,
      h("h3", {}, number(detail.podCount, "pod")),
      h("div", { class: "scroll short" }, h("table", { class: "plain" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Pod"), h("th", { scope: "col", class: "number" }, "Priority"), h("th", { scope: "col", class: "number" }, "Holds"))),
        h("tbody", {}, detail.pods.map((pod) => h("tr", {}, h("td", {}, h("a", { href: `#decision/${pod.pod}` }, pod.pod), pod.terminating ? " (terminating)" : ""),
          h("td", { class: "number" }, String(pod.priority)),
          h("td", { class: "number" }, Object.entries(pod.held).map(([name, held]) => amount(name, held)).join(", ") || "–")))))),
      h("details", {}, h("summary", {}, number(Object.keys(detail.labels).length, "label")),
        h("ul", { class: "labels" }, Object.entries(detail.labels).map(([key, value]) => h("li", {}, h("code", {}, `${key}=${value}`))))));
    this.detail.hidden = false;
    heading.focus({ preventScroll: innerWidth > 900 });
  }

  async onColourBy() {
    const byScore = this.by.value === "score";
    this.pod.hidden = !byScore;
    if (!byScore) {
      this.scores = null;
      this.resource = Number(this.by.value);
      this.grids.forEach((grid) => grid.forget());
      this.paint();
      if (this.asTable) this.showTable();
      return;
    }
    const { decisions } = await ask("decisions", { limit: 50 });
    const pods = [...new Set(decisions.map((decision) => decision.pod))];
    fill(this.pods, pods.map((pod) => h("option", { value: pod })));
    if (pods.length && !this.pod.value) await this.colourByScore(pods[0]);
    this.pod.focus();
  }

  async colourByScore(pod) {
    try {
      const explanation = await ask("explain", { pod, form: "columns" });
      if (this.frame.signal.aborted) return;
      this.scores = scoresByNode(explanation, this.nodes.names);
      this.by.value = "score";
      this.pod.hidden = false;
      this.pod.value = pod;
      this.frame.tellProblem(null);
      this.grids.forEach((grid) => grid.forget());
      this.paint();
      announce(`coloured by the score for ${pod}`);
    } catch (error) {
      this.frame.tellProblem(error);
    }
  }

  async onState(state) {
    this.state = state || undefined;
    await this.refresh();
  }

  toggleTable() {
    this.asTable = !this.asTable;
    this.tableButton.setAttribute("aria-pressed", String(this.asTable));
    this.zones.hidden = this.asTable;
    this.table.hidden = !this.asTable;
    if (this.asTable) this.showTable();
    else this.buildZones();
  }

  /** The same as the map, for who cannot see it or wants numbers. */
  showTable() {
    const { names, zones, zone, resources, allocatable, state } = this.nodes;
    const shown = resources.map((name, i) => ({ name, i })).filter(({ i }) => allocatable[i].some((one) => one > 0));
    const load = (i, node) => allocatable[i][node] ? this.used[i][node] / allocatable[i][node] : -1;
    const keys = { name: (node) => names[node], zone: (node) => zones[zone[node]], state: (node) => state[node] };
    shown.forEach(({ name, i }) => { keys[name] = (node) => load(i, node); });
    const rows = names.map((_, node) => node).filter((node) => !this.filter || names[node].includes(this.filter));
    const value = keys[this.sorting.key];
    const sign = this.sorting.down ? -1 : 1;
    rows.sort((a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : a - b));
    const pages = Math.max(1, Math.ceil(rows.length / ROWS_PER_PAGE));
    this.page = Math.min(this.page, pages - 1);
    const sort = (key) => {
      this.sorting = { key, down: this.sorting.key === key ? !this.sorting.down : !["name", "zone"].includes(key) };
      this.showTable();
      this.table.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
    };
    const head = (name, key, more) => sortHead(name, key, this.sorting, sort, more);
    const turn = (by) => { this.page += by; this.showTable(); };
    fill(this.table,
      h("table", {}, h("caption", { class: "unseen" }, "Nodes"),
        h("thead", {}, h("tr", {}, head("Node", "name"), head("Zone", "zone"), shown.map(({ name }) => head(name, name, { class: "number" })), head("State", "state"))),
        h("tbody", {}, rows.slice(this.page * ROWS_PER_PAGE, (this.page + 1) * ROWS_PER_PAGE).map((node) => h("tr", {},
          h("th", { scope: "row" }, h("button", { type: "button", class: "link", on: { click: () => this.select(node) } }, names[node])),
          h("td", {}, zones[zone[node]]),
          shown.map(({ i }) => h("td", { class: "number" }, load(i, node) < 0 ? "–" : percent(load(i, node)))),
          h("td", {}, statesOf(state[node])))))),
      h("div", { class: "pager" }, h("button", { type: "button", disabled: this.page === 0, on: { click: () => turn(-1) } }, "Before"),
        h("span", {}, `page ${this.page + 1} of ${pages}, ${number(rows.length, "node")}`),
        h("button", { type: "button", disabled: this.page >= pages - 1, on: { click: () => turn(1) } }, "After")));
  }
}

/** An explanation's totals by the places of the nodes. */
function scoresByNode(explanation, names) {
  const places = new Map(names.map((name, node) => [name, node]));
  const { nodes, totals } = explanation.table;
  const scores = { pod: explanation.pod, parts: new Map(), totals: new Map(), ranks: new Map(), reasons: new Map(), chosen: -1 };
  const most = totals[0] ?? 0;
  const least = totals.at(-1) ?? 0;
  Object.assign(scores, { most, least });
  let rank = 1;
  nodes.forEach((name, i) => {
    const node = places.get(name);
    if (node === undefined) return;
    if (totals[i] !== totals[i - 1]) rank = i + 1;
    scores.totals.set(node, totals[i]);
    scores.ranks.set(node, rank);
    scores.parts.set(node, most === least ? 1 : (totals[i] - least) / (most - least));
  });
  for (const group of explanation.rejections) {
    for (const name of group.nodes) scores.reasons.set(places.get(name), group.reason);
  }
  for (const name of explanation.ruledOut?.nodes ?? []) scores.reasons.set(places.get(name), explanation.ruledOut.reason);
  scores.chosen = places.get(explanation.placed) ?? -1;
  return scores;
}
