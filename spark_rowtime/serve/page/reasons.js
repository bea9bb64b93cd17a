// Why a stream stands where it is: the answer of `rowtime why`, for now or for a window that was chosen.

import {make, setText} from "./elements.js";
import {interval} from "./times.js";

/** Until the server has said why. */
const NOTHING = {complete: true, note: "", remedy: "", chain: []};

export class Reasons {
  constructor(path, section) {
    this.path = path;
    this.place = section.querySelector(".why");
    this.table = section.querySelector(".chain");
    this.now = NOTHING;
    this.part = name => this.place.querySelector(name);
  }

  /** Takes the server's answer for the stream as it is now. */
  take(why) {
    this.now = why.chain ? why : NOTHING;
  }

  draw(axis, holders) {
    const holder = this.now.chain[0];  // where another producer holds the clock now, the answer follows soon
    const current = !this.now.complete && (holder?.kind !== "producer" || !holders.length || holders.includes(holder.name));
    setText(this.part(".note"), current ? this.now.note : "");
    setText(this.part(".remedy"), current ? this.now.remedy : "");
    const key = JSON.stringify([this.now.chain, axis?.first, axis?.end]);
    if (this.table.dataset.key === key) return;
    this.table.dataset.key = key;
    this.table.hidden = !this.now.chain.length;
    this.moved = [];
    this.table.tBodies[0].replaceChildren(...this.now.chain.map(link => this.row(link, axis)));
    this.tick();
  }

  row(link, axis) {
    const head = make("th", {children: [
      make("span", {text: link.kind, name: "kind"}), " ", make("span", {text: link.name, name: "producer"})]});
    if (link.note) head.append(make("span", {text: "◀ held here", name: "badge"}));
    head.scope = "row";
    const time = make("td", {name: "time"});
    time.setAttribute("aria-hidden", "true");
    const bound = link.bound;
    time.style.setProperty("--at", !axis || !bound ? 0 : bound.end ? 1 : axis.share(bound.ms));
    const behind = link.behindSeconds === null ? "" : link.behindSeconds ? interval(link.behindSeconds * 1000) : "not behind";
    const moved = make("td", {name: "sent"});
    this.moved.push([moved, link.moved]);
    const cells = [make("td", {text: bound?.text ?? "none", name: "bound"}), make("td", {text: behind, name: "status"}), moved];
    return make("tr", {name: link.note ? "holds" : "", children: [head, time, ...cells]});
  }

  /** A button that asks why a window is open. */
  button(open) {
    const button = make("button", {text: "Why?"});
    button.type = "button";
    button.setAttribute("aria-label", `Why is ${open.name} open?`);
    button.addEventListener("click", () => this.ask(open, button));
    return button;
  }

  async ask(open, button) {
    const at = new Date(open.end).toISOString();
    const answer = await fetch(`api/why?${new URLSearchParams({stream: this.path, at})}`);
    const why = await answer.json();
    const texts = answer.ok ? [why.note, why.remedy] : [why.error];
    const cell = button.parentElement;
    const place = cell?.querySelector("div") ?? make("div", {name: "answer"});
    place.setAttribute("role", "status");
    cell?.append(place);
    place.replaceChildren(...texts.filter(Boolean).map(text => make("p", {text})));
  }

  tick() {
    for (const [cell, moved] of this.moved ?? []) setText(cell, moved ? `${interval(Date.now() - moved)} ago` : "");
  }
}
