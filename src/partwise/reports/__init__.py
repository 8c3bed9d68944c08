"""Reports: results in, figures and one self-contained page out. No model is needed here."""
