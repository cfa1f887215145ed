// Consumer groups: their state on both sides, and why a group is not synced.
import { html, useState } from "./vendor/preact-htm.js";
import { Command, Empty, Pages, Read, ReadAt, Search, Table } from "./elements.js";
import { count, exact } from "./format.js";
import { useDocument } from "./reading.js";

const LIMIT = 50;
const side = (found) => `${found.cluster}: ${found.type ? `${found.state}, ${found.type}, ${found.members.length ? found.members.join(", ") : "no members"}` : "no such group"}`;

function OneGroup({ flow, group }) {
  const answer = useDocument("group", { flow, group });
  const columns = [
    { name: "Topic", cell: (row) => row.topic },
    { name: "Partition", number: true, cell: (row) => row.partition },
    { name: "Offset", number: true, cell: (row) => exact(row.source_offset) },
    { name: "Lag", number: true, cell: (row) => exact(row.source_lag) },
    { name: "Remote topic", cell: (row) => row.remote_topic },
    { name: "Translated", number: true, counts: true, cell: (row) => (row.translated === null ? "–" : html`${exact(row.translated)} ${row.exact ? html`<span class="good" title="The record that the group would read next">exact</span>` : html`<span class="warn">inexact</span>`}`) },
    { name: "There now", number: true, cell: (row) => (row.target_offset === null ? "–" : exact(row.target_offset)) },
    { name: "Sync", cell: (row) => row.decision },
    { name: "Reason", cell: (row) => row.reason },
  ];
  return html`<${Read} answer=${answer} what=${`group ${group}`}>${(document) => html`
    ${document.source && html`<p>${side(document.source)}<br />${side(document.target)}</p>`}
    ${(document.obstacles ?? []).map((obstacle) => html`<p class="banner">${obstacle}</p>`)}
    ${document.partitions?.length ? html`<${Table} label=${`Partitions of ${group}`} columns=${columns} rows=${document.partitions} keyOf=${(row) => `${row.topic}-${row.partition}`} />` : html`<${Empty}>It has no offsets of topics that are copied.<//>`}
    <p class="muted">The same in a terminal: <${Command}>${document.command}<//></p>`}<//>`;
}

export function Groups({ flow, place, go }) {
  const search = place.search ?? "";
  const [offset, setOffset] = useState(0);
  const answer = useDocument("groups", { flow: flow.flow, search, offset, limit: LIMIT });
  const open = place.group;
  const columns = [
    { name: "Group", cell: (row) => html`<button class="plain name" aria-expanded=${open === row.group} onClick=${() => go({ view: "groups", group: open === row.group ? null : row.group })}>${row.group}</button>` },
    { name: `On ${flow.source}`, cell: (row) => row.state_source },
    { name: `On ${flow.target}`, cell: (row) => row.state_target },
    { name: "Exact", number: true, title: "Partitions whose translated offset is exact", cell: (row) => `${exact(row.exact)} of ${exact(row.partitions)}` },
    { name: "Lag", number: true, counts: true, cell: (row) => html`<span title=${exact(row.lag_source)}>${count(row.lag_source)}</span>` },
    { name: "A sync would", cell: (row) => row.decision },
    { name: "Reasons", cell: (row) => row.reasons.map((reason) => html`<div>${reason}</div>`) },
  ];
  const more = (row) => open === row.group && html`<tr class="detail"><td colspan=${columns.length}><${OneGroup} flow=${flow.flow} group=${row.group} /></td></tr>`;
  return html`<div class="tools"><${Search} label="Search groups" value=${search} change=${(text) => (go({ search: text }, true), setOffset(0))} /></div>
    <${Read} answer=${answer} what="the groups">${(document) => html`
      ${document.off && html`<p class="banner">Runs do not sync groups: ${document.off}</p>`}
      ${document.groups.length
        ? html`<${Table} label="Groups" columns=${columns} rows=${document.groups} keyOf=${(row) => row.group} more=${more} total=${document.total} />`
        : html`<${Empty}>${search ? `No group has “${search}” in its name.` : `${flow.source} has no consumer groups that may be seen.`}<//>`}
      <${Pages} offset=${offset} limit=${LIMIT} total=${document.total} go=${setOffset} /><${ReadAt} document=${document} again=${answer.again} />`}<//>`;
}
