// The dialog that starts a run of the flow's DAG over the record times of missing ranges.
import { html } from "./vendor/preact-htm.js";
import { Dialog } from "./elements.js";
import { exact, plural, span, utc } from "./format.js";
import { Progress, useRun } from "./starting.js";

export function Backfill({ ranges, dag, flow, topic, close, again }) {
  const run = useRun(dag, again);
  const from = Math.min(...ranges.map((range) => range.from_ms));
  const until = Math.max(...ranges.map((range) => range.until_ms));
  const [first, last] = span(from, until);
  const start = () =>
    run.start({
      logical_date: new Date().toISOString(),
      data_interval_start: new Date(from).toISOString(),
      data_interval_end: new Date(until).toISOString(),
      conf: { bound: "interval", topics: [topic] },
      note: `Backfill of ${topic} from the Ferry page`,
    });
  return html`<${Dialog} title=${`Backfill ${topic}`} close=${close}>
    ${!run.run && html`<p>A run of <code>${dag}</code> copies every record of <strong>${topic}</strong> that the ledger of ${flow} lacks, in all partitions, with a record time from</p>
      <p class="interval"><span title=${utc(from)}>${first}</span> until <span title=${utc(until)}>${last}</span></p>
      <p>It fills ${plural(ranges.length, "range")} with ${exact(ranges.reduce((sum, range) => sum + range.end - range.start, 0))} offsets. Ferry appends these records behind newer ones. A consumer group whose position was in front of a filled range may read newer records again.</p>`}
    <${Progress} of=${run} />
    <p class="buttons">${!run.run && html`<button class="strong" disabled=${run.state === "starting"} onClick=${start}>Start the run</button>`}
      <button onClick=${close}>${run.run ? "Close" : "Cancel"}</button></p>
  <//>`;
}
