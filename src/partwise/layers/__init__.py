"""Layers: the equations, over parameters with an optional leading member axis."""
