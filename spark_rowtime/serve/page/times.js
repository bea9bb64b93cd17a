// Times and intervals as texts, and the windows of event time. All times are in milliseconds, in UTC.

export const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

/** The lengths of windows that can be chosen. */
export const WINDOWS = [
  [10 * SECOND, "10 seconds"], [MINUTE, "1 minute"], [5 * MINUTE, "5 minutes"], [15 * MINUTE, "15 minutes"],
  [HOUR, "1 hour"], [6 * HOUR, "6 hours"], [DAY, "1 day"], [7 * DAY, "7 days"], [30 * DAY, "30 days"],
];
/** More windows than these are not shown: longer windows are taken instead. */
const MOST_WINDOWS = 24;
/** How many windows are shown before the one at the bound. */
const WINDOWS_BEFORE = 3;

/** "12 min", in the largest unit of which there are at least two. */
export function interval(ms) {
  for (const [unit, length] of [["d", DAY], ["h", HOUR], ["min", MINUTE]]) {
    if (ms >= 2 * length) return `${Math.floor(ms / length)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(ms / SECOND))} s`;
}

/** "10:00", with seconds where the window is short, and the date where it is long or another day begins. */
export function clock(ms, length) {
  const [date, time] = new Date(ms).toISOString().split("T");
  if (length >= DAY) return date;
  return time.slice(0, length < MINUTE ? 8 : 5);
}

/** "2026-01-05 10:00-11:00" */
export function windowName(start, length) {
  const [date, end] = [start, start + length].map(ms => new Date(ms).toISOString().split("T")[0]);
  if (length > DAY) return `${date} to ${end}`;
  return length === DAY ? date : `${date} ${clock(start, length)}-${clock(start + length, length)}`;
}

/** The part of event time that is shown, from one window's start to another's end; null where there is no time. */
export function axisOf(facts, producers, wished) {
  const bound = facts.bound?.ms ?? null;
  const times = producers.filter(counts).map(p => p.bound?.ms ?? null).filter(ms => ms !== null);
  for (const ms of [bound, facts.largest?.ms ?? null]) if (ms !== null) times.push(ms);
  if (!times.length) return null;
  const low = bound ?? min(times), high = max(times);
  const length = longEnough(wished, high - low);
  const first = floor(low, length) - WINDOWS_BEFORE * length;
  const end = Math.max(floor(high, length), floor(low, length)) + length;
  return {first, end, length, share: ms => Math.min(1, Math.max(0, (ms - first) / (end - first)))};
}

function longEnough(wished, span) {
  const longer = WINDOWS.map(([length]) => length).filter(length => length >= wished);
  const most = MOST_WINDOWS - WINDOWS_BEFORE - 2;
  return longer.find(length => span / length <= most) ?? longer.at(-1) * Math.ceil(span / longer.at(-1) / most);
}

const floor = (ms, length) => Math.floor(ms / length) * length;
const min = values => values.reduce((a, b) => Math.min(a, b));
const max = values => values.reduce((a, b) => Math.max(a, b));

/** Whether the stream waits for the producer, or would if it were not idle. */
export const counts = producer => ["expected", "attached", "idle"].includes(producer.status);

/** Whether the stream's bound waits for the producer. */
export const waitedFor = producer => producer.status === "expected" || producer.status === "attached";

/** The windows of the axis, each with its name, whether it is complete, and the producers it waits for. */
export function windowsOf(axis, facts, producers) {
  const windows = [];
  const waited = producers.filter(waitedFor);
  for (let start = axis.first; start < axis.end; start += axis.length) {
    const end = start + axis.length;
    const closed = Boolean(facts.complete) || (facts.bound?.ms ?? -Infinity) >= end;
    const before = closed ? [] : waited.filter(p => !p.bound?.end && (p.bound?.ms ?? -Infinity) < end);
    before.sort((a, b) => (a.bound?.ms ?? -Infinity) - (b.bound?.ms ?? -Infinity));
    windows.push({start, end, name: windowName(start, axis.length), closed, waits: before.map(p => p.name)});
  }
  return windows;
}
