// What the ledger says about a topic, drawn along the offsets of each partition. A run can fill what is missing.
import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { Backfill } from "./backfill.js";
import { Empty, Read, ReadAt, Search, Table, When } from "./elements.js";
import { count, exact, moment, offsets, plural, records, utc } from "./format.js";
import { BASE, useDocument } from "./reading.js";

const MEANINGS = {
  copied: "copied in order",
  backfilled: "copied later, behind newer records",
  foreign: "copied by another replicator",
  missing: "on the source, but not copied",
  loss: "dropped by the source before it was copied",
  skipped: "left out; the reason is given",
  ahead: "not copied yet",
};
const PARTITIONS = 32;
const TOPICS = 200;
// More pieces in a bar could not be told apart.
const PIECES = 400;

/** The pieces of a bar. If there are too many, small ones are left out, but never missing ranges and losses. */
function pieces(partition) {
  const drawn = partition.ranges.filter((range) => range.kind !== "seed" && range.end > range.start);
  if (partition.end !== null && partition.position !== null && partition.end > partition.position) {
    drawn.push({ kind: "ahead", start: partition.position, end: partition.end, records: partition.end - partition.position, reason: "" });
  }
  if (drawn.length <= PIECES) return drawn;
  const whole = Math.max(...drawn.map((range) => range.end)) - Math.min(...drawn.map((range) => range.start));
  const least = whole / PIECES;
  return drawn.filter((range) => range.end - range.start >= least || ["missing", "loss"].includes(range.kind)).slice(0, 4 * PIECES);
}

function Bar({ partition }) {
  const drawn = pieces(partition);
  const starts = [...drawn.map((range) => range.start), partition.log_start ?? Infinity];
  const first = Math.min(...starts.filter(Number.isFinite));
  const last = Math.max(...drawn.map((range) => range.end), partition.end ?? 0);
  const share = (offset) => (last > first ? (100 * (offset - first)) / (last - first) : 0);
  const mark = (offset, name) => offset !== null && offset >= first && html`<span class=${`mark ${name}`} style=${{ left: `${share(offset)}%` }} title=${`${name.replace("-", " ")}: ${exact(offset)}`}></span>`;
  return html`<div class="bar-row" role="group" aria-label=${`partition ${partition.partition}`}>
    <span class="bar-name">partition ${partition.partition}</span>
    <div class="bar">${last > first
      ? drawn.map((range) => html`<span role="img" class=${`piece ${range.kind}`} style=${{ left: `${share(range.start)}%`, width: `${share(range.end) - share(range.start)}%` }}
          aria-label=${`${range.kind} ${offsets(range.start, range.end)}`} title=${described(range)}></span>`)
      : html`<span class="muted">no records</span>`}
      ${mark(partition.log_start, "log-start")}${mark(partition.position, "position")}</div>
    <span class="bar-ends muted">${exact(Number.isFinite(first) ? first : 0)} – ${exact(last)}</span>
  </div>`;
}

function described(range) {
  const lines = [`${range.kind}: ${MEANINGS[range.kind] ?? ""}`, `offsets ${offsets(range.start, range.end)}`];
  if (range.records >= 0 && range.kind !== "ahead") lines.push(records(range.records, exact));
  if (range.min_timestamp > 0) lines.push(`${moment(range.min_timestamp)} – ${moment(range.max_timestamp)}`);
  if (range.reason) lines.push(range.reason);
  return lines.join("\n");
}

function Legend() {
  return html`<ul class="legend" aria-label="Legend">${Object.entries(MEANINGS).map(
    ([kind, meaning]) => html`<li><span class=${`piece ${kind}`} aria-hidden="true"></span> <strong>${kind}</strong> <span class="muted">${meaning}</span></li>`,
  )}<li><span class="mark position" aria-hidden="true"></span> <strong>position</strong> <span class="muted">where the next run goes on</span></li></ul>`;
}

// A missing range in the address.
const ALL = "all";
const nameOf = (range) => `${range.partition}.${range.start}`;

const canBeFilled = (document) => document.missing.filter((range) => !range.obstacle && range.from_ms !== null);
const isOffered = (document) => document.may_trigger && !document.filling.length;

