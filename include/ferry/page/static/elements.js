// Elements that several views use.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { Export } from "./export.js";
import { ago, clock, moment, utc } from "./format.js";
import { BASE } from "./reading.js";

// The sign and the word of each state, besides its colour.
export const HEALTH = {
  healthy: ["✓", "Healthy"],
  lagging: ["◔", "Lagging"],
  paused: ["‖", "Paused"],
  never_ran: ["○", "Never ran"],
  queued: ["…", "Queued"],
  failing: ["✕", "Failing"],
  loss: ["!", "Data lost"],
  missing: ["◌", "Records missing"],
  left_out: ["◐", "Healthy, but"],
  unreachable: ["⌁", "Cannot be read"],
  unknown: ["…", "Not read yet"],
};

/** `word`: says the state in place of the word of its health; it goes on after "but". */
export function Health({ state, word }) {
  const [sign, usual] = HEALTH[state] ?? HEALTH.unknown;
  return html`<span class=${`badge health-${state}`}><span aria-hidden="true">${sign}</span> ${state === "left_out" ? `${usual} ${word}` : word || usual}</span>`;
}

/** How long ago a time was; on hover the exact time. */
export const When = ({ at }) => html`<time datetime=${at} title=${`${moment(at)} (${utc(at)})`}>${ago(at)}</time>`;

/** A time of today as "15:19 UTC". */
export const Clock = ({ at }) => html`<time datetime=${at} title=${`${moment(at)} (${utc(at)})`}>${clock(at)}</time>`;

/** What to do next: a command can be copied; a sentence about commands has a colon. */
export const Next = ({ step }) => step && html`<p class="next">Next: ${step.startsWith("ferry ") && !step.includes(": ") ? html`<${Command}>${step}<//>` : step}</p>`;

/** A number with its name. `exactly` is shown on hover. */
export const Tile = ({ name, exactly, alarming, children }) =>
  html`<div class=${`tile ${alarming ? "alarming" : ""}`} title=${exactly}><dt>${name}</dt><dd>${children}</dd></div>`;

export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** Why there is no newer document, and how old the shown one is. With `again`, a button that has it read anew. */
export function Trouble({ failure, document, again }) {
  if (failure) {
    const link = failure.status === 401 ? html` <a href=${new URL(`api/v2/auth/login?${new URLSearchParams({ next: location.href })}`, BASE)} target="_top">Log in again</a>` : null;
    return html`<div class="banner bad" role="alert"><strong>${failure.message}</strong>${link}${document && html` <${Age} document=${document} />`}</div>`;
  }
  const problem = document?.problem;
  if (!problem) return null;
  return html`<div class="banner bad" role="alert">
    <p><strong>${problem.message}</strong></p>
    <${Next} step=${problem.next_step} /><p class="muted">${problem.error}</p>
    ${document.flows?.length !== 0 && html`<${Age} document=${document} />`}${again && html`<${ReadAgain} document=${document} again=${again} />`}
  </div>`;
}

/** A flow's data are of several readings: its runs may be newer. */
const Age = ({ document: { health, read_at: read } }) => html`<p class="muted">${health && "It is unknown how far behind the flow is now, and whether records are missing. "}${
    read ? html`${health ? "The page last read it" : "The data below was read"} <${When} at=${read} />, at <${Clock} at=${read} />.` : health ? "This page could not read it so far." : "Nothing could be read yet."}</p>`;

/** The view of one document: its trouble (not if `quiet`), a sign of waiting, then `children` with the document. */
export function Read({ answer, what, quiet, children }) {
  const { document, failure } = answer;
  const read = document && (document.read_at || !(document.refreshing || document.problem));
  const waiting = !read && !failure && !document?.problem;
  return html`${!quiet && html`<${Trouble} failure=${failure} document=${document} again=${answer.again} />`}
    ${waiting && html`<p class="waiting" role="status"><span class="spinner" aria-hidden="true"></span> Reading ${what}…</p>`}${read && children(document)}`;
}

/** When a document was read, below it, and a button that has it read anew. */
export const ReadAt = ({ document, again }) =>
  html`<p class="muted read-at"><span role="status">${document.read_at && html`Read <${When} at=${document.read_at} />`}${document.refreshing && document.read_at ? ", reading again…" : ""}</span>
    ${!document.problem && html` <${ReadAgain} document=${document} again=${again} />`}</p>`;

