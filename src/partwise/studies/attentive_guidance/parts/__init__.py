"""The parts of the study, one module each: from trained models to labelled results."""
