"""Training on rows: pairs of a source and a target, each member its own rows in its own order."""
