"""One file per compaction system; `registry` lists them."""
