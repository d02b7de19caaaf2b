// Makes elements. Texts stay texts: nothing here turns them into markup.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "tabIndex", "selected"]);

/** An element: `on` has its listeners, everything else is an attribute, or a property where that matters. */
export function h(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false && !PROPERTIES.has(name)) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Puts children in the place of those that an element has. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** Tells people who do not see the page. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** A figure with a name. */
export function tile(name, value, more) {
  return h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, more) : null));
}

/** A bar that shows a part of a whole, with its text beside it. */
export function meter(part, label) {
  const percent = Math.max(0, Math.min(100, 100 * part));
  const kind = part > 0.9 ? "high" : part > 0.75 ? "raised" : "";
  return h("span", { class: `meter ${kind}`, role: "img", "aria-label": label },
    h("span", { style: { width: `${percent}%` } }));
}

/** A button that copies a text. */
export function copyButton(text) {
  const button = h("button", { type: "button", on: { click: copy } }, "Copy");
  async function copy() {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the text and copy it";
    }
    announce(button.textContent);
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }
  return button;
}

/** A name that may be broken between its words. */
export function breakable(name) {
  return name.split(/(?<=[a-z])(?=[A-Z])/).flatMap((word, i) => (i ? [h("wbr"), word] : [word]));
}

/** The head of a column that rows can be sorted by. */
export function sortHead(name, key, sorting, onSort, more = {}) {
  const now = sorting.key === key;
  const direction = now ? (sorting.down ? "descending" : "ascending") : "none";
  return h("th", { scope: "col", "aria-sort": direction, ...more },
    h("button", { type: "button", class: "sort", data: { key }, on: { click: () => onSort(key) } },
      h("span", {}, breakable(name)), h("span", { "aria-hidden": "true" }, now ? (sorting.down ? " ↓" : " ↑") : "")));
}
