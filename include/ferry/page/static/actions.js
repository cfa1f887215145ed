// What a person may do with a flow's DAG and its runs, beside starting one. Airflow's own API does it, and checks its own rights.
import { html, useState } from "./vendor/preact-htm.js";
import { Dialog } from "./elements.js";
import { call } from "./reading.js";
import { dagPath, ENDED, runPath } from "./starting.js";

export const STOPPED = "Stopped on the Ferry page";
// Airflow's column for notes holds no more.
const NOTE = 1000;

/** Something that changes: `{state, problem, act(send)}`. `state`: "asking", "sending", "done". `done()`: when it has changed. */
function useAct(done) {
  const [state, setState] = useState("asking");
  const [problem, setProblem] = useState("");
  const act = async (send) => {
    setState("sending");
    setProblem("");
    try {
      await send();
      setState("done");
      done();
    } catch (refused) {
      setState("asking");
      setProblem(refused.message);
    }
  };
  return { state, problem, act };
}

const Problem = ({ text }) => text && html`<p class="banner bad" role="alert">${text}</p>`;

/** A question before something is changed, and then what is so now (`told`). `send()` changes it. */
function Ask({ title, verb, send, told, close, done, children }) {
  const { state, problem, act } = useAct(done);
  return html`<${Dialog} title=${title} close=${close}>
    ${state === "done" ? html`<p role="status">${told}</p>` : children}<${Problem} text=${problem} />
    <p class="buttons">${state !== "done" && html`<button class="strong" disabled=${state === "sending"} onClick=${() => act(send)}>${verb}</button>`}
      <button onClick=${close}>${state === "done" ? "Close" : "Cancel"}</button></p>
  <//>`;
}

const setPaused = (flow, is_paused) => call(dagPath(flow.dag_id), { method: "PATCH", body: { is_paused } });

/** Unpauses the flow's DAG: runs start again, first those that wait. `again()`: has the flow read anew. */
export function Unpause({ flow, again }) {
  const { state, problem, act } = useAct(again);
  return html`<button disabled=${state === "sending"} onClick=${() => act(() => setPaused(flow, false))}>Unpause</button><${Problem} text=${problem} />`;
}

/** Pauses the flow's DAG, or unpauses it, unless the next step has the button for that. */
export function Pause({ flow, again }) {
  const [asked, setAsked] = useState(false);
  if (!flow.may_pause) return null;
  return html`<p class="buttons">${flow.paused
      ? flow.step !== "unpause" && html`<${Unpause} flow=${flow} again=${again} />`
      : html`<button onClick=${() => setAsked(true)}>Pause…</button>`}</p>
    ${asked && html`<${Ask} title=${`Pause ${flow.flow}`} verb="Pause the DAG" send=${() => setPaused(flow, true)} done=${again} close=${() => setAsked(false)}
      told="The DAG is paused: no run of it starts until somebody unpauses it.">
      <p>No run of <code>${flow.dag_id}</code> starts until somebody unpauses it, also none that waits or that somebody starts. A run that is under way goes on to its end.</p>
      <p>${flow.source} keeps records that are not copied only as long as the retention of their topics says.</p><//>`}`;
}

/** What became of the records of a run that is stopped. */
const Left = ({ flow }) =>
  flow.exactly_once
    ? html`<p>Records that are committed stay on ${flow.target}. The next run copies the rest: nothing is lost, and nothing is copied twice. Until it starts, but for at most 60 s, readers of committed records may wait behind what the run leaves open.</p>`
    : html`<p>The next run copies the rest, and nothing is lost. But this flow works without transactions (<code>transaction.producer=false</code>): records that the run has written and not yet noted are copied again, so ${flow.target} may have them twice.</p>`;

/** A note without the line that says that the run was stopped. */
const withoutStop = (note) => (note ?? "").split("\n\n").filter((part) => part !== STOPPED).join("\n\n");

async function stop(dag, run) {
  const { state, note } = await call(runPath(dag, run));
  // Airflow would mark it as failed all the same.
  if (ENDED.has(state)) throw new Error("The run has ended meanwhile.");
  const kept = withoutStop(note).slice(0, NOTE - STOPPED.length - 2);
  await call(runPath(dag, run), { method: "PATCH", body: { state: "failed", note: [kept, STOPPED].filter(Boolean).join("\n\n") } });
}

/** Asks whether a run shall be stopped, and stops it. */
export const Stop = ({ flow, run, close, done }) => html`<${Ask} title="Stop this run" verb="Stop the run" send=${() => stop(flow.dag_id, run)} close=${close} done=${done}
    told="Airflow has marked the run as failed, and ends its tasks within seconds.">
    <p>Airflow marks run <code>${run}</code> as failed, and ends its tasks within seconds: the copy too, in the middle of what it does. It skips the tasks that have not begun, so the run leaves no report.</p>
    <${Left} flow=${flow} />
    <p>The flow counts as failing until another run has ended well. Stopping a run does not pause the DAG.</p><//>`;

async function clear(dag, run) {
  const { note } = await call(runPath(dag, run));
  // Else a second try that dies would count as stopped.
  if (note && note !== withoutStop(note)) await call(runPath(dag, run), { method: "PATCH", body: { note: withoutStop(note) } });
  // All tasks: of a run that was stopped, and of one that could not be planned, some were skipped and did not fail.
  await call(`${runPath(dag, run)}/clear`, { method: "POST", body: { dry_run: false, only_failed: false } });
}

/** Asks whether a run that failed shall run again under its id, and clears its tasks. */
export const Retry = ({ flow, run, close, done }) => html`<${Ask} title="Run it again" verb="Clear all tasks" send=${() => clear(flow.dag_id, run)} close=${close} done=${done}
    told="Airflow has cleared all tasks of the run, and starts them again.">
    <p>Airflow clears all tasks of run <code>${run}</code>, and the run starts again, with the same id and for the same topics and interval. It goes on where the copy stands now: ${flow.exactly_once ? "nothing is copied twice" : "without transactions, records that were written and not yet noted are copied again"}.</p>
    ${flow.paused && html`<p class="banner">The DAG is paused: the run waits until somebody unpauses it.</p>`}<//>`;
