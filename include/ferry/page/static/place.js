// What the page shows is in the address, so a link leads to the same place: flow, view, topic or group, what is searched, how it is sorted
// (`-lag_records`: the most first), the days of the history, and the missing range whose backfill is asked for.
import { useCallback, useEffect, useState } from "./vendor/preact-htm.js";

export const VIEWS = ["overview", "runs", "topics", "coverage", "groups", "drift", "verify", "failover", "config"];
const KEPT = ["flow", "view", "topic", "group", "search", "sort", "days", "range"];
// The path of a DAG's page in Airflow.
const DAG_PAGE = /\/dags\/([^/]+)\//;

function read() {
  const search = new URLSearchParams(location.search);
  const dag = search.get("dag_id") ?? DAG_PAGE.exec(location.pathname)?.[1];
  const place = Object.fromEntries(KEPT.map((name) => [name, search.get(name)]));
  return { ...place, dag: dag ? decodeURIComponent(dag) : null, view: VIEWS.includes(place.view) ? place.view : null };
}

/**
 * `[place, go]`; `go({view: "topics"})` changes what it names, and going back works. Within a view of a flow the rest stays; otherwise only
 * flow and view do. With `replace` going back does not lead to the place before: somebody types or sorts.
 */
export function usePlace() {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const moved = () => setPlace(read());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const go = useCallback((change, replace) => {
    const before = read();
    const stays = ["flow", "view"].every((name) => !(name in change) || change[name] === before[name]);
    const next = { ...(stays ? before : { flow: before.flow, view: before.view }), ...change };
    const search = new URLSearchParams(location.search);
    for (const name of KEPT) {
      if (next[name]) search.set(name, next[name]);
      else search.delete(name);
    }
    history[replace ? "replaceState" : "pushState"](history.state, "", `${location.pathname}?${search}`);
    setPlace(read());
  }, []);
  return [place, go];
}
