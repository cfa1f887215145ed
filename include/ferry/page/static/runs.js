// Runs of a flow: lag and throughput over time, what each run copied, losses, and open transactions.
import { html, useMemo, useState } from "./vendor/preact-htm.js";
import { Chart } from "./chart.js";
import { Command, Empty, Next, Read, ReadAt, Table, When } from "./elements.js";
import { bytes, count, duration, exact, known, moment, offsets, plural, records, roughly } from "./format.js";
import { Live } from "./live.js";
import { BASE, useDocument } from "./reading.js";
import { Start } from "./starting.js";

const LIMIT = 50;
// The sign of a state, and the health whose colour it has.
const STATES = {
  done: ["✓", "healthy"],
  "nothing new": ["✓", "healthy"],
  queued: ["…", "unknown"],
  running: ["…", "unknown"],
  following: ["⇉", "healthy"],
  "dry run": ["…", "unknown"],
  "data lost": ["!", "loss"],
  "partly failed": ["✕", "failing"],
  failed: ["✕", "failing"],
  superseded: ["↷", "unknown"],
  refused: ["✕", "unknown"],
};

function State({ run }) {
  const [sign, health] = STATES[run.state] ?? ["…", "unknown"];
  return html`<span class=${`badge health-${health}`}><span aria-hidden="true">${sign}</span> ${run.state}</span>`;
}

// The mark of a run in the charts: its colour, its line, its meaning.
const FAILURE = ["--ferry-warn", "dashed", "a run failed"];
const MARKS = { "data lost": ["--ferry-bad", "solid", "records were lost"], "partly failed": FAILURE, failed: FAILURE };

/** What the marks in the charts mean. */
function Marked({ points }) {
  const marks = new Set(points.filter((point) => point.state in MARKS).map((point) => MARKS[point.state]));
  return marks.size > 0 && html`<ul class="legend" aria-label="Marks in the charts">${[...marks].map(([colour, line, meaning]) => html`<li><span class="mark" style=${{ borderLeft: `2px ${line} var(${colour})` }} aria-hidden="true"></span> ${meaning}</li>`)}</ul>`;
}

function Charts({ flow }) {
  const [days, setDays] = useState(7);
  const answer = useDocument("history", { flow, days });
  const points = answer.document?.points;
  const series = useMemo(() => {
    const line = (name) => (points ?? []).map((point) => [new Date(point.finished).getTime() / 1000, known(point[name]) ? point[name] : null]);
    const marks = (points ?? []).filter((point) => point.state in MARKS).map((point) => [new Date(point.finished).getTime() / 1000, ...MARKS[point.state]]);
    return { marks, lag: line("lag_records"), age: line("lag_seconds"), rate: line("records_per_second"), headroom: line("headroom_seconds") };
  }, [JSON.stringify(points)]);
  return html`<div class="tools"><label>Last <select value=${days} onChange=${(event) => setDays(Number(event.currentTarget.value))}>
      ${[[1, "day"], [7, "7 days"], [30, "30 days"]].map(([number, name]) => html`<option value=${number}>${name}</option>`)}</select></label></div>
    <${Read} answer=${answer} what="the history" quiet>${() => points.length > 0
      ? html`<div class="charts"><${Chart} title="Records behind after each run" points=${series.lag} marks=${series.marks} format=${count} />
          <${Chart} title="Records per second" points=${series.rate} marks=${series.marks} format=${count} />
          <${Chart} title="Oldest uncopied record" points=${series.age} marks=${series.marks} format=${duration} onAxis=${roughly} />
          <${Chart} title="Headroom" points=${series.headroom} marks=${series.marks} format=${duration} onAxis=${roughly} /></div><${Marked} points=${points} />`
      : html`<${Empty}>No run has ended in this time.<//>`}<//>`;
}

function Details({ run }) {
  const syncs = Object.entries(run.syncs ?? {});
  return html`<div class="details">
    ${run.failed.map((one) => html`<div class="banner bad"><strong>${one.partition < 0 ? one.topic || "the run" : `${one.topic}-${one.partition}`}: ${one.error}</strong> ${one.problem}</div>`)}
    ${run.losses.map((loss) => html`<div class="banner bad"><strong>${loss.topic}-${loss.partition}</strong> offsets ${offsets(loss.upstream_start, loss.upstream_end)}: ${loss.reason}</div>`)}
    ${run.topics.length > 0 && html`<p>${run.topics.map((one, index) => html`${index ? ", " : ""}<strong>${one.topic}</strong> ${records(one.records)} (${bytes(one.bytes)})`)}${run.topics_total > run.topics.length && ` and ${plural(run.topics_total - run.topics.length, "more topic")}`}</p>`}
    ${syncs.length > 0 && html`<p class="muted">${syncs.map(([name, sync], index) => html`${index ? "; " : ""}${name}: ${sync.left_out ? `left out: ${sync.left_out}` : `${sync.changes} changed, ${sync.skipped} left alone, ${sync.failed} failed`}`)}</p>`}
    <p class="muted">${run.run_id}${known(run.cpu_seconds) ? `, ${duration(run.cpu_seconds)} of CPU` : ""}${run.started ? `, began ${moment(run.started)}` : ""}</p></div>`;
}

