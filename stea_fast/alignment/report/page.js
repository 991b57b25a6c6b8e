// Looks entities up in the tables, and draws a page of those that were found.

const PER_PAGE = 50;

class View {
  constructor(tables) {
    this.tables = tables;
    this.texts = null;
    this.found = [];
    this.page = 0;
  }

  probability(source) {
    const { probability, parts } = this.tables;
    const value = probability[source] / parts;
    return value > 0.9995 ? "> 0.999" : value.toFixed(3);
  }

  find(words, status) {
    const { tables } = this;
    const rows = [];
    if (words.length && !this.texts) {
      this.texts = Array.from({ length: tables.length }, (_, row) => tables.namesOf(row).join("\n").toLowerCase());
    }
    for (let row = 0; row < tables.length; row++) {
      const fits = !status || tables.statusOf(row) === status;
      if (fits && words.every((word) => this.texts[row].includes(word))) rows.push(row);
    }
    return rows;
  }

  ordered(rows, order) {
    if (order === "name") return rows; // they are
    const { probability, target, parts } = this.tables;
    const last = 2 * parts; // what has no probability: it comes after all that have one
    const key = {
      surest: (row) => target[row] >= 0 ? parts - probability[row] : last,
      least_sure: (row) => target[row] >= 0 ? probability[row] : last,
      random: scrambled,
    }[order];
    return sortedBy(rows, key);
  }

  search() {
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = this.ordered(this.find(words, at("status").value), at("order").value);
    this.show(0);
  }

  show(page) {
    this.page = page;
    const begin = page * PER_PAGE;
    const shown = this.found.slice(begin, begin + PER_PAGE);
    at("rows").replaceChildren(...shown.map((row) => this.row(row)));
    const total = this.found.length.toLocaleString("en");
    const range = `${(begin + 1).toLocaleString("en")} to ${(begin + shown.length).toLocaleString("en")}`;
    at("count").textContent = this.found.length > PER_PAGE ? `${range} of ${total} found` : `${total} found`;
    at("back").hidden = page === 0;
    at("on").hidden = begin + PER_PAGE >= this.found.length;
  }

  turn(step) {
    this.show(this.page + step);
    at("entities").scrollIntoView();
  }

  row(row) {
    const made = element("details", { className: "entity" }, this.summary(row));
    const fail = (error) => [element("p", {}, damaged(error))];
    const open = () => this.details(row).catch(fail).then((parts) => made.append(...parts));
    made.addEventListener("toggle", open, { once: true });
    return made;
  }

  summary(row) {
    const { tables } = this;
    if (!tables.isSource(row)) {
      return element("summary", {}, tables.targets.shown(tables.unlinkedTarget(row)), element("span", {}, "not linked"));
    }
    const status = tables.statusOf(row);
    const shown = [tables.sources.shown(row)];
    if (tables.hasNamedTarget(row)) {
      shown.push(status === "uncertain" ? " ≟ " : " ≡ ", tables.targets.shown(tables.target[row]));
    }
    const verdict = {
      seed: "seed",
      link: this.probability(row),
      uncertain: `uncertain, ${this.probability(row)}`,
      no_counterpart: "without counterpart",
    }[status];
    return element("summary", {}, ...shown, element("span", {}, verdict));
  }

  async details(row) {
    const { tables } = this;
    if (!tables.isSource(row)) return [this.whole(row), this.whyUnlinked(tables.unlinkedTarget(row))];
    const block = await tables.block(row);
    const place = row % tables.sources_per_block;
    const rejected = entries(block.rejected, place);
    return [
      this.whole(row),
      this.why(row, rejected.length),
      ...this.facts(row, block.facts, place),
      ...this.rejected(row, block.rejected, rejected),
    ];
  }

  // A phone shows no titles: the whole names stand here.
  whole(row) {
    const names = this.tables.namesOf(row).map((name) => element("bdi", {}, name));
    return element("p", { className: "whole" }, ...names);
  }

  why(row, otherCandidates) {
    const { tables } = this;
    const target = tables.target[row];
    const status = tables.statusOf(row);
    if (status === "seed") return element("p", {}, "A seed: it was given.");
    if (target < 0) {
      const why = otherCandidates ? "All its candidates belong to other entities." : "It has no candidate.";
      return element("p", {}, why);
    }
    const rival = tables.best_source[target];
    const best = rival === row ? [" Each is the other's best."] : rival < 0 ? [] : [
      " ", tables.targets.shown(target), " itself would rather have ", tables.sources.shown(rival), ".",
    ];
    if (status === "link") return element("p", {}, `Linked: right with probability ${this.probability(row)}.`, ...best);
    const least = status === "uncertain" ? tables.min_prob : tables.min_uncertain;
    const what = status === "uncertain" ? "that a link needs" : "below which a candidate is not named";
    return element(
      "p", {}, "Its candidate ", tables.targets.shown(target), ` is right with probability ${this.probability(row)}: `,
      `less than the ${Number(least.toPrecision(3))} ${what}.`, ...best,
    );
  }

