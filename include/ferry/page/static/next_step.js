// What to do next about a flow: the button or the place that the page has for it, and the command that does the same in a terminal.
import { html } from "./vendor/preact-htm.js";
import { Unpause } from "./actions.js";
import { Command } from "./elements.js";
import { exact, records } from "./format.js";
import { BASE } from "./reading.js";
import { Start } from "./starting.js";

// With the path, because Airflow's <base> would resolve a bare query to its home page.
const address = (place) => `${location.pathname}?${new URLSearchParams(Object.entries(place).filter(([, value]) => value))}`;

/** A link to another place of the page. */
export const To = ({ go, place, children }) => html`<a href=${address(place)} onClick=${(event) => (event.preventDefault(), go(place))}>${children}</a>`;

// The button says it.
const RUN = "start a run now, in Airflow or with ferry run";

function Backfills({ flow, go }) {
  const topics = flow.missing.filter((one) => one.closable);
  if (!flow.may_trigger) return html`ask somebody who may start runs of ${flow.dag_id} for a backfill of ${topics.map((one) => one.topic).join(", ")}`;
  return html`if that was a mistake: ${topics.map((one) => html`<button onClick=${() => go({ flow: flow.flow, view: "coverage", topic: one.topic, range: "all" })}>Backfill ${one.topic}… <span title=${`${exact(one.records)} records`}>(${records(one.records)})</span></button> `)}`;
}

/** The words of the step, without the command that is told below them. */
const words = (flow) => (flow.command ? flow.next_step.replaceAll(flow.command, `ferry ${flow.step}`) : flow.next_step);

const WAYS = {
  // The view of runs has this button already.
  run: ({ flow, again, view }) => (flow.may_trigger && view !== "runs" ? html`${words(flow).replace(/^if its DAG is paused.*?; if not, /, "").replace(RUN, "").replace(/^: /, "")}<${Start} dag=${flow.dag_id} name="Run now" note="Started from the Ferry page" ended=${again} />` : words(flow)),
  backfill: Backfills,
  verify: ({ flow, go }) => html`${words(flow)} <button onClick=${() => go({ flow: flow.flow, view: "verify" })}>See the differences</button>`,
  "ack-loss": ({ flow, go, view }) => html`${words(flow)} ${view !== "runs" && html`<button onClick=${() => go({ flow: flow.flow, view: "runs" })}>See what is lost</button>`}`,
  unpause: ({ flow, again }) => (flow.may_pause ? html`${words(flow)} <${Unpause} flow=${flow} again=${again} />` : html`<a href=${new URL(`dags/${encodeURIComponent(flow.dag_id)}`, BASE)} target="_top">${words(flow)}</a>`),
};

/** `view`: where it stands. `again()`: reads the flow anew, after a run. */
export function NextStep({ flow, go, again, view }) {
  if (!flow.next_step) return null;
  const Way = WAYS[flow.step] ?? (() => flow.next_step);
  return html`<div class="next"><strong>Next:</strong> <${Way} flow=${flow} go=${go} again=${again} view=${view} />
    ${flow.command && html`<details><summary>as command</summary><${Command}>${flow.command}<//></details>`}</div>`;
}
