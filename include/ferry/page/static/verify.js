// Results of verifies: whether both sides hold the same records, and what was not compared.
import { html } from "./vendor/preact-htm.js";
import { Empty, Read, ReadAt, Table, When } from "./elements.js";
import { bytes, duration, exact, plural, records } from "./format.js";
import { BASE, useDocument } from "./reading.js";
import { Start } from "./starting.js";

const VERDICTS = { equal: ["✓", "healthy"], differs: ["✕", "loss"], incomplete: ["◔", "lagging"] };
const cell = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

function Differences({ report }) {
  const names = [...new Set(report.differences.flatMap(Object.keys))];
  const columns = names.map((name) => ({ name: name.replaceAll("_", " "), cell: (row) => cell(row[name]) }));
  return html`<${Table} label="Differences" columns=${columns} rows=${report.differences} total=${report.differences_total} />
    ${report.differences_total > report.differences.length && html`<p class="muted">${exact(report.differences_total - report.differences.length)} more</p>`}`;
}

function Report({ report }) {
  const [sign, health] = VERDICTS[report.verdict] ?? ["…", "unknown"];
  return html`<article class="card"><div class="card-head"><h3><${When} at=${report.finished} /></h3><span class=${`badge health-${health}`}><span aria-hidden="true">${sign}</span> ${report.verdict}</span></div>
    <p>${records(report.records)}, ${bytes(report.bytes)} compared in ${plural(report.ranges, "range")}, ${duration(report.seconds)}</p>
    ${report.differences.length > 0 && html`<${Differences} report=${report} />`}
    ${report.failed.map((one) => html`<div class="banner bad">${typeof one === "string" ? one : Object.values(one).map(cell).join(" ")}</div>`)}
    ${report.unproven.length > 0 && html`<p class="muted">Not compared: ${report.unproven.map((one, index) => html`${index ? "; " : ""}${one.reason} (${exact(one.parts)})`)}</p>`}
    <p class="muted">${report.run_id}</p></article>`;
}

export function Verify({ flow }) {
  const answer = useDocument("verify", { flow: flow.flow });
  const dag = html`<a href=${new URL(`dags/${encodeURIComponent(flow.verify_dag_id)}`, BASE)} target="_top">${flow.verify_dag_id}</a>`;
  return html`<p>A verify reads both sides and compares them record by record. Its DAG: ${dag}</p>
    ${flow.may_verify && html`<${Start} dag=${flow.verify_dag_id} name="Verify now" note="Started from the Ferry page" ended=${answer.again} />`}
    <${Read} answer=${answer} what="results of verifies">${(document) => html`
      ${document.reports.length ? document.reports.map((report) => html`<${Report} key=${report.run_id} report=${report} />`) : html`<${Empty}>No verify of this flow has left a result in the last 30 days.<//>`}<${ReadAt} document=${document} again=${answer.again} />`}<//>`;
}
