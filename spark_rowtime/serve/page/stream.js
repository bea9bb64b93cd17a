// One stream: what the server has said about it, and its section of the page.

import {fill, make, setText, some} from "./elements.js";
import {Lanes} from "./lanes.js";
import {HOUR, axisOf, clock, interval, windowsOf} from "./times.js";
import {Reasons} from "./reasons.js";

const LATE_ROWS = 50;
/** A producer that holds the clock and is silent for longer is said to be silent. */
const SILENT = 10_000;
const NEWS = 20;
/** The largest number of moves of a stream's bound that are kept. */
const MOVES = 1000;

export class StreamView {
  constructor(path) {
    this.path = path;
    this.section = document.getElementById("stream").content.cloneNode(true).firstElementChild;
    this.part = name => this.section.querySelector(name);
    const heading = this.part("h2");
    heading.textContent = path;
    heading.id = `stream-${encodeURIComponent(path)}`;
    heading.tabIndex = -1;
    this.section.setAttribute("aria-labelledby", heading.id);
    this.lanes = new Lanes(this.section);
    this.reasons = new Reasons(path, this.section);
    this.producers = new Map();
    this.late = [];
    this.moves = [];
    this.details = {};
    this.complete = null;
  }

  /** Takes a message of the server: all that is known, or what has changed. */
  take(message) {
    if (message.full) {
      this.producers.clear();
      this.late = [];
    }
    for (const name of message.gone ?? []) this.producers.delete(name);
    for (const producer of message.producers) this.producers.set(producer.name, producer);
    this.late = [...this.late, ...message.late].slice(-LATE_ROWS);
    this.details = message.details ?? this.details;
    if (message.why) this.reasons.take(message.why);
    this.facts = message.facts;
    this.remember();
    this.error = message.error;
  }

  /** Keeps how the bound has moved in the last hour, as far as this page has seen it: one point before it, too. */
  remember() {
    const now = Date.now(), ms = this.facts.bound?.ms ?? null;
    if (ms === null || this.moves.at(-1)?.ms === ms) return;
    this.moves.push({now, ms});
    while (this.moves.length > 1 && this.moves[1].now < now - HOUR) this.moves.shift();
    if (this.moves.length > MOVES) this.moves.splice(1, 1);
  }

  /** "55 min of event time in 12 min": whether the stream catches up. */
  progress() {
    const first = this.moves[0], last = this.moves.at(-1);
    if (this.moves.length < 2) return "";
    return `${interval(last.ms - first.ms)} of event time in the last ${interval(Date.now() - first.now)}`;
  }

  draw(wished) {
    const {facts} = this;
    this.showError();
    if (!facts || !("seq" in facts)) return;
    this.section.classList.toggle("lake", facts.kind === "table");
    const known = [...this.producers.values()];
    this.axis = axisOf(facts, known, wished);
    this.verdict();
    this.showFacts();
    this.showWindows(this.axis ? windowsOf(this.axis, facts, known) : [], wished);
    this.lanes.show(this.producers, this.axis, this.late);
    this.reasons.draw(this.axis, facts.holders);
    this.showTables();
  }

  showError() {
    const place = this.part(".error");
    place.hidden = !this.error;
    setText(place, this.error ? `This stream cannot be read: ${this.error}` : "");
    this.section.classList.toggle("stale", Boolean(this.error));
  }

  verdict() {
    const {facts} = this;
    const first = this.producers.get(facts.holders[0]);
    const named = first && first.status !== "expected";
    const who = named ? some(facts.holders, facts.holderCount) : facts.waitsFor;
    const where = facts.bound ? `, at ${facts.bound.text}` : "; it has no bound yet";
    const waits = facts.holderCount ? `Waiting for ${who}${where}.` : `Waiting for ${who}.`;
    setText(this.part(".waits"), facts.complete ? "Complete: no row follows." : waits);
    this.tick();
  }

