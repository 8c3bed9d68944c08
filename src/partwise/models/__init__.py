"""Models: architectures written once, for one model and for a population alike."""
