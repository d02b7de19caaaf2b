// Colours and canvases.

/** How much was painted, and how long the last time took: for tests, and for whoever wonders. */
export const painted = { cells: 0, frames: 0, lastMilliseconds: 0 };
globalThis.supercargoPainted = painted;

export const STEPS = 64;
/** After the steps of a scale: a node that is out of the question, and one without a value. */
export const REFUSED = STEPS;
export const EMPTY = STEPS + 1;

const SCALES = {
  dark: {
    load: ["#1c2a36", "#1f5673", "#2a9d8f", "#e9c46a", "#f4843c", "#e5383b"],
    score: ["#33264f", "#3b528b", "#21918c", "#5ec962", "#c8e020", "#fde725"],
    refused: "#3a2328",
    empty: "#18212a",
  },
  light: {
    load: ["#dfe8ee", "#a8d5e2", "#48b5a3", "#f2c14e", "#f08a4b", "#d62839"],
    score: ["#e4dcf1", "#a5b1dd", "#54b3ac", "#5fc062", "#b5cf2b", "#f1d802"],
    refused: "#f0d9d9",
    empty: "#eef2f5",
  },
};

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colours of a scale, by step; then those of a refused node and of none. */
export function colours(scale) {
  const theme = SCALES[isDark() ? "dark" : "light"];
  const stops = theme[scale].map(channels);
  const steps = Array.from({ length: STEPS }, (_, step) => {
    const at = step / (STEPS - 1) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    return css(stops[low].map((channel, i) => channel + (stops[low + 1][i] - channel) * (at - low)));
  });
  return [...steps, theme.refused, theme.empty];
}

/** A scale as the background of a legend. */
export function gradient(scale) {
  return `linear-gradient(to right, ${SCALES[isDark() ? "dark" : "light"][scale].join(", ")})`;
}

/** Which step a part of a whole falls into. */
export function step(part) {
  if (!Number.isFinite(part)) return EMPTY;
  return Math.max(0, Math.min(STEPS - 1, Math.round(part * (STEPS - 1))));
}

function channels(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

function css(channels) {
  return `rgb(${channels.map(Math.round).join(" ")})`;
}

/** What can be read on a colour. */
export function inkOn(colour) {
  const [red, green, blue] = colour.startsWith("#") ? channels(colour) : colour.match(/\d+/g).map(Number);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? "#10202b" : "#f4f8fa";
}

/** Makes a canvas as sharp as the screen. */
export function size(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** The end of a name tells nodes apart, so that its beginning gives way. */
function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text;
  while (end.length > 1 && context.measureText(`…${end}`).width > width) end = end.slice(1);
  return `…${end}`;
}

const MIN_LABELLED_CELL = 72;

/** A grid of cells that paints only what has changed since the last time. */
export class CellGrid {
  constructor(canvas) {
    this.canvas = canvas;
    this.shown = new Uint8Array(0);
  }

  /** So many cells of that size in rows of that length. */
  layOut(cells, columns, cell) {
    this.columns = columns;
    this.cell = cell;
    this.gap = cell >= 10 ? 2 : cell >= 5 ? 1 : 0;
    const rows = Math.max(1, Math.ceil(cells / columns));
    this.context = size(this.canvas, columns * cell, rows * cell);
    this.shown = new Uint8Array(cells).fill(255);
  }

  /** Paints each cell in the colour of its step; with lines of text, where there is room for them. */
  paint(steps, colours, linesOf) {
    const writes = linesOf && this.cell >= MIN_LABELLED_CELL;
    const { context, shown, columns, cell, gap } = this;
    let last = -1;
    for (let i = 0; i < steps.length; i += 1) {
      const step = steps[i];
      if (shown[i] === step) continue;
      shown[i] = step;
      painted.cells += 1;
      if (step !== last) {
        context.fillStyle = colours[step];
        last = step;
      }
      const x = (i % columns) * cell;
      const y = Math.floor(i / columns) * cell;
      context.fillRect(x, y, cell - gap, cell - gap);
      if (writes) {
        this.write(linesOf(i), x, y, inkOn(colours[step]));
        last = -1;
      }
    }
  }

  write([name, ...rest], x, y, ink) {
    const { context, cell } = this;
    const fonts = getComputedStyle(document.body).fontFamily;
    context.fillStyle = ink;
    context.font = `600 ${cell > 90 ? 12 : 10}px ${fonts}`;
    context.fillText(fitting(context, name, cell - 18), x + 8, y + 18);
    context.font = `${cell > 90 ? 11 : 10}px ${fonts}`;
    rest.forEach((line, i) => context.fillText(fitting(context, line, cell - 18), x + 8, y + 34 + 14 * i));
  }

  /** Everything is to be painted again. */
  forget() {
    this.shown.fill(255);
  }

  /** The cell at a place, or -1. */
  at(x, y) {
    const column = Math.floor(x / this.cell);
    const i = Math.floor(y / this.cell) * this.columns + column;
    return x >= 0 && column < this.columns && i >= 0 && i < this.shown.length ? i : -1;
  }

  /** Where a cell is. */
  place(i) {
    return { left: (i % this.columns) * this.cell, top: Math.floor(i / this.columns) * this.cell, size: this.cell - this.gap };
  }
}

/** Takes the time of some painting. */
export function timed(paint) {
  const began = performance.now();
  paint();
  painted.frames += 1;
  painted.lastMilliseconds = performance.now() - began;
}

/** A line over time; several lines share the scale. */
export function sparkline(canvas, lines, colours) {
  const width = canvas.clientWidth || 240;
  const height = canvas.clientHeight || 56;
  const context = size(canvas, width, height);
  const values = lines.flat().filter(Number.isFinite);
  const top = Math.max(1e-9, ...values) * 1.08;
  const points = Math.max(...lines.map((line) => line.length), 2);
  lines.forEach((line, at) => {
    context.beginPath();
    let begun = false;
    line.forEach((value, i) => {
      if (!Number.isFinite(value)) return;
      const x = width * (i + points - line.length) / (points - 1);
      const y = height - 2 - (height - 6) * value / top;
      if (begun) context.lineTo(x, y);
      else context.moveTo(x, y);
      begun = true;
    });
    context.strokeStyle = colours[at];
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    context.stroke();
    if (at === 0 && begun) {
      context.lineTo(width, height);
      context.lineTo(width * (points - line.length) / (points - 1), height);
      context.globalAlpha = 0.15;
      context.fillStyle = colours[at];
      context.fill();
      context.globalAlpha = 1;
    }
  });
}
