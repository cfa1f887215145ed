// Charts of a flow's runs: how fast they copied, how old the records were by then, and what they left behind.
import { html, useMemo, useState } from "./vendor/preact-htm.js";
import { Chart } from "./chart.js";
import { Empty, Read } from "./elements.js";
import { bytes, count, duration, known, roughly } from "./format.js";
import { useDocument } from "./reading.js";

// Seconds between numbers on an axis of durations: whole parts of minutes, hours and days.
const [MINUTE, HOUR, DAY] = [60, 3_600, 86_400];
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((one) => one * MINUTE), ...[1, 2, 3, 6, 12].map((one) => one * HOUR), ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000].map((one) => one * DAY)];

// The mark of a run: its colour, its line, its meaning.
const FAILURE = ["--ferry-warn", "dashed", "a run failed"];
const MARKS = { "data lost": ["--ferry-bad", "solid", "records were lost"], "partly failed": FAILURE, failed: FAILURE };

/** What the marks in the charts mean. */
function Marked({ points }) {
  const marks = new Set(points.filter((point) => point.state in MARKS).map((point) => MARKS[point.state]));
  return marks.size > 0 && html`<ul class="legend" aria-label="Marks in the charts">${[...marks].map(([colour, line, meaning]) => html`<li><span class="mark" style=${{ borderLeft: `2px ${line} var(${colour})` }} aria-hidden="true"></span> ${meaning}</li>`)}</ul>`;
}

/** Records (`of` 0) or bytes (1) a second of each run that copied any; no point says that a run copied nothing, and none is a zero. */
function speeds({ points, topics }, of, byTopic) {
  const rate = (point, copied) => (copied > 0 && point.seconds > 0 ? Number((copied / point.seconds).toPrecision(3)) : null);
  const whole = (point) => (of ? point.bytes : point.records) ?? 0;
  if (!byTopic) return [{ label: "", values: points.map((point) => rate(point, whole(point))) }];
  const named = (point) => point.by_topic.reduce((sum, one) => sum + (one?.[of] ?? 0), 0);
  const lines = topics.map((label, at) => ({ label, values: points.map((point) => rate(point, point.by_topic[at]?.[of])) }));
  const others = { label: "other topics", values: points.map((point) => rate(point, whole(point) - named(point))) };
  return others.values.some((value) => value !== null) ? [...lines, others] : lines;
}

function Charts({ document, byTopic }) {
  const { points } = document;
  const drawn = useMemo(() => {
    const times = points.map((point) => new Date(point.at).getTime() / 1000);
    const line = (tell) => [{ label: "", values: points.map(tell) }];
    const plain = (name) => line((point) => (known(point[name]) ? point[name] : null));
    return {
      times,
      marks: points.flatMap((point, at) => (point.state in MARKS ? [[times[at], ...MARKS[point.state]]] : [])),
      bytes: speeds(document, 1, byTopic),
      records: speeds(document, 0, byTopic),
      // A backfill copies old records on purpose.
      delay: line((point) => (point.bound === "latest" ? point.delay_seconds : null)),
      lag: plain("lag_records"),
      age: plain("lag_seconds"),
      headroom: plain("headroom_seconds"),
    };
  }, [JSON.stringify(points), byTopic]);
  const chart = (title, name, empty, format, onAxis) => html`<${Chart} title=${title} times=${drawn.times} lines=${drawn[name]} marks=${drawn.marks} empty=${empty} format=${format} onAxis=${onAxis} steps=${format === duration ? STEPS : undefined} />`;
  return html`<div class="charts">
      ${chart("Bytes per second", "bytes", "No run has copied records in this time.", bytes)}
      ${chart("Records per second", "records", "No run has copied records in this time.", count)}
      ${chart("Age of records when they were copied", "delay", "No run in this time has copied records whose age is known.", duration, roughly)}
      ${chart("Records behind after each run", "lag", "No run has measured it in this time.", count)}
      ${chart("Oldest uncopied record", "age", "No run has measured it in this time.", duration, roughly)}
      ${chart("Headroom", "headroom", "No run in this time has left records that the source will delete.", duration, roughly)}</div><${Marked} points=${points} />
    ${byTopic && html`<p class="muted">Ferry keeps the 20 biggest topics of each run. Lines are of the ${document.topics.length} with the most bytes.</p>`}`;
}

// The server asks Airflow for hundreds of runs.
const HISTORY_MS = 60_000;
const DAYS = [[1, "day"], [7, "7 days"], [30, "30 days"]];

export function History({ flow, place, go }) {
  const days = DAYS.some(([number]) => String(number) === place.days) ? place.days : 7;
  const [by, setBy] = useState("run");
  const answer = useDocument("history", { flow, days }, HISTORY_MS);
  const choice = (label, value, change, values) => html`<label>${label} <select value=${value} onChange=${(event) => change(event.currentTarget.value)}>${values.map(([value, name]) => html`<option value=${value}>${name}</option>`)}</select></label>`;
  return html`<h3>History</h3>
    <div class="tools">${choice("Last", days, (value) => go({ days: value }, true), DAYS)}${choice("Speed by", by, setBy, [["run", "run"], ["topic", "topic"]])}</div>
    <${Read} answer=${answer} what="the history" quiet>${(document) => (document.points.length > 0 ? html`<${Charts} document=${document} byTopic=${by === "topic"} />` : html`<${Empty}>No run has ended in this time.<//>`)}<//>`;
}
