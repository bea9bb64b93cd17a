// Small helpers for elements. Texts come from anywhere, so they are only ever set as text.

/** Sets a text, unless it is there already: nothing is drawn or read aloud again without need. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Makes an element with a text, a class and children. */
export function make(tag, {text, name, children = []} = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  element.append(...children);
  return element;
}

/**
 * Fills the body of a table with rows of texts or elements, if `state`, from which they were made, is another than
 * before. The first cell is the head of its row. Hides a table without rows.
 */
export function fill(table, rows, state = rows) {
  const key = JSON.stringify(state);
  if (table.dataset.key === key) return;
  table.dataset.key = key;
  table.hidden = rows.length === 0;
  const titles = [...table.tHead.rows[0].cells];
  table.tBodies[0].replaceChildren(...rows.map(row => tableRow(row, titles)));
}

function tableRow(contents, titles) {
  const cells = contents.map((content, index) => {
    const cell = make(index ? "td" : "th", {name: titles[index].className});
    cell.append(content);
    if (!index) cell.scope = "row";
    return cell;
  });
  return make("tr", {children: cells});
}

/** A name in a sentence: up to three, and the number of the others. */
export function some(names, count = names.length) {
  const more = count > 3 ? ` and ${count - 3} more` : "";
  return names.slice(0, 3).join(", ") + more;
}
