"""From bytes to rows and back: triples, links, SSSOM, tables and RDF. Nothing here knows what a graph is."""
