// All topics of a flow. The server searches, sorts and cuts pages, so there may be thousands.
import { html, useState } from "./vendor/preact-htm.js";
import { bytes, count, exact, headroom, oldest } from "./format.js";
import { Empty, Pages, Read, ReadAt, Search, Table } from "./elements.js";
import { useDocument } from "./reading.js";

const LIMIT = 50;

function Partitions({ flow, topic }) {
  const answer = useDocument("partitions", { flow, topic });
  const columns = [
    { name: "Partition", number: true, cell: (row) => row.partition },
    { name: "Position", number: true, cell: (row) => exact(row.position) },
    { name: "End", number: true, cell: (row) => exact(row.end) },
    { name: "Behind", number: true, counts: true, cell: (row) => exact(row.lag_records) },
    { name: "Size", number: true, cell: (row) => bytes(row.lag_bytes) },
    { name: "Oldest uncopied", number: true, cell: (row) => oldest(row.lag_seconds, row.lag_records) },
    { name: "Headroom", number: true, cell: (row) => headroom(row.headroom_seconds, row.lag_records, row.lag_seconds < 0) },
    { name: "Note", cell: (row) => (row.open_transaction_at === null ? "" : `an open transaction at ${exact(row.open_transaction_at)} stops the copy there`) },
  ];
  return html`<${Read} answer=${answer} what="its partitions">${(document) => html`
    ${(document.stopped ?? []).map((one) => html`<div class="banner bad"><strong>${one.partition < 0 ? one.topic : `${one.topic}-${one.partition}`}: ${one.error}</strong> ${one.problem}</div>`)}
    <${Table} label=${`Partitions of ${topic}`} columns=${columns} rows=${document.partitions} keyOf=${(row) => row.partition} />`}<//>`;
}

export function Topics({ flow, place, go }) {
  const search = place.search ?? "";
  const sort = place.sort ?? "-lag_records";
  const sorted = { by: sort.replace("-", ""), descending: sort.startsWith("-") };
  const [offset, setOffset] = useState(0);
  const answer = useDocument("topics", { flow: flow.flow, search, sort: sorted.by, descending: sorted.descending, offset, limit: LIMIT });
  const open = place.topic;
  const sortBy = (by) => {
    const descending = sorted.by === by ? !sorted.descending : by !== "topic";
    go({ sort: `${descending ? "-" : ""}${by}` }, true);
    setOffset(0);
  };
  const show = (topic) => () => go({ view: "topics", topic: open === topic ? null : topic });
  const columns = [
    { name: "Topic", sort: "topic", cell: (row) => html`<button class="plain name" aria-expanded=${open === row.topic} onClick=${show(row.topic)}>${row.topic}</button>` },
    { name: "Remote topic", cell: (row) => row.remote_topic },
    { name: "Partitions", number: true, cell: (row) => exact(row.partitions) },
    { name: "Behind", sort: "lag_records", number: true, counts: true, title: "Records", cell: (row) => html`<span title=${exact(row.lag_records)}>${count(row.lag_records)}</span>` },
    { name: "Size", sort: "lag_bytes", number: true, cell: (row) => html`<span title=${exact(row.lag_bytes)}>${bytes(row.lag_bytes)}</span>` },
    { name: "Oldest uncopied", sort: "lag_seconds", number: true, cell: (row) => oldest(row.lag_seconds, row.lag_records) },
    { name: "Headroom", sort: "headroom", number: true, title: "Time until the source drops records that are not copied yet", cell: (row) => headroom(row.headroom_seconds, row.lag_records, row.lag_seconds < 0) },
    {
      name: "Note",
      cell: (row) => [
        row.missing > 0 && html`<span class="badge health-missing">◌ ${exact(row.missing)} missing</span> `,
        row.losses > 0 && html`<span class="badge health-loss">! ${row.losses} lost</span> `,
        row.open_transactions > 0 && html`<span class="badge health-lagging">◔ open transaction</span>`,
      ],
    },
    { name: "", cell: (row) => html`<button class="small" onClick=${() => go({ view: "coverage", topic: row.topic })}>Coverage</button>` },
  ];
  const more = (row) => open === row.topic && html`<tr class="detail"><td colspan=${columns.length}><${Partitions} flow=${flow.flow} topic=${row.topic} /></td></tr>`;
  return html`<div class="tools"><${Search} label="Search topics" value=${search} change=${(text) => (go({ search: text }, true), setOffset(0))} /></div>
    <${Read} answer=${answer} what="the topics">${(document) => html`
      ${document.topics.length
        ? html`<${Table} label="Topics" columns=${columns} rows=${document.topics} keyOf=${(row) => row.topic} sorted=${sorted} sortBy=${sortBy} more=${more} total=${document.total} />`
        : html`<${Empty}>${search ? `No topic has “${search}” in its name.` : "The flow copies no topic yet."}<//>`}
      <${Pages} offset=${offset} limit=${LIMIT} total=${document.total} go=${setOffset} /><${ReadAt} document=${document} again=${answer.again} />`}<//>`;
}
