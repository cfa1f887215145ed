// How far the run is that is under way: a bar, and the words that the log has too.
import { html, useEffect } from "./vendor/preact-htm.js";
import { useDocument } from "./reading.js";

const LIVE_MS = 2_000;

/** A run that follows has no end, so it has no bar. `again()` has the flow read anew, when the run has ended. */
export function Live({ flow, again }) {
  const { document, failure } = useDocument(flow.under_way && "progress", { flow: flow.flow }, LIVE_MS);
  const ended = document?.read_at && document.run_id === null;
  useEffect(() => {
    if (ended) again?.();
  }, [ended]);
  // Nobody could see that these numbers are old.
  if (!document?.run_id || !document.text || document.problem || failure) return null;
  // Words that do not fit go to the next line whole: browsers break names at their hyphens.
  const words = document.text.split(" ").map((word) => html`<span>${word}</span> `);
  if (document.follows) return html`<p class="live">${words}</p>`;
  const whole = document.share === null ? {} : { "aria-valuenow": Math.floor(100 * document.share), "aria-valuemin": 0, "aria-valuemax": 100 };
  return html`<div class="live"><div class=${`live-bar ${document.share === null ? "open" : ""}`} role="progressbar" aria-label=${`Run ${document.run_id}`} aria-valuetext=${document.text} ...${whole}>
      <div style=${document.share === null ? null : { width: `${100 * document.share}%` }}></div></div>
    <p>${words}</p></div>`;
}
