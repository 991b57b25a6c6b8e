"""Two small files about chemical elements, one in English and one in German, aligned without a single known link.

Some names are the same ("Neon", "Marie Curie"), most are not ("Potassium" and "Kalium"). The rest follows from values
under attributes that are called differently (symbol and zeichen, discovered and jahr), and from who discovered what.

    python examples/without_seeds.py

The same on the command line:

    stea-fast align examples/data/elements_en.nt examples/data/elements_de.ttl --out links.tsv --report report.html
"""

from pathlib import Path

import stea_fast as sf

DATA = Path(__file__).parent / "data"

pair = sf.read_pair(DATA / "elements_en.nt", DATA / "elements_de.ttl")
clues = sf.find_clues(pair)
print(*clues.found, sep="\n")

alignment = sf.align(pair, clues=clues, progress=False)
labels1, labels2 = sf.labels_of(pair.kg1), sf.labels_of(pair.kg2)
for source, target in alignment.pairs.tolist():
    print(f"{labels1.of(source)[0]:24} {labels2.of(target)[0]}")

potassium = next(e for e in range(pair.kg1.num_entities) if labels1.of(e) == ["Potassium"])
kalium = int(alignment.links.considered[potassium])
print(alignment.result.refinement.explain(potassium, kalium))  # facts, and values in quotation marks
