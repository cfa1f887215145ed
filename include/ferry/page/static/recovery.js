// Failover, failback and cut-over: what the last run of each DAG has done, what it asks a person, and buttons that start one.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Command, Dialog, Read, Table, When } from "./elements.js";
import { exact, plural } from "./format.js";
import { BASE, call, useDocument } from "./reading.js";
import { ENDED, Progress, runPath, useRun } from "./starting.js";

const LOOK_MS = 5_000;
const TITLES = { failover: "Failover", failback: "Failback", cutover: "Cut-over" };
const DOES = {
  failover: (a, b) => `Moves all consumer groups of ${a} to ${b}, each to the record that it would have read next. This also works when ${a} is gone.`,
  failback: (a, b) => `After a failover: moves back from ${b} to ${a}. Only newer records are copied back, and each group continues where it was.`,
  cutover: (a, b) => `A planned move from ${a} to ${b}: producers stop, everything is copied and compared, then the groups continue there.`,
};
// In the order in which the tasks run.
const STAGES = {
  check_clusters: "check both clusters",
  plan_copy: "plan the last copy",
  copy_once_more: "copy once more",
  plan_copy_tail: "plan the copy of what is left",
  copy_tail: "copy what is left",
  plan_copy_back: "plan the copy back",
  copy_back: "copy back",
  plan_copy_ahead: "plan the copy",
  copy_ahead: "copy",
  begin_to_stop: "begin to stop",
  confirm_stopped: "ask whether producers and consumers are stopped",
  drain: "copy the rest",
  compare_sides: "compare both sides",
  plan_groups: "plan where each group continues",
  confirm: "ask whether the groups shall be written",
  write_groups: "write the groups",
  report_outcome: "report",
};
const PLANS = "plan_groups";
const QUESTIONS = ["confirm_stopped", "confirm"];
// Airflow 3.3 has a state of its own for a task that waits for a person; before, the task is deferred.
const ASKING = ["awaiting_input", "deferred"];
const SIGNS = { success: ["✓", "healthy", "done"], failed: ["✕", "failing", "failed"], upstream_failed: ["✕", "failing", "not reached"], skipped: ["–", "unknown", "skipped"], running: ["…", "unknown", "running"] };
const WAITS = ["?", "lagging", "waits for a person"];
const LATER = ["○", "unknown", "later"];
const taskPlace = (dag, run, task) => new URL(`dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run)}/tasks/${task}`, BASE);

/** What Airflow's API answers, asked again while `open` or until it answers or refuses; null: nothing, or the user may not see it. */
function useAirflow(path, open) {
  const [answer, setAnswer] = useState({ path: null, found: null });
  useEffect(() => {
    let left = false;
    let timer;
    const look = async () => {
      let refused = false;
      const found = document.hidden ? null : await call(path).catch(({ status }) => ((refused = status === 403 || (status === 404 && !open)), null));
      if (left) return;
      if (found) setAnswer({ path, found });
      if (!refused && (open || !found)) timer = setTimeout(look, LOOK_MS);
    };
    look();
    return () => ((left = true), clearTimeout(timer));
  }, [path, open]);
  return answer.path === path ? answer.found : null;
}

function Question({ dag, run, task }) {
  const asked = useAirflow(`${runPath(dag, run)}/taskInstances/${task}/-1/hitlDetails`, false);
  return html`<p class="banner" role="status"><strong>It waits for a person.</strong> ${asked?.subject} <a href=${`${taskPlace(dag, run, task)}/required_actions`} target="_top">Read and answer it in Airflow</a></p>`;
}

function Stages({ dag, run: { run_id: run, dry }, open }) {
  const answer = useAirflow(`${runPath(dag, run)}/taskInstances`, open);
  const tasks = Object.fromEntries((answer?.task_instances ?? []).map((one) => [one.task_id, one.state]));
  const waiting = QUESTIONS.find((task) => ASKING.includes(tasks[task]));
  return html`${waiting && html`<${Question} dag=${dag} run=${run} task=${waiting} />`}
    <ol class="stages" aria-label="Stages">${Object.keys(STAGES).filter((task) => task in tasks).map((task) => {
      const [sign, health, word] = task === waiting ? WAITS : SIGNS[tasks[task]] ?? LATER;
      return html`<li><span class=${`badge health-${health}`}><span aria-hidden="true">${sign}</span> ${word}</span> ${STAGES[task]}</li>`;
    })}</ol>
    ${(tasks[PLANS] === "success" || (dry && tasks[PLANS] === "skipped")) && html`<${Plan} dag=${dag} run=${run} />`}`;
}

/** The document of an XCom. Nothing if its value is only a place, as where an XCom backend keeps values elsewhere. */
function documentIn(value) {
  try {
    return (typeof value === "string" ? JSON.parse(value) : value).document;
  } catch {
    return undefined;
  }
}

/** A table as Ferry has made it. Saved rows have its columns too. */
function Made({ label, table: { columns, rows, total } }) {
  const shown = columns.map((name, at) => ({ name: name[0].toUpperCase() + name.slice(1), number: rows.every((row) => /^[\d,]*$/.test(row[at])), cell: (row) => row[name] }));
  return html`<${Table} label=${label} columns=${shown} rows=${rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])))} total=${total} />`;
}

