// Asks the server for documents, again and again while the page is visible. The last good document stays.
import { useCallback, useEffect, useRef, useState } from "./vendor/preact-htm.js";

// Airflow may be served under a path.
export const BASE = new URL("../../", import.meta.url);
const USUAL_MS = 15_000;
// The pause while the server reads data that it does not have, or could not read the last time.
const SOON_MS = 2_000;
// The pause after a call without an answer.
const AFTER_FAILURE_MS = 5_000;
const ANSWER_MS = 30_000;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function described(status, detail, method) {
  if (status === 401) return "You are not logged in any more.";
  if (status === 403) return `You are not allowed to ${method === "GET" ? "see" : "do"} this: ${detail}`;
  return detail || `The server answers with ${status}.`;
}

/** One call. Throws Refused, with the server's text, when the status is an error. `path` is relative to Airflow's root. `anew`: reads again. */
export async function call(path, { method = "GET", body, signal, anew } = {}) {
  const limit = AbortSignal.timeout(ANSWER_MS);
  const answer = await fetch(new URL(path, BASE), {
    method,
    credentials: "same-origin",
    headers: { Accept: "application/json", ...(body && { "Content-Type": "application/json" }), ...(anew && { "Cache-Control": "no-cache" }) },
    body: body ? JSON.stringify(body) : undefined,
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  });
  if (!answer.ok) {
    const { detail: told } = await answer.json().catch(() => ({}));
    const detail = typeof told === "string" ? told : told ? JSON.stringify(told) : "";
    throw new Refused(answer.status, described(answer.status, detail, method));
  }
  // It fails if the answer was cut off: half a document is none.
  return answer.json();
}

/** The browser's clock may differ from the server's. So `read_at` becomes a time of the browser's clock, and old data does not look new. */
function dated(document) {
  if (typeof document.age_seconds !== "number") return document;
  return { ...document, read_at: new Date(Date.now() - 1000 * document.age_seconds).toISOString() };
}

function address(name, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `ferry/api/${name}?${new URLSearchParams(given)}`;
}

/**
 * The document `name` with these parameters: `{document, failure, again}`. `failure`: why the last call failed. `again()` has the server read
 * it anew. A null `name` asks for nothing. When the parameters change, the old document goes at once, so that it does not stand under a
 * wrong title.
 */
export function useDocument(name, parameters = {}, everyMs = USUAL_MS) {
  const asked = name && address(name, parameters);
  const [answer, setAnswer] = useState({ asked: null, document: null, failure: null });
  const again = useRef(() => {});
  useEffect(() => {
    if (!asked) return undefined;
    const stop = new AbortController();
    let timer;
    const ask = async (anew) => {
      clearTimeout(timer);
      let wait = everyMs;
      try {
        const document = await call(asked, { signal: stop.signal, anew });
        setAnswer({ asked, document: { ...dated(document), flows: document.flows?.map(dated) }, failure: null });
        if ((document.flows ?? [document]).some((one) => one.refreshing && (anew || !one.read_at || one.problem))) wait = SOON_MS;
      } catch (problem) {
        if (stop.signal.aborted) return;
        const told = problem instanceof Refused ? problem : new Error("The server does not answer. Trying again.");
        setAnswer((before) => ({ asked, document: before.asked === asked ? before.document : null, failure: told }));
        wait = AFTER_FAILURE_MS;
      }
      timer = setTimeout(seen, wait);
    };
    // A page in the background asks when it becomes visible again.
    const seen = () => (document.hidden ? undefined : ask());
    again.current = () => ask(true);
    document.addEventListener("visibilitychange", seen);
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [asked, everyMs]);
  const current = answer.asked === asked ? answer : { document: null, failure: null };
  return { document: current.document, failure: current.failure, again: useCallback(() => again.current(), []) };
}
