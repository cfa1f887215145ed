// The rows of a table as a file, which the browser makes: CSV for spreadsheets, JSON for programs. Both hold what the server has sent.
import { html } from "./vendor/preact-htm.js";
import { exact, plural } from "./format.js";

// Spreadsheets take a text that begins so for a formula, and the names of topics and groups are other people's.
const FORMULA = /^[=+\-@\t\r]/;

function cell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  const harmless = typeof value === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** RFC 4180, with a header. What is nested is JSON. */
function csv(rows) {
  const names = [...new Set(rows.flatMap(Object.keys))];
  return [names.map(cell), ...rows.map((row) => names.map((name) => cell(row[name])))].map((cells) => `${cells.join(",")}\r\n`).join("");
}

const FORMS = { CSV: ["text/csv", csv], JSON: ["application/json", (rows) => `${JSON.stringify(rows, null, 1)}\n`] };

function save(label, form, rows) {
  const [type, made] = FORMS[form];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([made(rows)], { type }));
  const name = `ferry ${label} ${new Date().toISOString().slice(0, 19)}`.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  link.download = `${name}.${form.toLowerCase()}`;
  link.click();
  // Not at once: the browser may not have begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Two buttons. `total`: how many rows there are, if `rows` are only those that are shown. */
export function Export({ label, rows, total }) {
  if (!rows.length) return null;
  const what = total > rows.length ? `The ${exact(rows.length)} shown of ${exact(total)} rows` : plural(rows.length, "row");
  return html`<p class="export muted">${what} as ${Object.keys(FORMS).map((form) => html`<button class="small" aria-label=${`${label} as ${form}`} onClick=${() => save(label, form, rows)}>${form}</button> `)}</p>`;
}
