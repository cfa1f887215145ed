// How each flow is, why, and what to do: a card for each of a few flows beside their map; a row for each of many, the ill ones first.
import { html, useState } from "./vendor/preact-htm.js";
import { Pause } from "./actions.js";
import { bytes, count, exact, headroom, oldest, plural, records } from "./format.js";
import { Clock, Health, HEALTH, ReadAt, Table, Tile, Trouble, When } from "./elements.js";
import { fresh, Live, Run, useProgress } from "./live.js";
import { NextStep, To } from "./next_step.js";
import { BASE } from "./reading.js";
import { Start } from "./starting.js";

const HEADROOM = "until the source deletes the oldest record that is not copied";
// While a run follows, it keeps up as long as no record is older.
const LATE_SECONDS = 15;
// More cards do not fit on a screen, and more arrows cannot be told apart.
const FEW = 4;
const WIDTH = 420;
const NODE = { width: 128, height: 44 };
// Arrows are bent where there is one for each direction.
const BEND = 40;
// If two clusters stand one above the other, both labels must fit side by side.
const BEND_OF_TWO = 150;
// The width of a letter: the arrow must not cross out its label.
const LETTER = 7.5;

/** Places of clusters: two stand one above the other, more on an ellipse. */
function layout(clusters, sources) {
  const two = clusters.length < 3;
  const height = two ? 230 : 340;
  const sorted = [...clusters].sort((one, other) => sources.has(other.alias) - sources.has(one.alias));
  const places = sorted.map(({ alias }, index) => {
    const angle = (two ? -Math.PI / 2 : Math.PI) + (2 * Math.PI * index) / clusters.length;
    return [alias, { x: WIDTH / 2 + Math.cos(angle) * (WIDTH / 2 - 70), y: height / 2 + Math.sin(angle) * (height / 2 - 28) }];
  });
  return { height, bend: two ? BEND_OF_TWO : BEND, places: new Map(places) };
}

function arrow(from, to, bend) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [-dy / length, dx / length];
  const middle = { x: (from.x + to.x) / 2 + nx * bend, y: (from.y + to.y) / 2 + ny * bend };
  const edge = (node, other) => {
    const [ex, ey] = [other.x - node.x, other.y - node.y];
    const scale = Math.min(NODE.width / 2 / Math.abs(ex || 1e-9), NODE.height / 2 / Math.abs(ey || 1e-9));
    return { x: node.x + ex * scale, y: node.y + ey * scale };
  };
  const [start, end] = [edge(from, middle), edge(to, middle)];
  return { path: `M${start.x},${start.y} Q${middle.x},${middle.y} ${end.x},${end.y}`, label: { x: (start.x + end.x) / 4 + middle.x / 2, y: (start.y + end.y) / 4 + middle.y / 2 } };
}

