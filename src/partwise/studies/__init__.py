"""Studies: one paper each, with presets, a recipe, and claims whose rules are written before their numbers."""