  showFacts() {
    const {facts, details} = this;
    const settings = Object.entries(details.settings ?? {}).map(([name, value]) => `${name}=${value}`).join(", ");
    const pairs = [
      ["Bound", facts.bound?.text ?? "none"],
      ["Moved", this.progress()],
      ["Rows", "rows" in facts ? `${facts.rows} accepted, ${facts.rejected} rejected` : ""],
      ["Waiting", facts.rowsHeldBack ? `${facts.rowsHeldBack} row(s) wait for the bound` : ""],
      ["Settings", settings],
      ["Columns", details.columns ?? ""],
    ].filter(([, text]) => text);
    const list = this.part(".facts");
    const key = JSON.stringify(pairs);
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    list.replaceChildren(...pairs.map(([label, text]) =>
      make("div", {children: [make("dt", {text: label}), make("dd", {text})]})));
  }

  showWindows(windows, wished) {
    const rows = windows.map(w => [w.name, w.closed ? "✓ complete" : "open", some(w.waits),
      w.closed ? "" : this.reasons.button(w)]);
    fill(this.part(".windows"), rows, windows.map(w => [w.name, w.closed, w.waits]));
    this.announce(windows, wished);
    const {axis, facts} = this;
    const style = this.section.style;
    if (!axis) return;
    const closed = windows.filter(w => w.closed).length;
    style.setProperty("--windows", windows.length);
    style.setProperty("--closed", closed / windows.length);
    style.setProperty("--bound", facts.complete ? 1 : facts.bound ? axis.share(facts.bound.ms) : -1);
    this.showAxis(windows);
  }

  showAxis(windows) {
    const place = this.part(".axis");
    const key = JSON.stringify(windows.map(w => [w.name, w.closed]));
    if (place.dataset.key === key) return;
    place.dataset.key = key;
    place.replaceChildren(...windows.map(w => make("span", {name: w.closed ? "closed" : "open", children: [
      make("b", {text: clock(w.start, this.axis.length)}), make("i", {text: w.closed ? "✓" : "open"})]})));
  }

  /** Says which windows have become complete since the last message. */
  announce(windows, wished) {
    const now = new Set(windows.filter(w => w.closed).map(w => w.name));
    const same = this.complete && this.wished === wished && this.length === this.axis?.length;
    const news = same ? windows.filter(w => w.closed && this.open.has(w.name)).map(w => w.name) : [];
    this.open = new Set(windows.filter(w => !w.closed).map(w => w.name));
    this.complete = now;
    this.wished = wished;
    this.length = this.axis?.length;
    const log = this.part(".news");
    for (const name of news) log.append(make("p", {text: `${name} is complete.`}));
    while (log.children.length > NEWS) log.firstChild.remove();
  }

  showTables() {
    fill(this.part(".late"), this.late.toReversed().map(row => [
      row.rowtime.text, row.producer,
      `${row.reason === "late" ? "late, below" : "too far ahead of"} ${row.bound}${row.boundOf ? `, ${row.boundOf}` : ""}`]));
    fill(this.part(".readers"), (this.details.readers ?? []).map(r =>
      [r.name, String(r.unread), r.seen]));
    const list = this.part(".warnings");
    const warnings = this.details.warnings ?? [];
    if (list.children.length !== warnings.length || warnings.some((text, i) => list.children[i].textContent !== text)) {
      list.replaceChildren(...warnings.map(text => make("li", {text})));
    }
  }

  /** Draws again what changes with time alone. */
  tick() {
    const holder = this.producers.get(this.facts?.holders?.[0]);
    const silence = holder?.sent && holder.status !== "expected" ? Date.now() - holder.sent : 0;
    const long = silence >= SILENT && !this.facts.complete;
    setText(this.part(".silence"), long ? `${holder.name} has sent nothing for ${interval(silence)}.` : "");
    this.lanes.tick();
    this.reasons.tick();
  }
}
