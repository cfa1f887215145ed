// A line over time, drawn by uPlot in the page's colours. It is drawn anew when the theme or the width changes.
import { html, useEffect, useRef } from "./vendor/preact-htm.js";

const HEIGHT = 180;
let library;

/** uPlot is no module: its script sets a global. */
function loaded() {
  library ??= new Promise((done, failed) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("vendor/uplot.css", import.meta.url);
    const script = document.createElement("script");
    script.src = new URL("vendor/uplot.js", import.meta.url);
    script.onload = () => done(globalThis.uPlot);
    script.onerror = failed;
    document.head.append(style, script);
  });
  return library;
}

const CLOCK = { hour: "2-digit", minute: "2-digit" };
const DAY = 86_400;

/** The times below an axis, as exact as its steps need. */
function times(_, ticks, __, ___, step) {
  const form = step >= DAY ? { day: "numeric", month: "short" } : step >= 60 ? CLOCK : { ...CLOCK, second: "2-digit" };
  return ticks.map((tick) => new Date(tick * 1000).toLocaleString("en-GB", form));
}

/** Lines from top to bottom: [seconds since 1970, name of the page's colour, "solid" or "dashed"]. */
const drawMarks = (plot, marks, style) => {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.lineWidth = 2 * devicePixelRatio;
  for (const [time, colour, line] of marks) {
    const x = plot.valToPos(time, "x", true);
    ctx.setLineDash(line === "dashed" ? [4 * devicePixelRatio, 3 * devicePixelRatio] : []);
    ctx.strokeStyle = style.getPropertyValue(colour).trim();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
};

/** `points`: [seconds since 1970, number or null]. `marks`: as of drawMarks. `format` makes text of a number, `onAxis` a short one. */
export function Chart({ title, points, marks, format, onAxis = format, colour = "--ferry-accent" }) {
  const place = useRef();
  useEffect(() => {
    let plot;
    let left = false;
    const draw = (Plot) => {
      if (left) return;
      plot?.destroy();
      const style = getComputedStyle(place.current);
      const [ink, rule, line] = ["--ferry-muted", "--ferry-rule", colour].map((name) => style.getPropertyValue(name).trim());
      const axis = { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule } };
      const few = points.length < 60;
      plot = new Plot(
        {
          width: Math.max(200, place.current.clientWidth),
          height: HEIGHT,
          legend: { show: true },
          cursor: { y: false },
          hooks: { draw: [(drawn) => drawMarks(drawn, marks, style)] },
          scales: { y: { range: (_, least, most) => [0, most > 0 ? most * 1.1 : 1] } },
          axes: [{ ...axis, space: 80, values: times }, { ...axis, size: 74, values: (_, values) => values.map(onAxis) }],
          series: [
            { value: (_, seconds) => (seconds ? new Date(seconds * 1000).toLocaleString("en-GB") : "–") },
            { label: title, stroke: line, width: 2, fill: `${line}22`, points: { show: few, size: 6, fill: line }, spanGaps: true, value: (_, number) => (number === null || number === undefined ? "–" : format(number)) },
          ],
        },
        [points.map(([time]) => time), points.map(([, number]) => number)],
        place.current,
      );
    };
    let Plot;
    const again = () => Plot && draw(Plot);
    const themes = new MutationObserver(again);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
    const widths = new ResizeObserver(() => plot && plot.width !== Math.max(200, place.current.clientWidth) && again());
    widths.observe(place.current);
    loaded().then((found) => ((Plot = found), again()), () => {});
    return () => {
      left = true;
      themes.disconnect();
      widths.disconnect();
      plot?.destroy();
    };
  }, [points, marks, title]);
  const numbers = points.map(([, number]) => number).filter((number) => number !== null);
  const told = numbers.length ? `${title}: from ${format(Math.min(...numbers))} to ${format(Math.max(...numbers))}, last ${format(numbers[numbers.length - 1])}` : `${title}: nothing known`;
  return html`<figure class="chart" aria-label=${told}><figcaption>${title}</figcaption><div ref=${place} aria-hidden="true"></div></figure>`;
}
