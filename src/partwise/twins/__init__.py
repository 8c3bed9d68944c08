"""Twins: the reader's own recurrent modules, opened without being touched."""