function Missing({ document, ask }) {
  const fillable = canBeFilled(document);
  const offered = isOffered(document);
  const obstacles = [...new Set(document.missing.filter((range) => range.obstacle).map((range) => range.obstacle))];
  const columns = [
    { name: "Partition", number: true, cell: (row) => row.partition },
    { name: "Offsets", number: true, counts: true, cell: (row) => offsets(row.start, row.end) },
    { name: "Records' time", cell: (row) => (row.from_ms === null ? "" : html`<span title=${`${utc(row.from_ms)} until ${utc(row.until_ms)}`}>${moment(row.from_ms)} – ${moment(row.until_ms)}</span>`) },
    {
      name: "",
      cell: (row) => (row.obstacle || row.from_ms === null ? obstacles.length > 1 && html`<span class="muted">${row.obstacle}</span>` : offered && html`<button class="small" aria-label=${`Backfill… partition ${row.partition}, ${offsets(row.start, row.end)}`} onClick=${() => ask([row], nameOf(row))}>Backfill…</button>`),
    },
  ];
  if (!document.missing.length) return html`<p class="good">Nothing is missing below the positions.${document.note && ` ${document.note}`}</p>`;
  const missing = document.missing.reduce((sum, range) => sum + range.end - range.start, 0);
  return html`<h3>Missing</h3>
    <p>${plural(document.missing.length, "range")} with ${count(missing)} offsets ${document.missing.length === 1 ? "is" : "are"} at the source and not on the target.</p>
    ${obstacles.length === 1 && html`<p class="banner">${obstacles[0]}</p>`}
    ${fillable.length > 0 && !document.may_trigger && html`<p class="banner">You may not start runs of ${document.dag_id}. Ask somebody who may.</p>`}
    ${document.filling.map((run) => html`<p role="status"><span class="spinner" aria-hidden="true"></span> Run <a href=${new URL(run.url.replace(/^\//, ""), BASE)} target="_top">${run.run_id}</a> copies what is missing. It is ${run.state}${run.started && html`, started <${When} at=${run.started} />`}.</p>`)}
    ${fillable.length > 1 && offered && html`<p><button onClick=${() => ask(fillable, ALL)}>Backfill all of it…</button></p>`}
    <${Table} label="Missing ranges" columns=${columns} rows=${document.missing} keyOf=${(row) => `${row.partition}-${row.start}`} />`;
}

function OfTopic({ flow, topic, place, go }) {
  const answer = useDocument("coverage", { flow, topic });
  const [from, setFrom] = useState(0);
  const [asked, setAsked] = useState(null);
  const read = answer.document?.read_at ? answer.document : null;
  useEffect(() => {
    // A link asks for a range.
    if (read && place.range && !asked) setAsked(isOffered(read) ? canBeFilled(read).filter((range) => [nameOf(range), ALL].includes(place.range)) : []);
  }, [place.range, read === null]);
  const ask = (ranges, name) => (setAsked(ranges), go({ topic, range: name }, true));
  const close = () => (setAsked(null), go({ range: null }, true), answer.again());
  return html`<${Read} answer=${answer} what=${`the ledger of ${topic}`}>${(document) => {
    const shown = document.partitions.slice(from, from + PARTITIONS);
    return html`<p>Remote topic <code>${document.remote_topic || "none"}</code>${document.partitions.some((one) => one.merged) && html` <span class="muted">(neighbouring ranges are drawn as one)</span>`}</p>
      ${document.partitions.length ? html`<div class="bars">${shown.map((partition) => html`<${Bar} key=${partition.partition} partition=${partition} />`)}</div>` : html`<${Empty}>The ledger has nothing about ${topic} yet.<//>`}
      ${document.partitions.length > PARTITIONS && html`<nav class="pages" aria-label="Partitions"><button disabled=${from === 0} onClick=${() => setFrom(from - PARTITIONS)}>Previous</button>
        <span>${from} to ${Math.min(from + PARTITIONS, document.partitions.length) - 1} of ${document.partitions.length} partitions</span>
        <button disabled=${from + PARTITIONS >= document.partitions.length} onClick=${() => setFrom(from + PARTITIONS)}>Next</button></nav>`}
      <${Legend} />
      ${place.range && asked?.length === 0 && html`<p class="banner" role="status">The range of this link is not offered for a backfill now: it was filled, a run fills it, or you may not start runs.</p>`}<${Missing} document=${document} ask=${ask} /><${ReadAt} document=${document} again=${answer.again} />
      ${asked?.length > 0 && html`<${Backfill} ranges=${asked} dag=${document.dag_id} flow=${flow} topic=${topic} close=${close} again=${answer.again} />`}`;
  }}<//>`;
}

export function Coverage({ flow, place, go }) {
  const search = place.search ?? "";
  const answer = useDocument("topics", { flow: flow.flow, search, sort: "topic", descending: false, offset: 0, limit: TOPICS });
  const topics = answer.document?.topics ?? [];
  const topic = place.topic ?? topics[0]?.topic;
  const choose = (name) => go({ view: "coverage", topic: name, range: null });
  return html`<div class="columns">
    <nav class="side" aria-label="Topics"><${Search} label="Search topics" value=${search} change=${(text) => go({ search: text }, true)} />
      <${Read} answer=${answer} what="the topics">${(document) => html`<ul>${topics.map((one) => html`<li><button class="plain name" aria-current=${one.topic === topic} onClick=${() => choose(one.topic)}>${one.topic}</button>${one.missing > 0 && html` <span class="badge health-missing">◌ ${count(one.missing)} missing</span>`}</li>`)}</ul>
        ${document.total > topics.length && html`<p class="muted">${exact(document.total - topics.length)} more: search</p>`}
        ${!topics.length && html`<${Empty}>${search ? "No such topic." : "No topics yet."}<//>`}`}<//></nav>
    <div class="main">${topic && html`<h2 class="name">${topic}</h2><${OfTopic} key=${topic} flow=${flow.flow} topic=${topic} place=${place} go=${go} />`}</div>
  </div>`;
}
