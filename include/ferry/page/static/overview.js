// The map of clusters and flows, and a card for each flow: its health, the reasons, and what to do.
import { html } from "./vendor/preact-htm.js";
import { bytes, count, exact, headroom, oldest, plural, records } from "./format.js";
import { Clock, Health, Next, ReadAt, Tile, Trouble, When } from "./elements.js";
import { Live } from "./live.js";
import { BASE } from "./reading.js";
import { Start } from "./starting.js";

const WIDTH = 720;
const NODE = { width: 132, height: 44 };
// Arrows are bent, so that both directions between two clusters can be seen.
const BEND = 34;
// The width of a letter: the arrow must not cross out its label.
const LETTER = 7.5;

/** Places of clusters: on an ellipse; two stand side by side. */
function layout(clusters) {
  const height = clusters.length < 3 ? 150 : 320;
  const places = clusters.map(({ alias }, index) => {
    const angle = Math.PI + (2 * Math.PI * index) / clusters.length;
    return [alias, { x: WIDTH / 2 + Math.cos(angle) * (WIDTH / 2 - 90), y: height / 2 + Math.sin(angle) * (height / 2 - 40) }];
  });
  return { height, places: new Map(places) };
}

function arrow(from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [-dy / length, dx / length];
  const middle = { x: (from.x + to.x) / 2 + nx * BEND, y: (from.y + to.y) / 2 + ny * BEND };
  const edge = (node, other) => {
    const [ex, ey] = [other.x - node.x, other.y - node.y];
    const scale = Math.min(NODE.width / 2 / Math.abs(ex || 1e-9), NODE.height / 2 / Math.abs(ey || 1e-9));
    return { x: node.x + ex * scale, y: node.y + ey * scale };
  };
  const [start, end] = [edge(from, middle), edge(to, middle)];
  return { path: `M${start.x},${start.y} Q${middle.x},${middle.y} ${end.x},${end.y}`, label: { x: (start.x + end.x) / 4 + middle.x / 2, y: (start.y + end.y) / 4 + middle.y / 2 } };
}

