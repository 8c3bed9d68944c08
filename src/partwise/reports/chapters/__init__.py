"""Chapters: what the page shows of each study. One module a study, named like it."""
