// What the page shows: flow, view and topic are in the address, so a link leads to the same place.
import { useCallback, useEffect, useState } from "./vendor/preact-htm.js";

export const VIEWS = ["overview", "runs", "topics", "coverage", "groups", "drift", "verify"];
// The path of a DAG's page in Airflow.
const DAG_PAGE = /\/dags\/([^/]+)\//;

function read() {
  const search = new URLSearchParams(location.search);
  const dag = search.get("dag_id") ?? DAG_PAGE.exec(location.pathname)?.[1];
  const view = search.get("view");
  return {
    dag: dag ? decodeURIComponent(dag) : null,
    flow: search.get("flow"),
    view: VIEWS.includes(view) ? view : null,
    topic: search.get("topic"),
    group: search.get("group"),
    ask: search.get("ask"),
  };
}

/** `[place, go]`; `go({view: "topics"})` changes what it names and keeps the flow; going back works. */
export function usePlace() {
  const [place, setPlace] = useState(read);
  useEffect(() => {
    const moved = () => setPlace(read());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const go = useCallback((change) => {
    const before = read();
    const next = { flow: before.flow, view: before.view, ...change };
    const search = new URLSearchParams(location.search);
    for (const name of ["flow", "view", "topic", "group", "ask"]) {
      if (next[name]) search.set(name, next[name]);
      else search.delete(name);
    }
    history.pushState(history.state, "", `${location.pathname}?${search}`);
    setPlace(read());
  }, []);
  return [place, go];
}
