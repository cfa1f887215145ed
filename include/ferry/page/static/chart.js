// Lines over time, drawn by uPlot in the page's colours. It is drawn anew when the theme or the width changes.
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
const DATE = { day: "numeric", month: "short" };
const DAY = 86_400;
const told = (tick, form) => new Date(tick * 1000).toLocaleString("en-GB", form);

/** The times below an axis, as exact as its steps need; the day stands where it begins, and below the first. */
function times(_, ticks, __, ___, step) {
  if (step >= DAY) return ticks.map((tick) => told(tick, DATE));
  const clock = step >= 60 ? CLOCK : { ...CLOCK, second: "2-digit" };
  return ticks.map((tick, at) => {
    const day = told(tick, DATE);
    return at === 0 || day !== told(ticks[at - 1], DATE) ? `${told(tick, clock)}\n${day}` : told(tick, clock);
  });
}

// Lines differ in more than their colour.
const LINES = [["--ferry-accent", []], ["--ferry-line-2", [8, 3]], ["--ferry-line-3", [2, 2]], ["--ferry-line-4", [10, 3, 2, 3]], ["--ferry-line-5", [5, 5]], ["--ferry-muted", [1, 4]]];
const FONT = "12px system-ui, sans-serif";

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

/**
 * `times`: seconds since 1970. `lines`: {label, values}, a number or null for each time. `marks`: as of drawMarks. `empty`: said if there is
 * no number. `format` makes text of a number, `onAxis` a short one. `steps`: between numbers on the axis, if not powers of ten.
 */
export function Chart({ title, times: at, lines, marks, empty, format, onAxis = format, steps }) {
  const place = useRef();
  const bare = lines.every(({ values }) => values.every((value) => value === null));
  useEffect(() => {
    if (bare) return undefined;
    let plot;
    let left = false;
    const draw = (Plot) => {
      if (left) return;
      plot?.destroy();
      const style = getComputedStyle(place.current);
      const colour = (name) => style.getPropertyValue(name).trim();
      const axis = { stroke: colour("--ferry-muted"), font: FONT, grid: { stroke: colour("--ferry-rule"), width: 1 }, ticks: { stroke: colour("--ferry-rule") } };
      const few = at.length < 60;
      const line = ({ label, values }, number) => {
        const [name, dash] = LINES[number % LINES.length];
        // A number between two gaps would not be seen as a line.
        const alone = (_, __, index) => few || (values[index - 1] ?? values[index + 1] ?? null) === null;
        return {
          label: label || title,
          stroke: colour(name),
          width: 2,
          dash,
          fill: lines.length === 1 ? `${colour(name)}22` : undefined,
          points: { show: alone, size: 6, fill: colour(name) },
          spanGaps: true,
          value: (_, number) => (number === null || number === undefined ? "–" : format(number)),
        };
      };
      plot = new Plot(
        {
          width: Math.max(200, place.current.clientWidth),
          height: HEIGHT,
          legend: { show: true },
          cursor: { y: false },
          hooks: { draw: [(drawn) => drawMarks(drawn, marks, style)] },
          scales: { y: { range: (_, least, most) => [0, most > 0 ? most * 1.1 : 1] } },
          axes: [{ ...axis, space: 64, size: 44, values: times }, { ...axis, size: 66, incrs: steps, values: (_, values) => values.map(onAxis) }],
          series: [{ value: (_, seconds) => (seconds ? new Date(seconds * 1000).toLocaleString("en-GB") : "–") }, ...lines.map(line)],
        },
        [at, ...lines.map(({ values }) => values)],
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
  }, [at, lines, marks, title, bare]);
  const range = ({ label, values }) => {
    const numbers = values.filter((value) => value !== null);
    return numbers.length ? `${label && `${label} `}from ${format(Math.min(...numbers))} to ${format(Math.max(...numbers))}, last ${format(numbers[numbers.length - 1])}` : `${label} nothing known`;
  };
  return html`<figure class=${`chart ${lines.length > 1 ? "several" : ""}`} aria-label=${`${title}: ${bare ? empty : lines.map(range).join("; ")}`}><figcaption>${title}</figcaption>
    ${bare ? html`<p class="empty">${empty}</p>` : html`<div ref=${place} aria-hidden="true"></div>`}</figure>`;
}
