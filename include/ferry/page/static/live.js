// How far the run is that is under way: a bar, and the words that the log has too.
import { html, useEffect } from "./vendor/preact-htm.js";
import { useDocument } from "./reading.js";

const LIVE_MS = 2_000;

/** The progress of the flow's run, as of useDocument; asks for nothing while none is under way. */
export const useProgress = (flow) => useDocument(flow.under_way && "progress", { flow: flow.flow }, LIVE_MS);

/** Of a progress: the document; null: there is none, or its numbers are old, which nobody could see. */
export const fresh = ({ document, failure }) => (document?.problem || failure ? null : document);

export const Live = ({ flow, again }) => html`<${Run} flow=${flow} progress=${useProgress(flow)} again=${again} />`;

/** A run that follows has no end, so it has no bar. `again()` has the flow read anew, when the run has ended. */
export function Run({ flow, progress, again }) {
  const document = fresh(progress);
  const ended = document?.read_at && document.run_id === null;
  useEffect(() => {
    if (ended) again?.();
  }, [ended]);
  if (!flow.under_way || ended) return null;
  if (!document && !progress.failure && !progress.document) return html`<p class="live">Reading how far the run is…</p>`;
  if (!document?.text) return html`<p class="live">${flow.under_way.follows ? "following" : "a run is under way"}; how far it is: not known yet</p>`;
  // Words that do not fit go to the next line whole: browsers break names at their hyphens.
  const words = document.text.split(" ").map((word) => html`<span>${word}</span> `);
  if (document.follows) return html`<p class="live">${words}</p>`;
  const whole = document.share === null ? {} : { "aria-valuenow": Math.floor(100 * document.share), "aria-valuemin": 0, "aria-valuemax": 100 };
  return html`<div class="live"><div class=${`live-bar ${document.share === null ? "open" : ""}`} role="progressbar" aria-label=${`Run ${document.run_id}`} aria-valuetext=${document.text} ...${whole}>
      <div style=${document.share === null ? null : { width: `${100 * document.share}%` }}></div></div>
    <p>${words}</p></div>`;
}
