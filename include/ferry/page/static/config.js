// The properties of the flow that are in force, and where each comes from.
import { html, useState } from "./vendor/preact-htm.js";
import { Empty, Read, Search, Table } from "./elements.js";
import { BASE, useDocument } from "./reading.js";

// Meanings are Markdown, of which only links and code occur.
const LINK = /\[([^\]]+)\]\(([^)]+)\)/g;
const said = (meaning) => {
  const parts = meaning.split(LINK); // text, words of a link, its address, text, …
  return parts.map((part, index) => (index % 3 === 1 ? html`<a href=${new URL(parts[index + 1], new URL("ferry/docs/", BASE))} target="_blank">${part}</a>` : index % 3 ? "" : part));
};
// A name breaks behind a dot.
const dotted = (name) => name.split(".").map((part, index) => (index ? html`.<wbr />${part}` : part));
const where = (row) => (row.key ? html`<code>${dotted(row.key)}</code>${row.line > 0 && html`<div class="muted">line ${row.line}</div>`}` : html`<span class="muted">default</span>`);
const COLUMNS = [
  { name: "Property", cell: (row) => html`<span class="name">${dotted(row.name)}</span>` },
  { name: "Of", cell: (row) => html`<span class="whole">${row.of}</span>` },
  { name: "Value", counts: true, cell: (row) => (row.value ? html`<code>${row.value}</code>` : html`<span class="muted">not set</span>`) },
  { name: "From", cell: where },
  { name: "Meaning", cell: (row) => said(row.meaning) },
];

export function Config({ flow, place, go }) {
  const answer = useDocument("config", { flow: flow.flow });
  const [given, setGiven] = useState(false);
  const search = place.search ?? "";
  const wanted = search.toLowerCase();
  const shown = (rows) => rows.filter((row) => (row.key || !given) && [row.name, row.value, row.key, row.of].some((text) => text.toLowerCase().includes(wanted)));
  return html`<div class="tools"><${Search} label="Search properties" value=${search} change=${(text) => go({ search: text }, true)} />
      <label><input type="checkbox" checked=${given} onChange=${(event) => setGiven(event.currentTarget.checked)} /> only what the file sets</label></div>
    <${Read} answer=${answer} what="the config">${(document) => {
      const rows = shown(document.properties);
      return html`<p>As <code>${document.file}</code> says. Secrets are not shown, but where they are kept.</p>
        ${rows.length ? html`<${Table} label="Properties" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.of} ${row.name} ${row.key}`} total=${document.properties.length} />` : html`<${Empty}>No such property.<//>`}`;
    }}<//>`;
}
