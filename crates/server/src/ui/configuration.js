// Configuration: what is in force, by profile and extension point, with warnings.

import { ask } from "./api.js";
import { copyButton, fill, h } from "./dom.js";

export async function showConfiguration({ place }) {
  const { profiles, settings, extenders, warnings, yaml } = await ask("configuration");
  fill(place, h("h1", {}, "Effective configuration"),
    warnings.length ? h("section", { class: "warnings" }, h("h2", {}, "Warnings"), warnings.map((warning) => h("pre", {}, warning)))
      : h("p", { class: "faint", id: "no-warnings" }, "No warnings."),
    profiles.map((profile) => h("section", {}, h("h2", {}, "Profile ", h("code", {}, profile.name)),
      h("ol", { class: "points" }, profile.points.map(({ point, plugins }) => h("li", {}, h("h3", {}, point),
        h("ul", {}, plugins.map(({ name, weight }) => h("li", {}, h("span", {}, name), weight === undefined ? null : h("b", {}, `× ${weight}`))))))))),
    h("section", {}, h("h2", {}, "Settings"),
      h("table", { class: "plain" }, h("tbody", {}, settings.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value))))),
      extenders.length ? [h("h2", {}, "Extenders"), h("ul", {}, extenders.map((extender) => h("li", {}, h("code", {}, extender))))] : null),
    h("section", {}, h("h2", {}, "All of it, written out "), copyButton(() => yaml), h("pre", { class: "yaml", tabIndex: 0 }, yaml)));
}
