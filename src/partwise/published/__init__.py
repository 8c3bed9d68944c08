"""Published: checkpoints that others trained, read as data (nothing in them is ever run) and wrapped like a reader's own
modules."""
