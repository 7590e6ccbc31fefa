/** Bars and lines: shares of a ceiling. */

import { amount, make } from "../format.js";
import { data, style, text } from "./dom.js";
import { FULL, HIGH, PARTS } from "./model.js";

export const percent = (share) => amount(share === null ? null : share * 100, " %");

/** One bar; `paint(share)` with null for "not known". */
export function meter() {
  const fill = make("i");
  const bar = make("div", { className: "meter" }, fill);
  const paint = (share) => {
    style(bar, "--share", share === null ? 0 : Math.min(1, share).toFixed(3));
    data(bar, { heat: share === null ? "unknown" : share >= FULL ? "full" : share >= HIGH ? "high" : "idle" });
  };
  return { bar, paint };
}

const FIGURE = {
  egress: ({ egress_bps: bps, egress_ceiling_mbps: ceiling }) => (bps === null ? "–" : `${megabits(bps)} of ${ceiling.toFixed(0)} Mbit/s`),
  streams: ({ streams, stream_ceiling: ceiling }) => (streams === null ? "–" : `${streams} of ${ceiling}`),
  cpu: ({ cpu }) => (cpu === null ? "–" : `${(cpu * 100).toFixed(0)} % of its cores`),
};
const megabits = (bps) => (bps < 9.95e6 ? (bps / 1e6).toFixed(1) : (bps / 1e6).toFixed(0));

/** The parts of a load, one line each, the binding one marked. `row.parts`; figures only where the row has them. */
export function partLines() {
  const lines = Object.entries(PARTS).map(([part, label]) => {
    const { bar, paint } = meter();
    const [name, figure, share] = [make("span", { className: "part-name" }), make("span", { className: "part-figure" }), make("b")];
    const line = make("div", { className: "part" }, name, share, bar, figure);
    return { part, label, line, paint, name, figure, share };
  });
  const list = make("div", { className: "parts" }, ...lines.map(({ line }) => line));
  const paint = (row) => {
    for (const { part, label, line, paint: fill, name, figure, share } of lines) {
      const value = row.parts[part];
      fill(value);
      text(name, row.binding === part ? `${label}, binds` : label);
      text(share, percent(value));
      text(figure, "egress_bps" in row && "cpu" in row ? FIGURE[part](row) : "");
      data(line, { binds: row.binding === part ? "true" : null });
    }
  };
  return { list, paint };
}

const SVG = "http://www.w3.org/2000/svg";

/** The last loads as a line; gaps where nothing was known. */
export function sparkline() {
  const [svg, path, guard] = ["svg", "path", "line"].map((tag) => document.createElementNS(SVG, tag));
  svg.setAttribute("viewBox", "0 0 120 32");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  for (const [name, value] of Object.entries({ x1: 0, x2: 120, y1: 32 - 32 * HIGH, y2: 32 - 32 * HIGH })) guard.setAttribute(name, value);
  svg.append(guard, path);
  const paint = (loads, most) => {
    const step = 120 / Math.max(1, most - 1);
    const offset = most - loads.length;
    let pen = "M";
    const points = loads.map((load, i) => {
      if (load === null) { pen = "M"; return ""; }
      const point = `${pen}${((offset + i) * step).toFixed(1)} ${(31 - 30 * Math.min(1, load)).toFixed(1)}`;
      pen = "L";
      return point;
    });
    path.setAttribute("d", points.join(""));
  };
  return { svg, paint };
}
