// Starts runs by Airflow's own API, which checks its own rights, and follows them to their end.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { BASE, call } from "./reading.js";

const LOOK_MS = 3_000;
/** Airflow's states of a run that has ended. */
export const ENDED = new Set(["success", "failed"]);
const DONE = { success: "has succeeded", failed: "has failed: its log says why" };

/** The path of a DAG in Airflow's API. */
export const dagPath = (dag) => `api/v2/dags/${encodeURIComponent(dag)}`;
export const runPath = (dag, run) => `${dagPath(dag)}/dagRuns/${encodeURIComponent(run)}`;

/** A run of the DAG: `{run, state, problem, paused, start(body)}`. `state`: "asking", "starting", then Airflow's. `ended()`: when it has. */
export function useRun(dag, ended) {
  const [run, setRun] = useState(null);
  const [state, setState] = useState("asking");
  const [problem, setProblem] = useState("");
  const [paused, setPaused] = useState(false);
  useEffect(() => {
    if (!run || ENDED.has(state)) return undefined;
    const look = async () => {
      try {
        const found = await call(runPath(dag, run));
        setProblem("");
        setState(found.state);
        if (ENDED.has(found.state)) ended();
      } catch (refused) {
        setProblem(`How far the run is, is not known: ${refused.message}`);
      }
    };
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [run, state]);
  const start = async (body) => {
    setState("starting");
    setProblem("");
    try {
      const started = await call(`${dagPath(dag)}/dagRuns`, { method: "POST", body });
      setRun(started.dag_run_id);
      setState(started.state ?? "queued");
      setPaused((await call(dagPath(dag)).catch(() => ({}))).is_paused ?? false);
    } catch (refused) {
      setState("asking");
      setProblem(refused.message);
    }
  };
  return { dag, run, state, problem, paused, start };
}

/** How far the run is, and why it could not be started. */
export function Progress({ of: { dag, run, state, problem, paused } }) {
  const link = run && html`<a href=${new URL(`dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}`, BASE)} target="_top">${run}</a>`;
  return html`${problem && html`<p class="banner bad" role="alert">${problem}</p>`}
    ${paused && state === "queued" && html`<p class="banner">The DAG is paused: the run waits until somebody unpauses it.</p>`}
    ${run && html`<p role="status">${!ENDED.has(state) && html`<span class="spinner" aria-hidden="true"></span> `}Run ${link} ${DONE[state] ?? `is ${state}`}.</p>`}`;
}

/** A button that starts a run at once. `note`: for Airflow. `ended()`: when the run has. */
export function Start({ dag, name, note, ended }) {
  const run = useRun(dag, ended);
  const busy = run.state !== "asking" && !ENDED.has(run.state);
  return html`<p class="buttons"><button disabled=${busy} onClick=${() => run.start({ logical_date: null, note })}>${name}</button></p><${Progress} of=${run} />`;
}
