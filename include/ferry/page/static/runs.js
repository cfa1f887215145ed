// Runs of a flow: losses, open transactions, what each run copied, and charts of all runs.
import { html, useState } from "./vendor/preact-htm.js";
import { Pause, Retry, Stop } from "./actions.js";
import { Command, Empty, Read, ReadAt, Table, When } from "./elements.js";
import { bytes, count, duration, exact, known, moment, offsets, plural, records } from "./format.js";
import { History } from "./history.js";
import { Live } from "./live.js";
import { NextStep } from "./next_step.js";
import { BASE, useDocument } from "./reading.js";
import { ENDED, Start } from "./starting.js";

const LIMIT = 50;
// So many are shown at first: the charts are below them.
const FIRST = 8;
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

function Details({ run }) {
  const syncs = Object.entries(run.syncs ?? {});
  return html`<div class="details">
    ${run.failed.map((one) => html`<div class="banner bad"><strong>${one.partition < 0 ? one.topic || "the run" : `${one.topic}-${one.partition}`}: ${one.error}</strong> ${one.problem}</div>`)}
    ${run.losses.map((loss) => html`<div class="banner bad"><strong>${loss.topic}-${loss.partition}</strong> offsets ${offsets(loss.upstream_start, loss.upstream_end)}: ${loss.reason}</div>`)}
    ${run.topics.length > 0 && html`<p>${run.topics.map((one, index) => html`${index ? ", " : ""}<strong>${one.topic}</strong> ${records(one.records)} (${bytes(one.bytes)})`)}${run.topics_total > run.topics.length && ` and ${plural(run.topics_total - run.topics.length, "more topic")}`}</p>`}
    ${syncs.length > 0 && html`<p class="muted">${syncs.map(([name, sync], index) => html`${index ? "; " : ""}${name}: ${sync.left_out ? `left out: ${sync.left_out}` : `${sync.changes} changed, ${sync.skipped} left alone, ${sync.failed} failed`}`)}</p>`}
    <p class="muted">${run.run_id}${known(run.cpu_seconds) ? `, ${duration(run.cpu_seconds)} of CPU` : ""}${run.started ? `, began ${moment(run.started)}` : ""}</p></div>`;
}

function LastRuns({ flow, again }) {
  const answer = useDocument("runs", { flow: flow.flow, limit: LIMIT });
  const [open, setOpen] = useState(null);
  const [all, setAll] = useState(false);
  const [asked, setAsked] = useState(null);
  const Asked = asked?.what;
  const offer = (row, what, name) => html`<button class="small" aria-label=${`${name} run ${row.run_id}`} onClick=${() => setAsked({ what, run: row.run_id })}>${name}</button> `;
  const columns = [
    { name: "Run", cell: (row) => html`<button class="plain" aria-expanded=${open === row.run_id} onClick=${() => setOpen(open === row.run_id ? null : row.run_id)}><${When} at=${row.finished || row.started} /></button>` },
    { name: "Outcome", cell: (row) => html`<${State} run=${row} />` },
    { name: "Records", number: true, counts: true, cell: (row) => (row.records === null ? "" : html`<span title=${exact(row.records)}>${count(row.records)}</span>`) },
    { name: "Size", number: true, cell: (row) => (row.bytes === null ? "" : bytes(row.bytes)) },
    { name: "Took", number: true, cell: (row) => (row.seconds === null ? "" : duration(row.seconds)) },
    { name: "Behind after it", number: true, cell: (row) => (known(row.lag_records) ? count(row.lag_records) : "") },
    { name: "Up to", cell: (row) => (row.bound && row.bound !== "latest" ? moment(row.bound) : "now") },
    { name: "", cell: (row) => flow.may_change_runs && row.airflow_state && (!ENDED.has(row.airflow_state) ? offer(row, Stop, "Stop…") : row.airflow_state === "failed" && offer(row, Retry, "Retry…")) },
    { name: "", cell: (row) => row.dag_run_url && html`<a href=${new URL(row.dag_run_url.replace(/^\//, ""), BASE)} target="_top">Airflow</a>` },
  ];
  const more = (row) => open === row.run_id && html`<tr class="detail"><td colspan=${columns.length}><${Details} run=${row} /></td></tr>`;
  return html`<h3>Last runs</h3>
    <div class="acts">${flow.may_trigger && html`<${Start} dag=${flow.dag_id} name=${flow.paused ? "Run now (waits: paused)" : "Run now"} note="Started from the Ferry page" ended=${answer.again} />`}<${Pause} flow=${flow} again=${again} /></div>
    ${asked && html`<${Asked} flow=${flow} run=${asked.run} close=${() => setAsked(null)} done=${() => (answer.again(), again())} />`}<${Read} answer=${answer} what="the last runs">${(document) => html`
    ${document.runs.length ? html`<${Table} label="Last runs" columns=${columns} rows=${all ? document.runs : document.runs.slice(0, FIRST)} total=${document.runs.length} keyOf=${(row) => row.run_id} more=${more} />` : html`<${Empty}>No run yet.<//>`}
    ${document.runs.length > FIRST && html`<p><button class="small" aria-expanded=${all} onClick=${() => setAll(!all)}>${all ? `Show only ${FIRST}` : `Show ${document.runs.length} runs`}</button></p>`}
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
    <${Table} label="Losses" columns=${columns} rows=${document.losses} total=${document.total} />
    ${document.open > 0 && html`<p>To acknowledge them: <${Command}>${document.command}<//></p>`}`;
}

function Transactions({ flow }) {
  const { document } = useDocument("transactions", { flow });
  if (!document?.open_transactions?.length) return null;
  return html`<h3>Open transactions</h3>${document.open_transactions.map((one) => html`<div class=${`banner ${one.overdue ? "bad" : ""}`}>
    <strong>${one.overdue ? "Hangs" : "Open"}</strong>: ${one.held_topic}-${one.partition} on ${one.cluster}, from offset ${exact(one.stable_end)}${known(one.age_ms) ? `, for ${duration(one.age_ms / 1000)}` : ""}; ${one.remedy}</div>`)}`;
}

export function Runs({ flow, place, go, again }) {
  return html`<${Live} flow=${flow} />${flow.reasons.length > 0 && html`<ul class="reasons">${flow.reasons.map((reason) => html`<li>${reason}</li>`)}</ul>`}
    <${NextStep} flow=${flow} go=${go} again=${again} view="runs" />
    <${Losses} flow=${flow.flow} /><${Transactions} flow=${flow.flow} /><${LastRuns} flow=${flow} again=${again} /><${History} flow=${flow.flow} place=${place} go=${go} />`;
}