/** What the task that plans has found: it leaves its document as an XCom. In a dry run it skips itself then. */
function Plan({ dag, run }) {
  const answer = useAirflow(`${runPath(dag, run)}/taskInstances/${PLANS}/xcomEntries/return_value`, false);
  const plan = documentIn(answer?.value);
  if (!answer) return null;
  if (!plan?.counts) return html`<p>This page cannot read the plan. <a href=${taskPlace(dag, run, PLANS)} target="_top">Read it in the log of its task</a></p>`;
  const { counts, tables } = plan;
  const told = [counts.inexact && `${exact(counts.inexact)} of them not exact`, counts.obstacles && `${exact(counts.obstacles)} cannot be written now`].filter(Boolean).join(", ");
  return html`<h4>Plan</h4>
    <p>${plural(counts.groups, "group")}${counts.groups > 0 && `, ${told || "all exact"}`}${plan.source_away && `; ${plan.source_away}`}.</p>
    ${[...plan.problems, ...plan.groups_unread].map((text) => html`<p class="banner bad">${text}</p>`)}
    ${tables.groups.total > 0 && html`<${Made} label="Where groups continue" table=${tables.groups} />`}
    ${counts.missing ? html`<p>Not on the other side: ${plan.missing_offsets !== null && `${plural(plan.missing_offsets, "offset")} in `}${plural(counts.missing, "partition")}.</p><${Made} label="Not on the other side" table=${tables.missing} />` : html`<p class="good">✓ Everything is on the other side.</p>`}`;
}

function Start({ flow, recovery, close, again }) {
  const run = useRun(recovery.dag_id, again);
  const start = () => run.start({ logical_date: null, conf: {}, note: "Started from the Ferry page" });
  const title = `${TITLES[recovery.kind]} of ${flow.flow}`;
  return html`<${Dialog} title=${title} close=${close}>
    ${!run.run && html`<p>${DOES[recovery.kind](flow.source, flow.target)}</p>
      <p>A run of <code>${recovery.dag_id}</code> begins. Until a person has confirmed its plan in Airflow it writes only copies of records, and rejecting the plan writes no group.</p>
      <p>It starts with the parameters that the DAG has by default. For others, trigger the DAG in <a href=${new URL(`dags/${encodeURIComponent(recovery.dag_id)}`, BASE)} target="_top">Airflow</a>.</p>`}
    <${Progress} of=${run} />
    <p class="buttons">${!run.run && html`<button class="strong" disabled=${run.state === "starting"} onClick=${start}>Start the run</button>`}
      <button onClick=${close}>${run.run ? "Close" : "Cancel"}</button></p><//>`;
}

function DryRun({ recovery, again }) {
  const run = useRun(recovery.dag_id, again);
  const start = () => run.start({ logical_date: null, conf: { dry_run: true }, note: "Dry run from the Ferry page" }).then(again);
  return html`<p class="buttons"><button onClick=${start} disabled=${run.state === "starting"}>Show the plan</button></p>${run.problem && html`<p class="banner bad" role="alert">${run.problem}</p>`}`;
}

function Recovery({ flow, recovery, again }) {
  const [asked, setAsked] = useState(false);
  const { kind, dag_id: dag, runs } = recovery;
  const [run] = runs;
  const open = run && !ENDED.has(run.state);
  const close = () => (setAsked(false), again());
  return html`<article class="card" aria-label=${TITLES[kind]}><div class="card-head"><h3>${TITLES[kind]}</h3></div><p>${DOES[kind](flow.source, flow.target)}</p>
    ${!recovery.there
      ? html`<p>Airflow has no DAG <code>${dag}</code>, or you may not see it. Ferry makes it since Airflow 3.1, unless a DAG file says <code>recovery=False</code>. In a terminal: <${Command}>${recovery.command}<//></p>`
      : html`<p>DAG <a href=${new URL(`dags/${encodeURIComponent(dag)}`, BASE)} target="_top">${dag}</a>${run ? html`; its last run <a href=${new URL(run.url.replace(/^\//, ""), BASE)} target="_top">${run.run_id}</a> ${run.dry ? "was to show the plan, and " : ""}is ${open ? run.state : html`over (${run.state})`}, begun <${When} at=${run.started} />.` : html`; nobody has started it yet.`}</p>
        ${run && html`<${Stages} dag=${dag} run=${run} open=${open} />`}
        ${recovery.may_trigger && !open && html`<div class="acts"><${DryRun} recovery=${recovery} again=${again} /><p class="buttons"><button onClick=${() => setAsked(true)}>${TITLES[kind]}…</button></p></div>`}
        ${asked && html`<${Start} flow=${flow} recovery=${recovery} close=${close} again=${again} />`}`}</article>`;
}

export function Failover({ flow }) {
  const answer = useDocument("recovery", { flow: flow.flow }, LOOK_MS);
  return html`<p>How groups and records move to the other cluster. To rehearse it with every check of rights, and with the time that it takes: <${Command}>${`${answer.document?.recoveries?.[0].command ?? "ferry failover"} --rehearse`}<//></p>
    <${Read} answer=${answer} what="the DAGs">${(document) => document.recoveries.map((recovery) => html`<${Recovery} key=${recovery.kind} flow=${flow} recovery=${recovery} again=${answer.again} />`)}<//>`;
}
