// What the syncs of topics, schemas, configs and ACLs would change now.
import { html } from "./vendor/preact-htm.js";
import { Empty, Read, ReadAt, Table } from "./elements.js";
import { exact } from "./format.js";
import { useDocument } from "./reading.js";

const TITLES = { topics: "Topics", schemas: "Schemas", configs: "Configs", acls: "ACLs" };
const SIGNS = { create: "+", register: "+", set: "±", add: "+", delete: "−", remove: "−" };
const COLUMNS = [
  { name: "What", cell: (row) => html`<span class=${`sign ${row.action}`} aria-hidden="true">${SIGNS[row.action] ?? "±"}</span> ${row.what}` },
  { name: "Change", cell: (row) => row.action },
  { name: "From and to", cell: (row) => html`<code>${row.detail}</code>` },
  { name: "Why", cell: (row) => row.reason },
];

function Section({ name, document }) {
  const rows = document[name] ?? [];
  const total = document.totals?.[name] ?? rows.length;
  const off = document.off?.[name];
  return html`<h3>${TITLES[name]}</h3>
    ${off
      ? html`<p class="muted">Ferry does not sync them: ${off}</p>`
      : rows.length
        ? html`<${Table} label=${`Drift of ${TITLES[name]}`} columns=${COLUMNS} rows=${rows} total=${total} />${total > rows.length && html`<p class="muted">${exact(total - rows.length)} more: <code>ferry sync … ${name} --dry-run</code></p>`}`
        : document.failed?.some((one) => one.sync === name)
          ? html`<p>Ferry could not compare all of them.</p>`
          : html`<p class="good">✓ Nothing differs.</p>`}`;
}

export function Drift({ flow }) {
  const answer = useDocument("drift", { flow: flow.flow });
  const left = [{ name: "What", cell: (row) => row.what }, { name: "Reason", cell: (row) => row.reason }];
  return html`<p>The next run would make these changes on ${flow.target}, so that it matches ${flow.source}.</p>
    <${Read} answer=${answer} what="both sides">${(document) => html`
      ${(document.failed ?? []).map((one) => html`<div class="banner bad"><strong>${one.what}: ${one.error}</strong> ${one.problem}<br />Next: ${one.next_step}</div>`)}
      ${["topics", "schemas", "configs", "acls"].map((name) => html`<${Section} name=${name} document=${document} />`)}
      ${document.left_alone?.length > 0 && html`<h3>Left out on purpose</h3><${Table} label="Left alone" columns=${left} rows=${document.left_alone} total=${document.left_alone_total} />
        ${document.left_alone_total > document.left_alone.length && html`<p class="muted">${exact(document.left_alone_total - document.left_alone.length)} more</p>`}`}
      ${(document.notices ?? []).map((notice) => html`<p class="muted">${notice}</p>`)}
      <${ReadAt} document=${document} again=${answer.again} />`}<//>`;
}
