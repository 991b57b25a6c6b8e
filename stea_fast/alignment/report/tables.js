"use strict";
// The tables that the page carries, unpacked. Names come from the user's files: they enter the document as text and as
// titles only, each isolated by <bdi> so that its direction of writing stays its own.

const MOST_SHOWN = 80; // letters of a name in a row; its title has more

const at = (id) => document.getElementById(id);

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function unpack(id) {
  const place = at(id);
  const letters = atob(place.textContent);
  place.remove(); // what is unpacked is not needed twice
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

class Names {
  constructor({ spaces, space, local }) {
    Object.assign(this, { spaces, space, local });
  }

  get length() {
    return this.local.length;
  }

  full(i) {
    return this.spaces[this.space[i]] + this.local[i];
  }

  short(i) {
    const letters = Array.from(this.local[i]);
    return letters.length > MOST_SHOWN ? letters.slice(0, MOST_SHOWN - 1).join("") + "…" : this.local[i];
  }

  shown(i) {
    return element("bdi", { title: this.full(i) }, this.short(i));
  }
}

class Tables {
  constructor(table) {
    Object.assign(this, table);
    [this.sources, this.targets] = table.entities.map((names) => new Names(names));
    [this.relations1, this.relations2] = table.relations.map((names) => new Names(names));
    this.holder = new Int32Array(this.targets.length).fill(-1); // a source that took the target, a linked one if any did
    const reached = new Uint8Array(this.targets.length);
    for (let source = 0; source < this.sources.length; source++) {
      const target = this.target[source];
      if (target < 0 || (reached[target] && !this.isLinked(source))) continue;
      this.holder[target] = source;
      reached[target] |= this.isLinked(source);
    }
    this.unlinked = [];
    for (let target = 0; target < reached.length; target++) if (!reached[target]) this.unlinked.push(target);
    this.length = this.sources.length + this.unlinked.length;
    this.blocks = new Map();
  }

  // Rows are all sources, then the targets that no link reaches.
  isSource(row) {
    return row < this.sources.length;
  }

  unlinkedTarget(row) {
    return this.unlinked[row - this.sources.length];
  }

  statusOf(row) {
    return this.isSource(row) ? this.statuses[this.status[row]] : "unlinked";
  }

  isLinked(source) {
    const status = this.statuses[this.status[source]];
    return status === "link" || status === "seed";
  }

  hasNamedTarget(source) {
    return this.isLinked(source) || this.statusOf(source) === "uncertain";
  }

  namesOf(row) {
    if (!this.isSource(row)) return [this.targets.full(this.unlinkedTarget(row))];
    const named = [this.sources.full(row)];
    if (this.hasNamedTarget(row)) named.push(this.targets.full(this.target[row]));
    return named;
  }

  block(source) {
    const number = Math.floor(source / this.sources_per_block);
    if (!this.blocks.has(number)) this.blocks.set(number, unpack(`block-${number}`));
    return this.blocks.get(number);
  }
}

// The entries of one source in a part of a block: counts say how many each source has.
function entries(part, place) {
  let begin = 0;
  for (let i = 0; i < place; i++) begin += part.count[i];
  return Array.from({ length: part.count[place] }, (_, i) => begin + i);
}
