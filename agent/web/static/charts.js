// Draws the charts of prices again with uPlot, which shows the figures under the pointer. Without script the server's SVG
// remains. It is called again after the page is redrawn.
"use strict";
const drawCharts = (() => {
  // The bid is drawn last, on top.
  const COLUMNS = ["ask", "floor", "bid"];
  const styles = () => getComputedStyle(document.documentElement);
  const colour = (name) => styles().getPropertyValue(`--${name}`).trim();
  const dollars = (value) => (value === null || value === undefined ? "–" : `$${value.toFixed(4)}`);
  const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
  const two = (number) => String(number).padStart(2, "0");
  const moment = (seconds) => {
    const at = new Date(seconds * 1000);
    const year = at.getUTCFullYear() === new Date().getUTCFullYear() ? "" : `${at.getUTCFullYear()}-`;
    return `${year}${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
  };
  // A price is in force until the next, so the pointer shows the last change before it, not the nearest one.
  const held = (plot, _, nearest, at) => (nearest > 0 && plot.data[0][nearest] > at ? nearest - 1 : nearest);
  const lossLines = (losses) => (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour("bad");
    ctx.lineWidth = 2 * devicePixelRatio;
    losses.forEach((cause, number) => {
      if (cause === null) return;
      const x = plot.valToPos(plot.data[0][number], "x", true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    });
    ctx.restore();
  };
  const options = (place, trail, shown) => {
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const line = (name) => ({
      label: name, stroke: colour(name), width: 2, dash: name === "bid" ? [] : name === "floor" ? [4, 3] : [1, 3],
      paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (_, value) => dollars(value),
    });
    const lost = { label: "interrupted", stroke: colour("bad"), points: { show: false }, paths: () => null,
      value: (plot, _, __, index) => (index === null || index === undefined ? "–" : trail.loss[index] ?? "no") };
    return {
      width: Math.max(place.clientWidth, 240), height: place.classList.contains("large") ? 320 : 170, tzDate: utc,
      padding: [8, 36, 0, 0], cursor: { y: false, dataIdx: held }, legend: { live: true },
      scales: { x: { time: true }, y: { range: (_, least, most) => uPlot.rangeNum(least, most, 0.1, false) } },
      axes: [{ ...axis, space: 90, values: (_, found) => found.map(moment) }, { ...axis, label: "$/h", labelSize: 18, size: 56, values: (_, found) => found.map((one) => one.toFixed(3)) }],
      series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}" }, ...shown.map(line), lost],
      hooks: { draw: [lossLines(trail.loss)] },
    };
  };
  const draw = (place) => {
    const trail = JSON.parse(place.dataset.trail);
    const shown = COLUMNS.filter((name) => trail[name].some((value) => value !== null));
    const svg = place.querySelector("svg");
    place.querySelector(".uplot")?.remove();
    const plot = new uPlot(options(place, trail, shown), [trail.at, ...shown.map((name) => trail[name]), trail.at.map(() => null)]);
    // The words remain for readers who cannot see the canvas.
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", svg.getAttribute("aria-label"));
    place.append(plot.root);
    place.classList.add("live");
  };
  const all = () => document.querySelectorAll(".chart[data-trail]").forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  all();
  return all;
})();
