"""Interventions: change a model or its values, and return a new one."""
