"""Training: populations from initial weights to checkpoints, interrupted and resumed at will."""
