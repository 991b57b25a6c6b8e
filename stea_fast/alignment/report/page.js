"use strict";
const search = document.getElementById("search");
const status = document.getElementById("status");
const most = 60; // on the page at once
const items = Array.from(document.querySelectorAll("details.link"), (element) => ({
  element,
  status: element.dataset.status,
  text: (element.textContent + " " + Array.from(element.querySelectorAll("b"), (b) => b.title).join(" ")).toLowerCase(),
}));

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const item of items) {
    const fits = (!status.value || item.status === status.value) && words.every((word) => item.text.includes(word));
    found += fits;
    item.element.hidden = !fits || found > most;
  }
  const shown = found > most ? `The first ${most} of ${found}` : String(found);
  document.getElementById("count").textContent = shown;
}

filter();
search.addEventListener("input", filter);
status.addEventListener("change", filter);