  facts(row, facts, place) {
    const { tables } = this;
    if (!facts || tables.target[row] < 0) return [];
    const listed = entries(facts, place).map((i) => {
      const neighbor = facts.neighbor[i]; // a value, if it is negative
      const neighbor2 = facts.neighbor2[i] ? facts.neighbor2[i] - 1 : tables.target[neighbor];
      const [first, second] = neighbor < 0
        ? facts.values[-1 - neighbor].map((text) => element("bdi", {}, text))
        : [tables.sources.shown(neighbor), tables.targets.shown(neighbor2)];
      return element(
        "li", {}, element("i", {}, `${Math.round((100 * facts.share[i]) / tables.parts)} %`), " ",
        ...relation(tables.relations1, facts.relation[i]), " → ", first, " ≈ ",
        ...relation(tables.relations2, facts.relation2[i]), " → ", second,
      );
    });
    if (!listed.length) return [element("p", {}, "No fact is listed for it.")];
    return [element("h3", {}, "Facts that speak for it"), element("ol", {}, ...listed)];
  }

  rejected(row, rejected, places) {
    const { tables } = this;
    if (!places.length) return [];
    const listed = places.map((i) => element(
      "li", {}, tables.targets.shown(rejected.target[i]), " ",
      element("i", {}, (rejected.score[i] / tables.parts).toFixed(3)), ": ",
      ...this.reason(row, rejected.target[i], tables.reasons[rejected.reason[i]]),
    ));
    return [element("h3", {}, "Other candidates"), element("ul", {}, ...listed)];
  }

  reason(row, target, reason) {
    const { tables } = this;
    const holder = tables.holder[target];
    const other = holder >= 0 && holder !== row ? [tables.sources.shown(holder)] : ["another entity"];
    const best = tables.best_source[target];
    return {
      seed: () => ["it belongs to ", ...other, " by a seed"],
      taken: () => ["it goes to ", ...other, ", and all links together are likelier so"],
      one_sided: () => ["only one direction lists it: it does not have this entity among its own candidates"],
      prefers_another: () => best < 0 ? ["less likely"] : ["less likely, and its own best is ", tables.sources.shown(best)],
      less_likely: () => ["less likely"],
    }[reason]();
  }

  whyUnlinked(target) {
    const { tables } = this;
    const best = tables.best_source[target];
    if (best < 0) return element("p", {}, "No entity of the first graph has it as a likely candidate.");
    const named = tables.hasNamedTarget(best) && tables.target[best] !== target;
    const instead = named ? [", which goes to ", tables.targets.shown(tables.target[best])] : [", which is not sure enough"];
    return element("p", {}, "Its best is ", tables.sources.shown(best), ...instead, ".");
  }
}

// Directed relations: those from R on are inverse.
function relation(names, r) {
  return r < names.length ? [names.shown(r)] : [names.shown(r - names.length), "⁻"];
}

// Rows by a key below 2^21, then by their number. Key and row are put into one number, because a browser sorts
// hundreds of thousands of plain numbers at once, and takes a second to compare as many rows by a function.
function sortedBy(rows, key) {
  const both = Float64Array.from(rows, (row) => key(row) * 2 ** 32 + row).sort();
  return Array.from(both, (number) => number % 2 ** 32);
}

// A key that looks random, always the same for the same row: what multiplying and shifting makes of it.
function scrambled(row) {
  const mixed = Math.imul(row + 1, 0x9e3779b1);
  return Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) >>> 11;
}

function damaged(error) {
  return `This cannot be unpacked (${error}): the page is damaged. Write it anew.`;
}

async function start() {
  const count = at("count");
  if (!("DecompressionStream" in window)) {
    count.textContent = "This browser cannot unpack the entities: it lacks DecompressionStream, which Chrome and Edge have "
      + "from version 80 on, Safari from 16.4 and Firefox from 113. The file of links holds every decision.";
    return;
  }
  count.textContent = "Unpacking …";
  const view = new View(new Tables(await unpack("table")));
  for (const id of ["search", "status", "order"]) {
    at(id).disabled = false;
    at(id).addEventListener("input", () => view.search());
  }
  at("back").addEventListener("click", () => view.turn(-1));
  at("on").addEventListener("click", () => view.turn(1));
  view.search();
}

start().catch((error) => {
  at("count").textContent = damaged(error);
});