function ClusterMap({ clusters, flows, go }) {
  const { height, bend, places } = layout(clusters, new Set(flows.map((flow) => flow.source)));
  const heads = [...new Set(flows.map((flow) => flow.health))];
  return html`<svg class="map" viewBox=${`0 0 ${WIDTH} ${height}`} role="group" aria-label="Clusters and flows">
    <defs>${heads.map((state) => html`<marker id=${`head-${state}`} class=${`head health-${state}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 8,4 0,8z" /></marker>`)}</defs>
    ${flows.map((flow) => {
      const both = flows.some((other) => other.source === flow.target && other.target === flow.source);
      const { path, label } = arrow(places.get(flow.source), places.get(flow.target), both ? bend : 0);
      const open = () => go({ flow: flow.flow, view: "runs" });
      const told = `${HEALTH[flow.health]?.[0] ?? ""} ${lagged(flow)}`;
      const ground = told.length * LETTER;
      const key = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open());
      return html`<g class=${`flow health-${flow.health}`} role="link" tabindex="0" aria-label=${`${flow.flow}: ${flow.word || (HEALTH[flow.health]?.[1] ?? flow.health)}`} onClick=${open} onKeyDown=${key}>
        <path class="reach" d=${path} /><path class="line" d=${path} marker-end=${`url(#head-${flow.health})`} />
        <rect class="ground" x=${label.x - ground / 2} y=${label.y - 10} width=${ground} height="20" /><text x=${label.x} y=${label.y}>${told}</text></g>`;
    })}
    ${clusters.map(({ alias }) => {
      const { x, y } = places.get(alias);
      return html`<g class="cluster"><rect x=${x - NODE.width / 2} y=${y - NODE.height / 2} width=${NODE.width} height=${NODE.height} rx="8" />
        <text x=${x} y=${y}>${alias.length > 15 ? `${alias.slice(0, 14)}…` : alias}<title>${alias}</title></text></g>`;
    })}
  </svg>`;
}

// What the arrow of a flow says instead of its lag, which is not all that the target lacks.
const WORSE = { unknown: "not read yet", unreachable: "cannot be read", loss: "records lost", missing: "records missing", paused: "paused", never_ran: "never ran", failing: "failing" };

const keepsUp = (flow) => flow.under_way?.follows && flow.totals?.lag_records > 0 && flow.totals.lag_seconds >= 0 && flow.totals.lag_seconds < LATE_SECONDS;

function lagged(flow) {
  if (flow.word || flow.health in WORSE) return flow.word || WORSE[flow.health];
  const follows = flow.under_way?.follows;
  if (flow.under_way && (!follows || keepsUp(flow))) return follows ? "following" : "copying";
  return flow.totals?.lag_records ? `${count(flow.totals.lag_records)} behind` : "up to date";
}

/** That no record waits; "else": a reason or a line of the flow says of other records that they are not copied. */
const nothing = (flow) => (flow.not_copied || ["failing", "missing", "loss"].includes(flow.health) ? "nothing else" : "nothing");

/** How many records wait; without any, what is not counted. */
const waits = (flow, lag = flow.totals.lag_records) => (lag ? records(lag) : flow.not_counted.join(", ") || (flow.not_copied ? "nothing" : nothing(flow)));

/** Of which topics the number of `waits` is, if not of all. */
const Which = ({ flow }) => (flow.not_copied ? html` <small>in the topics that are copied</small>` : flow.up_to_date && html` <small>not copied yet; up to date: ${flow.up_to_date}</small>`);

/** What is known of a flow that cannot be read: nothing of now. */
const Unread = ({ flow: { read_at: read, totals, not_counted: more, source, target, uncopied_until: until } }) => html`
  <${Tile} name="Behind">unknown <small>when last read, at <${Clock} at=${read} />: ${totals.lag_records ? `${records(totals.lag_records)} behind` : more.join(", ") || "up to date"}</small><//>
  ${until && html`<${Tile} name="Headroom">at least ${headroom((Date.parse(until) - Date.now()) / 1000, true)} <small>until ${source} deletes a record that ${target} may lack</small><//>`}`;

/** Why Airflow shows a run as failed whose copy did not fail: the reasons of the flow are what was broken. */
const alsoFailed = (run) => run.airflow_state === "failed" && ["done", "nothing new"].includes(run.state) && `; Airflow shows it as failed, because ${run.failed.map((one) => one.error || one.problem).join(", ")}`;

/** How a run ended; a link to it, if Airflow knows it. */
const Outcome = ({ run }) => (run.dag_run_url ? html`<a href=${new URL(run.dag_run_url.replace(/^\//, ""), BASE)} target="_top">${run.state}</a>` : run.state);

/** Why the flow is as it is, and what to do about it. `reasons`: those that nothing else on the screen says. */
function Why({ flow, reasons, go, again }) {
  const unlinked = flow.missing.filter((one) => !(flow.step === "backfill" && flow.may_trigger && one.closable));
  return html`${flow.totals?.topics === 0 && html`<p class="banner">No topic of ${flow.source} matches the flow's topics yet.</p>`}
    ${reasons.length > 0 && html`<ul class="reasons">${reasons.map((reason) => html`<li>${reason}</li>`)}</ul>`}
    ${!flow.problem && html`<${NextStep} flow=${flow} go=${go} again=${again} view="overview" />`}
    ${unlinked.length > 0 && html`<p>See what is missing in ${unlinked.map(({ topic }, index) => html`${index ? ", " : ""}<${To} go=${go} place=${{ flow: flow.flow, view: "coverage", topic }}>${topic}<//>`)}</p>`}
    ${(flow.left_out ?? []).map((text) => html`<p class="muted">${text}</p>`)}
    ${flow.superseded && html`<p>Run ${flow.superseded} ended early, because a newer run, or a command, took the flow over. If two schedulers run the flow, stop one of them.</p>`}`;
}

function Card({ flow, go, again }) {
  const { totals, last_run: run } = flow;
  const progress = useProgress(flow);
  const since = flow.under_way?.follows && flow.under_way.started;
  // What is left by the commits of the run: the number of the last read would contradict the bar.
  const left = fresh(progress)?.left ?? null;
  // Without the reason that the banner shows already.
  const reasons = flow.reasons.filter((reason) => !flow.problem || !reason.includes(flow.problem.message.split("; cluster ")[0]));
  const gone = flow.health === "unreachable";
  const to = (view) => ({ flow: flow.flow, view });
  return html`<article class="card" aria-label=${`Flow ${flow.flow}`}>
    <div class="card-head"><h2><${To} go=${go} place=${to("runs")}>${flow.flow}<//></h2><${Health} state=${flow.health} word=${flow.word} />
      ${totals && html`<span class="muted extent">${plural(totals.topics, "topic")}, ${plural(totals.partitions, "partition")}${flow.schedule ? html`, runs <code>${flow.schedule}</code>` : ", no schedule"}${flow.next_run && `, ${flow.next_run}`}</span>`}</div>
    <${Trouble} document=${flow.problem ? flow : null} again=${again} />
    <${Run} flow=${flow} progress=${progress} again=${again} />
    ${since && flow.after_it && html`<p>It follows until <${Clock} at=${flow.under_way.until} /> (<code>ferry.follow.seconds</code>, or as it was started); ${flow.after_it}.</p>`}
    <${Why} flow=${flow} reasons=${reasons} go=${go} again=${again} />
    <dl class=${`tiles ${gone ? "old" : ""} ${reasons.length ? "after" : ""}`}>
      ${gone && totals && html`<${Unread} flow=${flow} />`}
      ${!gone && totals && html`<${Tile} name="Behind" exactly=${records(left ?? totals.lag_records, exact)} alarming=${flow.health === "lagging" && !flow.word}>${waits(flow, left ?? undefined)}<${Which} flow=${flow} />${flow.under_way && html` <small>${left === null ? "when read," : "of what was there"} <${When} at=${flow.read_at} /></small>`}<//>`}
      ${!gone && totals?.lag_records > 0 && html`${totals.lag_bytes >= 0 && !flow.under_way && html`<${Tile} name="Size" exactly=${`${exact(totals.lag_bytes)} bytes`}>${bytes(totals.lag_bytes)}<//>`}
        ${!keepsUp(flow) && html`<${Tile} name="Oldest uncopied">${oldest(totals.lag_seconds, totals.lag_records)}<//>`}
        <${Tile} name="Headroom" exactly=${HEADROOM}>${headroom(totals.headroom_seconds, totals.lag_records, totals.lag_seconds < 0)} <small>until the source<br />deletes it</small><//>`}
      ${(run || flow.read_at) && html`<${Tile} name=${since ? "Following since" : ["running", "queued"].includes(run?.state) ? "This run" : "Last run"}>${since ? html`<${Clock} at=${since} />` : run ? html`${run.state === "running" && "began "}<${When} at=${run.finished || run.started} /> <small><${Outcome} run=${run} />${gone && run.failed.length > 0 && `: ${run.failed[0].problem}`}${run.records > 0 && `, ${records(run.records)} copied`}${alsoFailed(run)}</small>` : "No run yet"}<//>`}
    </dl>
    ${totals?.lag_records > 0 && flow.not_counted.length > 0 && html`<p>Not counted: ${flow.not_counted.join(", ")}.</p>`}
    <div class="card-foot">
      ${flow.may_trigger && flow.step !== "run" && html`<${Start} dag=${flow.dag_id} name=${flow.paused ? "Run now (waits: paused)" : "Run now"} note="Started from the Ferry page" ended=${again} />`}<${Pause} flow=${flow} again=${again} />
      <p class="links"><${To} go=${go} place=${to("topics")}>Topics<//><${To} go=${go} place=${to("coverage")}>Coverage<//><a href=${new URL(`dags/${encodeURIComponent(flow.dag_id)}`, BASE)} target="_top">DAG in Airflow</a></p>
      ${!flow.problem && html`<${ReadAt} document=${flow} again=${again} />`}</div>
  </article>`;
}

// In this order flows are shown: first those that need a person.
const URGENCY = ["unreachable", "loss", "failing", "missing", "paused", "never_ran", "lagging", "left_out", "unknown", "queued", "healthy"];

// By what rows can be sorted. A number that is not known comes last.
const known = ({ health, totals }, name) => (health === "unreachable" || !totals || totals[name] === -1 ? null : totals[name]);
const SORTS = {
  health: (flow) => URGENCY.indexOf(flow.health),
  flow: (flow) => flow.flow,
  behind: (flow) => known(flow, "lag_records"),
  oldest: (flow) => known(flow, "lag_seconds"),
  headroom: (flow) => known(flow, "headroom_seconds"),
  run: (flow) => flow.last_run?.finished || flow.last_run?.started || null,
};

function ordered(flows, { by, descending }) {
  const of = SORTS[by];
  const order = (one, other) => (one === other ? 0 : one === null ? 1 : other === null ? -1 : (one < other ? -1 : 1) * (descending ? -1 : 1));
  return [...flows].sort((one, other) => order(of(one), of(other)) || order(SORTS.health(one), SORTS.health(other)));
}

function Rows({ flows, go, again }) {
  const [sorted, setSorted] = useState({ by: "health", descending: false });
  const sortBy = (by) => setSorted({ by, descending: sorted.by === by ? !sorted.descending : !["health", "flow", "headroom"].includes(by) });
  const waiting = (tell) => (flow) => flow.health !== "unreachable" && flow.totals?.lag_records > 0 && tell(flow.totals);
  const columns = [
    { name: "Flow", sort: "flow", cell: (flow) => html`<span class="name"><${To} go=${go} place=${{ flow: flow.flow, view: "runs" }}>${flow.flow}<//></span>` },
    { name: "Health", sort: "health", cell: (flow) => html`<${Health} state=${flow.health} word=${flow.word} />` },
    { name: "Behind", sort: "behind", number: true, counts: true, title: "Records", cell: (flow) => (flow.health === "unreachable" || !flow.totals ? "unknown" : html`<span title=${exact(flow.totals.lag_records)}>${flow.totals.lag_records ? count(flow.totals.lag_records) : nothing(flow)}</span>`) },
    { name: "Oldest uncopied", sort: "oldest", number: true, cell: waiting((totals) => oldest(totals.lag_seconds, totals.lag_records)) },
    { name: "Headroom", sort: "headroom", number: true, title: HEADROOM, cell: waiting((totals) => headroom(totals.headroom_seconds, totals.lag_records, totals.lag_seconds < 0)) },
    { name: "Topics", number: true, cell: (flow) => flow.totals && exact(flow.totals.topics) },
    { name: "Last run", sort: "run", cell: ({ last_run: run, read_at: read }) => (run ? html`<${When} at=${run.finished || run.started} />` : read && "No run yet") },
    { name: "Outcome", cell: ({ last_run: run }) => run && html`<${Outcome} run=${run} />${alsoFailed(run)}` },
    { name: "Copied", number: true, title: "Records, by the last run", cell: ({ last_run: run }) => run?.records > 0 && html`<span title=${exact(run.records)}>${count(run.records)}</span>` },
  ];
  const more = (flow) => (flow.under_way || flow.reasons.length > 0 || flow.left_out?.length > 0 || flow.superseded) && html`<tr class="detail why"><td colspan=${columns.length}>
    <${Live} flow=${flow} again=${again} /><${Why} flow=${{ ...flow, problem: null }} reasons=${flow.reasons} go=${go} again=${again} />
    ${flow.problem && html`<p class="muted">${flow.read_at ? html`Last read <${When} at=${flow.read_at} />.` : "This page could not read it so far."} <button class="small" onClick=${again}>Read again</button></p>`}</td></tr>`;
  return html`<${Table} label="Flows" columns=${columns} rows=${ordered(flows, sorted)} keyOf=${(flow) => flow.flow} sorted=${sorted} sortBy=${sortBy} more=${more} />
    <p class="muted read-at"><button class="small" onClick=${again}>Read again</button></p>`;
}

/** One line about all flows; a single flow's card says it all. */
function Verdict({ flows }) {
  if (flows.length === 1) return null;
  const of = (...states) => flows.filter((flow) => states.includes(flow.health));
  const [ill, unread, queued] = [flows.filter((flow) => !["healthy", "queued", "unknown"].includes(flow.health)), of("unknown"), of("queued")];
  const grave = ill.some((flow) => !["left_out", "lagging", "missing", "paused", "never_ran"].includes(flow.health));
  const [tone, told] = ill.length
    ? [grave ? "bad" : "warn", ill.length === 1 ? `1 of ${flows.length} flows needs attention: ${ill[0].flow}.` : `${ill.length} of ${flows.length} flows need attention.`]
    : unread.length
      ? ["", `${plural(unread.length, "flow")} not read yet.`]
      : queued.length
        ? ["", `${queued.length} of ${flows.length} flows have a queued run.`]
        : ["good", `All ${flows.length} flows are healthy.`];
  return html`<p class=${`verdict ${tone}`} role="status">${told}</p>`;
}

export function Overview({ document, go, again }) {
  const flows = ordered(document.flows, { by: "health", descending: false });
  return html`<${Verdict} flows=${flows} />${flows.length > FEW
    ? html`<${Rows} flows=${flows} go=${go} again=${again} />`
    : html`<div class="flows"><${ClusterMap} clusters=${document.clusters} flows=${document.flows} go=${go} />
        <div class="cards">${flows.map((flow) => html`<${Card} key=${flow.flow} flow=${flow} go=${go} again=${again} />`)}</div></div>`}`;
}
