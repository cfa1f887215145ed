// The page: the choice of a flow, and its views as tabs.
import { h, html, render, useRef } from "./vendor/preact-htm.js";
import { Config } from "./config.js";
import { Coverage } from "./coverage.js";
import { Drift } from "./drift.js";
import { Empty, Health, Read, Trouble } from "./elements.js";
import { Groups } from "./groups.js";
import { Overview } from "./overview.js";
import { usePlace, VIEWS } from "./place.js";
import { BASE, useDocument } from "./reading.js";
import { Failover } from "./recovery.js";
import { Runs } from "./runs.js";
import { Topics } from "./topics.js";
import { Verify } from "./verify.js";

const TITLES = { overview: "Overview", runs: "Runs", topics: "Topics", coverage: "Coverage", groups: "Groups", drift: "Drift", verify: "Verify", failover: "Failover", config: "Config" };
const PAGES = { runs: Runs, topics: Topics, coverage: Coverage, groups: Groups, drift: Drift, verify: Verify, failover: Failover, config: Config };
const OVERVIEW_MS = 10_000;

function Tabs({ view, go, views }) {
  const place = useRef();
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = Math.min(views.length - 1, Math.max(0, views.indexOf(view) + step));
    go({ view: views[at] });
    place.current.children[at].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="Views" ref=${place} onKeyDown=${move}>${views.map(
    (name) => html`<button role="tab" id=${`tab-${name}`} aria-selected=${name === view} aria-controls="view" tabindex=${name === view ? 0 : -1}
      onClick=${() => go({ view: name })}>${TITLES[name]}</button>`,
  )}</div>`;
}

function FlowChoice({ flows, flow, go }) {
  if (flows.length < 2) return html`<span class="flow-name">${flow.flow}</span>`;
  return html`<label class="flow-choice">Flow <select value=${flow.flow} onChange=${(event) => go({ flow: event.currentTarget.value })}>
    ${flows.map((one) => html`<option value=${one.flow}>${one.flow}</option>`)}</select></label>`;
}

// Endings of the ids of a flow's other DAGs. Aliases may hold dots too, so ids are not split at dots.
const RECOVERIES = ["failover", "failback", "cutover"];
const flowOf = (dag, flows) =>
  flows.find((one) => [one.dag_id, one.verify_dag_id].includes(dag)) ?? flows.find((one) => RECOVERIES.some((kind) => dag === `${one.dag_id}.${kind}`));

function Loaded({ document, place, go, again }) {
  if (!document.flows.length) {
    return html`<${Empty}>You can see no flow. Ferry makes a DAG for each enabled flow of the files that <code>FERRY_CONFIG</code>
      names, and you need the right to read that DAG.<//>`;
  }
  const ofDag = place.dag && flowOf(place.dag, document.flows);
  if (place.dag && !ofDag) return html`<${Empty}>DAG ${place.dag} belongs to no Ferry flow. <a href=${new URL("plugin/ferry", BASE)}>All flows</a><//>`;
  const flow = ofDag ?? document.flows.find((one) => one.flow === place.flow) ?? document.flows[0];
  const view = place.view ?? (ofDag ? "runs" : "overview");
  const View = PAGES[view];
  const content = View ? h(View, { key: flow.flow, flow, place, go, again }) : html`<${Overview} document=${document} go=${go} again=${again} />`;
  return html`
    <header>
      <${Tabs} view=${view} go=${go} views=${ofDag ? VIEWS.filter((name) => name !== "overview") : VIEWS} />
      ${View && html`<div class="chosen">
        ${ofDag ? html`<span class="flow-name">${flow.flow}</span>` : html`<${FlowChoice} flows=${document.flows} flow=${flow} go=${go} />`}
        <${Health} state=${flow.health} word=${flow.word} /></div>`}
    </header>
    <section id="view" role="tabpanel" aria-labelledby=${`tab-${view}`}>${content}</section>`;
}

function Page() {
  const [place, go] = usePlace();
  const answer = useDocument("overview", {}, OVERVIEW_MS);
  const { document, failure } = answer;
  const ready = document && (document.flows.length || !document.problem);
  return html`<div class="ferry">
    <h1>Ferry</h1>
    ${ready
      ? html`<${Trouble} failure=${failure} document=${document.problem ? document : null} /><${Loaded} document=${document} place=${place} go=${go} again=${answer.again} />`
      : html`<${Read} answer=${answer} what="the flows">${() => null}<//>`}
    ${document && html`<footer class="muted">Ferry ${document.release}, <a href=${new URL("ferry/docs/", BASE)} target="_blank">documentation</a></footer>`}
  </div>`;
}

/** Show the page in `place`. Returns a function that removes it. */
export function mount(place) {
  const style = document.createElement("link");
  style.rel = "stylesheet";
  style.href = new URL("style.css", import.meta.url);
  // Shows nothing before the style is there.
  style.onload = () => render(html`<${Page} />`, place);
  document.head.append(style);
  return () => {
    render(null, place);
    style.remove();
  };
}