function LastRuns({ flow }) {
  const answer = useDocument("runs", { flow: flow.flow, limit: LIMIT });
  const [open, setOpen] = useState(null);
  const columns = [
    { name: "Run", cell: (row) => html`<button class="plain" aria-expanded=${open === row.run_id} onClick=${() => setOpen(open === row.run_id ? null : row.run_id)}><${When} at=${row.finished || row.started} /></button>` },
    { name: "Outcome", cell: (row) => html`<${State} run=${row} />` },
    { name: "Records", number: true, counts: true, cell: (row) => (row.records === null ? "" : html`<span title=${exact(row.records)}>${count(row.records)}</span>`) },
    { name: "Size", number: true, cell: (row) => (row.bytes === null ? "" : bytes(row.bytes)) },
    { name: "Took", number: true, cell: (row) => (row.seconds === null ? "" : duration(row.seconds)) },
    { name: "Behind after it", number: true, cell: (row) => (known(row.lag_records) ? count(row.lag_records) : "") },
    { name: "Up to", cell: (row) => (row.bound && row.bound !== "latest" ? moment(row.bound) : "now") },
    { name: "", cell: (row) => row.dag_run_url && html`<a href=${new URL(row.dag_run_url.replace(/^\//, ""), BASE)} target="_top">Airflow</a>` },
  ];
  const more = (row) => open === row.run_id && html`<tr class="detail"><td colspan=${columns.length}><${Details} run=${row} /></td></tr>`;
  return html`<h3>Last runs</h3>
    ${flow.may_trigger && html`<${Start} dag=${flow.dag_id} name="Run now" note="Started from the Ferry page" ended=${answer.again} />`}<${Read} answer=${answer} what="the last runs">${(document) => html`
    ${document.runs.length ? html`<${Table} label="Last runs" columns=${columns} rows=${document.runs} keyOf=${(row) => row.run_id} more=${more} />` : html`<${Empty}>No run yet.<//>`}
    ${document.unreadable > 0 && html`<p class="muted">${records(document.unreadable, exact)} about runs could not be read.</p>`}<${ReadAt} document=${document} again=${answer.again} />`}<//>`;
}

function Losses({ flow }) {
  const { document } = useDocument("losses", { flow });
  if (!document?.losses?.length) return null;
  const columns = [
    { name: "Partition", cell: (row) => `${row.topic}-${row.partition}` },
    { name: "Offsets", number: true, counts: true, cell: (row) => offsets(row.upstream_start, row.upstream_end) },
    { name: "Reason", cell: (row) => row.reason },
    { name: "Seen", cell: (row) => (row.acknowledged ? "yes" : html`<span class="badge health-loss">! not yet</span>`) },
  ];
  return html`<h3>Losses</h3><p>These records are not on the target, and Ferry cannot copy them any more.</p>
    <${Table} label="Losses" columns=${columns} rows=${document.losses} />
    ${document.open > 0 && html`<p>To acknowledge them: <${Command}>${document.command}<//></p>`}`;
}

function Transactions({ flow }) {
  const { document } = useDocument("transactions", { flow });
  if (!document?.open_transactions?.length) return null;
  return html`<h3>Open transactions</h3>${document.open_transactions.map((one) => html`<div class=${`banner ${one.overdue ? "bad" : ""}`}>
    <strong>${one.overdue ? "Hangs" : "Open"}</strong>: ${one.held_topic}-${one.partition} on ${one.cluster}, from offset ${exact(one.stable_end)}${known(one.age_ms) ? `, for ${duration(one.age_ms / 1000)}` : ""}; ${one.remedy}</div>`)}`;
}

export function Runs({ flow }) {
  return html`<${Live} flow=${flow} />${flow.reasons.length > 0 && html`<ul class="reasons">${flow.reasons.map((reason) => html`<li>${reason}</li>`)}</ul>`}
    ${flow.reasons.length > 0 && html`<${Next} step=${flow.next_step} />`}
    <${Losses} flow=${flow.flow} /><${Transactions} flow=${flow.flow} /><${Charts} flow=${flow.flow} /><${LastRuns} flow=${flow} />`;
}
