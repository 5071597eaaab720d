// Requests to the server of the console.

const KEY = "spandrel-console-token";
/** The time limit of a request without one of its own, in milliseconds. */
const TIMEOUT = 15_000;

let lostSince = null;

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  remove: () => sessionStorage.removeItem(KEY),
};

/** The reason for which a request has no result: problem details (RFC 9457). */
export class Problem extends Error {
  constructor(details) {
    super(details.title || "the request failed");
    this.details = details;
  }
}

/** Reports that the server answers, or does not. */
function reached(isReached) {
  if (isReached ? lostSince === null : lostSince !== null) return;
  lostSince = isReached ? null : new Date();
  document.dispatchEvent(new CustomEvent("reached", { detail: { since: lostSince } }));
}

/** Sends a request, and returns the answer with its content, which `read` takes from it. */
async function exchange(path, read, { method = "GET", body, timeout = TIMEOUT, query = {} }) {
  const search = new URLSearchParams(query).toString();
  const headers = { Authorization: `Bearer ${token.get() || ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const answer = await fetch(`/api/${path}${search ? `?${search}` : ""}`, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
      signal: AbortSignal.timeout(timeout),
    });
    const content = answer.ok ? await read(answer) : await answer.text();
    reached(true);
    return { answer, content };
  } catch (error) {
    const isLate = error.name === "TimeoutError";
    if (!isLate) reached(false);
    const title = isLate ? "The console did not answer in time" : "The console cannot be reached";
    throw new Problem({ title, detail: "The process of the console may have ended." });
  }
}

/** The JSON of an answer. */
function parsed({ answer, content }) {
  try {
    return JSON.parse(content);
  } catch {
    return { title: `The console answered ${answer.status} without JSON` };
  }
}

/** The failure of a request. */
function failure(exchanged) {
  if (exchanged.answer.status === 401) document.dispatchEvent(new Event("unauthorized"));
  return new Problem(parsed(exchanged));
}

/** Sends a request, and returns the JSON of its answer. */
export async function request(path, options = {}) {
  const exchanged = await exchange(path, (answer) => answer.text(), options);
  if (exchanged.answer.ok) return parsed(exchanged);
  throw failure(exchanged);
}

/** Sends a request, and returns the octets of its answer. */
export async function octets(path, options = {}) {
  const exchanged = await exchange(path, (answer) => answer.arrayBuffer(), options);
  if (exchanged.answer.ok) return new Uint8Array(exchanged.content);
  throw failure(exchanged);
}

/** The problem details of any error. */
export function detailsOf(error) {
  return error instanceof Problem ? error.details : { title: "The page failed", detail: String(error) };
}

/**
 * Calls a function at once, and again so many milliseconds after each of its ends, until the returned function is
 * called. Nothing is done while the page is hidden.
 */
export function repeat(milliseconds, work) {
  let timer = null;
  let ended = false;
  const round = async () => {
    if (!document.hidden) await work();
    if (!ended) timer = setTimeout(round, milliseconds);
  };
  round();
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}
