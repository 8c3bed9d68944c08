"""Tasks: rule systems that yield examples together with their derivation."""