function ClusterMap({ clusters, flows, go }) {
  const { height, places } = layout(clusters);
  const heads = [...new Set(flows.map((flow) => flow.health))];
  return html`<svg class="map" viewBox=${`0 0 ${WIDTH} ${height}`} role="group" aria-label="Clusters and flows">
    <defs>${heads.map((state) => html`<marker id=${`head-${state}`} class=${`head health-${state}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 8,4 0,8z" /></marker>`)}</defs>
    ${flows.map((flow) => {
      const { path, label } = arrow(places.get(flow.source), places.get(flow.target));
      const open = () => go({ flow: flow.flow, view: "runs" });
      const told = `${flow.health === "healthy" ? "✓ " : ""}${lagged(flow)}`;
      const ground = told.length * LETTER;
      const key = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open());
      return html`<g class=${`flow health-${flow.health}`} role="link" tabindex="0" aria-label=${`${flow.flow}: ${flow.health}`} onClick=${open} onKeyDown=${key}>
        <path class="reach" d=${path} /><path class="line" d=${path} marker-end=${`url(#head-${flow.health})`} />
        <rect class="ground" x=${label.x - ground / 2} y=${label.y - 9} width=${ground} height="18" /><text x=${label.x} y=${label.y}>${told}</text></g>`;
    })}
    ${clusters.map(({ alias }) => {
      const { x, y } = places.get(alias);
      return html`<g class="cluster"><rect x=${x - NODE.width / 2} y=${y - NODE.height / 2} width=${NODE.width} height=${NODE.height} rx="8" />
        <text x=${x} y=${y}>${alias.length > 16 ? `${alias.slice(0, 15)}…` : alias}<title>${alias}</title></text></g>`;
    })}
  </svg>`;
}

// What the arrow of a flow says instead of its lag.
const WORSE = { unknown: "not read yet", unreachable: "cannot be read", loss: "records lost", missing: "records missing", paused: "paused", never_ran: "never ran" };

function lagged(flow) {
  if (flow.health in WORSE) return WORSE[flow.health];
  return flow.totals?.lag_records ? `${count(flow.totals.lag_records)} behind` : flow.health === "failing" ? "failing" : "up to date";
}

/** How many records wait; without any, what is not counted. */
function waits(flow, waiting) {
  if (waiting) return records(waiting);
  return flow.not_counted.join(", ") || (flow.health === "failing" ? "nothing else" : "nothing");
}

/** Why Airflow shows a run as failed whose copy did not fail: the reasons of the card are what was broken. */
const alsoFailed = (run) => run.airflow_state === "failed" && ["done", "nothing new"].includes(run.state) && `; Airflow shows it as failed, because ${run.failed.map((one) => one.error).join(", ")}`;

// With the path, because Airflow's <base> would resolve a bare query to its home page.
const address = (flow, view, topic) => `${location.pathname}?${new URLSearchParams({ flow: flow.flow, view, ...(topic ? { topic } : {}) })}`;

function Card({ flow, go, again }) {
  const { totals, last_run: run } = flow;
  // Without the reason that the banner shows already.
  const reasons = flow.reasons.filter((reason) => !flow.problem || !reason.includes(flow.problem.message));
  const missing = Object.entries(flow.missing);
  const gone = flow.health === "unreachable";
  const open = (view, topic) => (event) => {
    event.preventDefault();
    go({ flow: flow.flow, view, topic });
  };
  return html`<article class="card" aria-label=${`Flow ${flow.flow}`}>
    <div class="card-head"><h2><a href=${address(flow, "runs")} onClick=${open("runs")}>${flow.flow}</a></h2><${Health} state=${flow.health} /></div>
    <${Trouble} document=${flow.problem ? flow : null} again=${again} />
    <${Live} flow=${flow} again=${again} />
    ${totals?.topics === 0 && html`<p class="banner">No topic of ${flow.source} matches the flow's topics yet.</p>`}
    ${reasons.length > 0 && html`<ul class="reasons">${reasons.map((reason) => html`<li>${reason}</li>`)}</ul>`}
    ${missing.length > 0 && html`<p>Missing: ${missing.map(([topic, records], index) => html`${index ? ", " : ""}<a href=${address(flow, "coverage", topic)} onClick=${open("coverage", topic)}>${topic}</a> (${exact(records)})`)}</p>`}
    ${!flow.problem && html`<${Next} step=${flow.next_step} />`}
    ${totals && gone && html`<p class="muted">Unknown since <${Clock} at=${flow.read_at} />. It was then:</p>`}
    ${totals && html`<dl class=${`tiles ${gone ? "old" : ""} ${reasons.length && !totals.lag_records ? "aside" : ""}`}>
      <${Tile} name="Behind" exactly=${records(totals.lag_records, exact)} alarming=${flow.health === "lagging"}>${waits(flow, totals.lag_records)}<//>
      ${totals.lag_records > 0 && html`<${Tile} name="Size" exactly=${`${exact(totals.lag_bytes)} bytes`}>${bytes(totals.lag_bytes)}<//>
      <${Tile} name="Oldest uncopied">${oldest(totals.lag_seconds, totals.lag_records)}<//>
      <${Tile} name="Headroom" exactly="Time until the source drops records that are not copied yet">${headroom(totals.headroom_seconds, totals.lag_records, totals.lag_seconds < 0)}<//>`}
    </dl>
    ${totals.lag_records > 0 && flow.not_counted.length > 0 && html`<p>Not counted: ${flow.not_counted.join(", ")}.</p>`}
    <p class="muted">${plural(totals.topics, "topic")}, ${plural(totals.partitions, "partition")}${flow.schedule ? html`, runs <code>${flow.schedule}</code>` : ", no schedule"}</p>`}
    <p>${run?.state === "following" ? html`Following since <${When} at=${run.started} />.` : run ? html`Last run <${When} at=${run.finished || run.started} />: ${run.dag_run_url ? html`<a href=${new URL(run.dag_run_url.replace(/^\//, ""), BASE)} target="_top">${run.state}</a>` : run.state}${run.records ? `, ${records(run.records)} copied` : ""}${alsoFailed(run)}` : flow.read_at ? "No run yet." : ""}
      ${flow.losses > 0 && html`; see <a href=${address(flow, "runs")} onClick=${open("runs")}>${plural(flow.losses, "loss", "losses")}</a>`}</p>
    ${(flow.left_out ?? []).map((text) => html`<p class="muted">${text}</p>`)}
    ${flow.superseded && html`<p>Run ${flow.superseded} ended early, because a newer run, or a command, took the flow over. If two schedulers run the flow, stop one of them.</p>`}
    <p class="links"><a href=${new URL(`dags/${encodeURIComponent(flow.dag_id)}`, BASE)} target="_top">DAG</a>
      <a href=${address(flow, "topics")} onClick=${open("topics")}>Topics</a>
      <a href=${address(flow, "coverage")} onClick=${open("coverage")}>Coverage</a></p>
    ${!flow.problem && html`<${ReadAt} document=${flow} again=${again} />`}
    ${flow.may_trigger && html`<${Start} dag=${flow.dag_id} name="Run now" note="Started from the Ferry page" ended=${again} />`}
  </article>`;
}

// In this order cards are shown: first the flows that need a person.
const URGENCY = ["unreachable", "loss", "failing", "missing", "paused", "never_ran", "lagging", "unknown", "queued", "healthy"];

export function Overview({ document, go, again }) {
  const flows = [...document.flows].sort((one, other) => URGENCY.indexOf(one.health) - URGENCY.indexOf(other.health));
  const ill = flows.filter((flow) => !["healthy", "queued", "unknown"].includes(flow.health));
  const unread = flows.filter((flow) => flow.health === "unknown").length;
  const queued = flows.filter((flow) => flow.health === "queued").length;
  const grave = ill.some((flow) => !["lagging", "missing", "paused", "never_ran"].includes(flow.health));
  const verdict = ill.length
    ? html`<p class=${`verdict ${grave ? "bad" : "warn"}`} role="status">${ill.length === 1 ? ill[0].verdict : `${ill.length} of ${flows.length} flows need attention.`}</p>`
    : unread
      ? html`<p class="verdict" role="status">${plural(unread, "flow")} not read yet.</p>`
      : queued
        ? html`<p class="verdict" role="status">${flows.length === 1 ? flows[0].verdict : `${queued} of ${flows.length} flows have a queued run.`}</p>`
      : html`<p class="verdict good" role="status">${flows.length === 1 ? flows[0].verdict : `All ${flows.length} flows are healthy.`}</p>`;
  return html`${verdict}<${ClusterMap} clusters=${document.clusters} flows=${document.flows} go=${go} />
    <div class="cards">${flows.map((flow) => html`<${Card} key=${flow.flow} flow=${flow} go=${go} again=${again} />`)}</div>`;
}
