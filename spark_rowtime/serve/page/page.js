// Reads the server's events, and draws the streams.

import {make, setText} from "./elements.js";
import {StreamView} from "./stream.js";
import {HOUR, WINDOWS} from "./times.js";

const streams = new Map();
const main = document.getElementById("streams");
const index = document.getElementById("index");
const connection = document.getElementById("connection");
const chosen = document.getElementById("window");
let due = false;

function receive(message) {
  if (message.removed) return remove(message.stream);
  if (!streams.has(message.stream)) add(message.stream);
  streams.get(message.stream).take(message);
  changed.add(message.stream);
  if (due) return;
  due = true;
  requestAnimationFrame(drawAll);
  setTimeout(drawAll, 250);  // a page in the background has no frames
}

const changed = new Set();

function drawAll() {
  if (!due) return;
  due = false;
  for (const path of changed) streams.get(path)?.draw(Number(chosen.value));
  changed.clear();
  performance.mark("drawn");
}

function add(path) {
  const view = new StreamView(path);
  streams.set(path, view);
  main.append(view.section);
  const link = make("a", {text: path.split("/").at(-1)});
  link.href = `#${view.part("h2").id}`;
  view.entry = make("li", {children: [link]});
  index.append(view.entry);
}

function remove(path) {
  const view = streams.get(path);
  view?.section.remove();
  view?.entry.remove();
  streams.delete(path);
}

function connect() {
  const events = new EventSource("api/live");
  events.onopen = () => state("live", false);
  events.onmessage = event => receive(JSON.parse(event.data));
  events.onerror = () => {
    state(`no connection since ${new Date().toISOString().slice(11, 19)}Z; trying again`, true);
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

function state(text, stale) {
  if (stale && document.body.classList.contains("stale")) return;
  setText(connection, text);
  document.body.classList.toggle("stale", stale);
}

function choices() {
  for (const [length, text] of WINDOWS) chosen.append(new Option(text, length));
  chosen.value = WINDOWS.some(([length]) => String(length) === localStorage.window) ? localStorage.window : HOUR;
  chosen.addEventListener("change", () => {
    localStorage.window = chosen.value;
    for (const view of streams.values()) view.draw(Number(chosen.value));
  });
}

choices();
connect();
setInterval(() => { for (const view of streams.values()) view.tick(); }, 1000);