const ReadAgain = ({ document, again }) => html`<button class="small" disabled=${document.refreshing} onClick=${again}>Read again</button>`;

/**
 * A table; on a small screen each row is a card. `columns`: {name, title, number, counts, sort, cell(row)}; `counts`: comes second on a
 * card. `sorted`: {by, descending}; `sortBy(sort)` when a header is pressed. `total`: how many rows there are, if these are a part of them.
 */
export function Table({ label, columns, rows, keyOf, sorted, sortBy, more, total }) {
  return html`<div class="scroll"><table aria-label=${label}>
    <thead><tr>${columns.map((column) => {
      const direction = sorted && column.sort === sorted.by ? (sorted.descending ? "descending" : "ascending") : undefined;
      const arrow = direction && html`<span aria-hidden="true">${direction === "descending" ? " ▾" : " ▴"}</span>`;
      return html`<th scope="col" class=${column.number && "number"} aria-sort=${direction} title=${column.title}>
        ${column.sort && sortBy ? html`<button class="plain" onClick=${() => sortBy(column.sort)}>${column.name}${arrow}</button>` : column.name}</th>`;
    })}</tr></thead>
    <tbody>${rows.map((row, number) => html`<tr key=${keyOf ? keyOf(row) : number}>${columns.map(
      (column) => html`<td class=${[column.number && "number", column.counts && "counts"].filter(Boolean).join(" ") || null} data-label=${column.name || null}>${column.cell(row)}</td>`,
    )}</tr>${more?.(row)}`)}</tbody>
  </table><${Export} label=${label} rows=${rows} total=${total ?? rows.length} /></div>`;
}

/** "1 to 50 of 2,000" with buttons. */
export function Pages({ offset, limit, total, go }) {
  if (total <= limit && offset === 0) return null;
  const last = Math.min(offset + limit, total);
  return html`<nav class="pages" aria-label="Pages">
    <button disabled=${offset === 0} onClick=${() => go(Math.max(0, offset - limit))}>Previous</button>
    <span role="status">${(offset + 1).toLocaleString("en-US")} to ${last.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}</span>
    <button disabled=${last >= total} onClick=${() => go(offset + limit)}>Next</button>
  </nav>`;
}

// The pause after the last key, before the server is asked.
const TYPING_MS = 300;

export function Search({ label, value, change }) {
  const [typed, setTyped] = useState(value);
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  // Somebody went back; what is being typed stays.
  useEffect(() => void (timer.current ?? setTyped(value)), [value]);
  const input = (event) => {
    const text = event.currentTarget.value;
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => ((timer.current = null), change(text)), TYPING_MS);
  };
  return html`<input type="search" aria-label=${label} placeholder=${label} value=${typed} onInput=${input} />`;
}

// The button says for so long what it did; then the clipboard may hold something else.
const SAID_MS = 4_000;

/** A command for a terminal, with a button that copies it. Where the browser refuses, as it does without TLS, the button selects it. */
export function Command({ children }) {
  const [said, setSaid] = useState("Copy");
  const text = useRef();
  useEffect(() => {
    const timer = said === "Copy" ? null : setTimeout(() => setSaid("Copy"), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(children);
      setSaid("Copied");
    } catch {
      getSelection().selectAllChildren(text.current);
      setSaid("Selected: now copy it");
    }
  };
  return html`<span class="command"><code ref=${text}>${children}</code><button class="small" aria-live="polite" onClick=${copy}>${said}</button></span>`;
}

/** The browser's own dialog: it keeps the focus, closes on Escape, and returns the focus. */
export function Dialog({ title, close, children }) {
  const place = useRef();
  useEffect(() => {
    const opener = document.activeElement;
    const dialog = place.current;
    dialog.showModal();
    return () => {
      // First: while the dialog is open, nothing behind it takes the focus.
      dialog.close();
      opener?.focus?.();
    };
  }, []);
  return html`<dialog ref=${place} role="dialog" aria-label=${title} onClose=${close}><h2>${title}</h2>${children}</dialog>`;
}
