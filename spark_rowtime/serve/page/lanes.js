// The lanes: a table with a row for each producer, whose second cell is a picture of its event time.

import {make, setText} from "./elements.js";
import {counts, interval} from "./times.js";

/** More lanes than these are shown on request only. */
const MOST_LANES = 200;
const ORDERS = {
  name: () => 0,
  bound: (a, b) => weight(a) - weight(b),
  sent: (a, b) => (a.sent ?? 0) - (b.sent ?? 0),
};
const names = new Intl.Collator("en", {numeric: true});

export class Lanes {
  constructor(section) {
    this.body = section.querySelector(".lanes tbody");
    this.count = section.querySelector(".count");
    this.button = section.querySelector(".all");
    this.find = section.querySelector(".find");
    this.order = section.querySelector(".order");
    this.rows = new Map();
    this.shown = [];
    this.every = false;
    this.find.addEventListener("input", () => this.arrange());
    this.order.addEventListener("change", () => this.arrange());
    this.button.addEventListener("click", () => { this.every = !this.every; this.arrange(); });
  }

  /** Shows the producers, a Map by name, on the axis. */
  show(producers, axis, late) {
    this.producers = producers;
    this.axis = axis;
    this.late = Map.groupBy(late, row => row.producer);
    for (const name of this.rows.keys()) if (!producers.has(name)) this.rows.delete(name);
    this.arrange();
  }

  /** Puts the wished lanes into their order, and draws them. */
  arrange() {
    if (!this.producers) return;
    const found = this.found();
    const most = this.every ? found.length : MOST_LANES;
    const wished = found.slice(0, most);
    const order = wished.map(producer => producer.name);
    for (const producer of wished) this.draw(producer);
    if (order.length !== this.shown.length || order.some((name, i) => name !== this.shown[i])) {
      this.body.replaceChildren(...order.map(name => this.rows.get(name).row));
      this.shown = order;
    }
    const all = this.producers.size;
    setText(this.count, all ? `${wished.length} of ${all} producer(s) shown.` : "No producer has been attached yet.");
    this.button.hidden = found.length <= MOST_LANES;
    setText(this.button, this.every ? `Show ${MOST_LANES} only` : `Show all ${found.length}`);
  }

  found() {
    const text = this.find.value.trim().toLowerCase();
    const found = [...this.producers.values()].filter(p => !text || p.name.toLowerCase().includes(text));
    const chosen = ORDERS[this.order.value];
    return found.sort((a, b) =>
      b.holds - a.holds || counts(b) - counts(a) || chosen(a, b) || names.compare(a.name, b.name));
  }

  draw(producer) {
    let lane = this.rows.get(producer.name);
    if (!lane) this.rows.set(producer.name, lane = new Lane(producer.name));
    lane.draw(producer, this.axis, this.late.get(producer.name) ?? []);
  }

  /** Draws the ages again. */
  tick() {
    for (const name of this.shown) this.rows.get(name).tick();
  }
}

const weight = producer => producer.bound?.end ? Infinity : producer.bound?.ms ?? -Infinity;

const BOUND = 2, STATUS = 3, ROWS = 4, REJECTED = 5, SENT = 6;

class Lane {
  constructor(name) {
    const head = make("th", {children: [make("span", {text: name, name: "producer"}), make("span", {name: "badge"})]});
    head.scope = "row";
    this.badge = head.lastChild;
    this.time = make("td", {name: "time"});
    this.time.setAttribute("aria-hidden", "true");
    const cells = ["bound", "status", "number rows", "number rejected", "sent"].map(kind => make("td", {name: kind}));
    this.row = make("tr", {children: [head, this.time, ...cells]});
    this.drawn = {};
  }

  draw(producer, axis, late) {
    if (this.drawn.producer === producer && this.drawn.axis === axis && this.drawn.late === late.length) return;
    this.drawn = {producer, axis, late: late.length};
    const cells = this.row.cells;
    this.row.className = `${producer.status}${producer.holds ? " holds" : ""}`;
    setText(this.badge, producer.holds ? "◀ holds the clock" : "");
    setText(cells[BOUND], producer.bound?.text ?? "none");
    const behind = producer.lag ? `, ${producer.lag} messages behind` : "";
    setText(cells[STATUS], producer.status === "expected" ? "expected, has not opened" : producer.status + behind);
    setText(cells[ROWS], String(producer.accepted));
    setText(cells[REJECTED], String(producer.rejected));
    this.tick();
    this.picture(producer, axis, late);
  }

  picture(producer, axis, late) {
    const bound = producer.bound;
    const share = !axis || !bound ? 0 : bound.end ? 1 : axis.share(bound.ms);
    this.time.style.setProperty("--at", share);
    if (late.length || this.time.firstChild) this.time.replaceChildren(...(axis ? late : []).map(row => cross(row, axis)));
  }

  tick() {
    const {producer} = this.drawn;
    const sent = producer.status === "expected" || !producer.sent ? "" : `${interval(Date.now() - producer.sent)} ago`;
    setText(this.row.cells[SENT], sent);
  }
}

function cross(row, axis) {
  const mark = make("span", {text: "×", name: "cross"});
  mark.style.setProperty("--at", axis.share(row.rowtime.ms));
  return mark;
}
