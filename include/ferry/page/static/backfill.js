// The dialog that starts a run of the flow's DAG over the record times of missing ranges. Airflow checks whether the user may start it.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Dialog } from "./elements.js";
import { exact, plural, span, utc } from "./format.js";
import { BASE, call } from "./reading.js";

const LOOK_MS = 3_000;
const ENDED = new Set(["success", "failed"]);
const DONE = { success: "The run has succeeded.", failed: "The run has failed: its log says why." };

export function Backfill({ ranges, dag, flow, topic, close, again }) {
  const [run, setRun] = useState(null);
  const [state, setState] = useState("asking");
  const [problem, setProblem] = useState("");
  const [paused, setPaused] = useState(false);
  const from = Math.min(...ranges.map((range) => range.from_ms));
  const until = Math.max(...ranges.map((range) => range.until_ms));
  const [first, last] = span(from, until);
  const path = `api/v2/dags/${encodeURIComponent(dag)}`;
  useEffect(() => {
    call(path).then((found) => setPaused(found.is_paused), () => {});
  }, []);
  useEffect(() => {
    if (!run || ENDED.has(state)) return undefined;
    const look = async () => {
      const found = await call(`${path}/dagRuns/${encodeURIComponent(run)}`).catch(() => null);
      if (found) setState(found.state);
      if (found && ENDED.has(found.state)) again();
    };
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [run, state]);
  const start = async () => {
    setState("starting");
    setProblem("");
    const body = {
      logical_date: new Date().toISOString(),
      data_interval_start: new Date(from).toISOString(),
      data_interval_end: new Date(until).toISOString(),
      conf: { bound: "interval", topics: [topic] },
      note: `Backfill of ${topic} from the Ferry page`,
    };
    try {
      const started = await call(`${path}/dagRuns`, { method: "POST", body });
      setRun(started.dag_run_id);
      setState(started.state ?? "queued");
    } catch (refused) {
      setState("asking");
      setProblem(refused.message);
    }
  };
  const link = run && html`<a href=${new URL(`dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}`, BASE)} target="_top">${run}</a>`;
  return html`<${Dialog} title=${`Backfill ${topic}`} close=${close}>
    ${!run && html`<p>A run of <code>${dag}</code> copies every record of <strong>${topic}</strong> that the ledger of ${flow} lacks, in all partitions, with a record time from</p>
      <p class="interval"><span title=${utc(from)}>${first}</span> until <span title=${utc(until)}>${last}</span></p>
      <p>It fills ${plural(ranges.length, "range")} with ${exact(ranges.reduce((sum, range) => sum + range.end - range.start, 0))} offsets. Ferry appends these records behind newer ones. A consumer group whose position was in front of a filled range may read newer records again.</p>`}
    ${paused && html`<p class="banner">The DAG is paused: the run waits until somebody unpauses it.</p>`}
    ${problem && html`<p class="banner bad" role="alert">${problem}</p>`}
    ${run && html`<p role="status">${ENDED.has(state) ? DONE[state] : html`<span class="spinner" aria-hidden="true"></span> The run is ${state}.`}</p><p>${link}</p>`}
    <p class="buttons">${!run && html`<button class="strong" disabled=${state === "starting"} onClick=${start}>Start the run</button>`}
      <button onClick=${close}>${run ? "Close" : "Cancel"}</button></p>
  <//>`;
}
