// Text for numbers, sizes and times. -1 and null mean: not known.

const UNKNOWN = "unknown";

function scaled(value, step, units) {
  let unit = 0;
  let left = value;
  while (left >= step && unit < units.length - 1) {
    left /= step;
    unit += 1;
  }
  const digits = unit === 0 || left >= 100 ? 0 : 1;
  return `${left.toFixed(digits)}${units[unit] && ` ${units[unit]}`}`;
}

export const known = (value) => value !== null && value !== undefined && value !== -1;

/** 1234567 as "1.2 M"; whole below 10,000. */
export function count(value) {
  if (!known(value)) return UNKNOWN;
  return value < 10_000 ? exact(value) : scaled(value, 1000, ["", "k", "M", "G", "T"]);
}

/** With thousands separators. */
export const exact = (value) => (known(value) ? value.toLocaleString("en-US") : UNKNOWN);

export const bytes = (value) => (known(value) ? scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]) : UNKNOWN);

/** Seconds as "3 h 20 min": the two greatest units. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || seconds === -1) return UNKNOWN;
  if (seconds < 0) return `${duration(-seconds)} ago`;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  let left = Math.round(seconds);
  const told = [];
  for (const [name, size] of units.slice(first, first + 2)) {
    const whole = Math.floor(left / size);
    left -= whole * size;
    if (whole) told.push(`${whole} ${name}`);
  }
  return told.join(" ");
}

/** Seconds in their greatest unit alone, for axes. */
export function roughly(seconds) {
  const [name, size] = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]].find(([, least]) => seconds >= least) ?? ["s", 1];
  return `${Number((seconds / size).toFixed(1))} ${name}`;
}

/** How long until the source drops uncopied records, or why there is no such time. */
export function headroom(seconds, waiting, unread) {
  if (!waiting) return "nothing waits";
  if (seconds !== null) return seconds > 0 ? duration(seconds) : "none left";
  return unread ? UNKNOWN : "not limited";
}

/** How old the oldest uncopied record is, or why there is no such time. */
export const oldest = (seconds, waiting) => (waiting ? duration(seconds) : "nothing waits");

/** ISO text or ms as local date and time. */
export function moment(value) {
  if (!known(value) || value === "") return UNKNOWN;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? String(value) : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

/** ISO text as the hour and minute, with the zone; with the day if it was not today. */
export function clock(value) {
  const date = new Date(value);
  const today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString("en-GB", { hour: "2-digit", minute: "2-digit", timeZoneName: "short", ...(today ? {} : { day: "numeric", month: "short", year: "numeric" }) });
}

/** Both ends of an interval; with milliseconds if both are in one second. */
export function span(from, until) {
  const ends = [from, until].map(moment);
  const parts = (value) => `.${String(new Date(value).getMilliseconds()).padStart(3, "0")}`;
  return ends[0] === ends[1] ? [ends[0] + parts(from), ends[1] + parts(until)] : ends;
}

/** The same in UTC, as commands take it. */
export function utc(value) {
  const date = new Date(value);
  return known(value) && !Number.isNaN(date.getTime()) ? date.toISOString() : UNKNOWN;
}

/** How long ago an ISO time was. */
export function ago(value) {
  const seconds = (Date.now() - new Date(value).getTime()) / 1000;
  return Number.isNaN(seconds) ? UNKNOWN : seconds < 2 ? "just now" : `${duration(seconds)} ago`;
}

export const plural = (number, one, many = `${one}s`, said = exact) => `${said(number)} ${number === 1 ? one : many}`;

export const records = (number, said = count) => plural(number, "record", "records", said);

/** Offsets from `start` to before `end`; people read both ends as inclusive. */
export const offsets = (start, end) => (end <= start + 1 ? exact(start) : `${exact(start)} to ${exact(end - 1)}`);
