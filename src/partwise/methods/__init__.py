"""Methods: algorithms from (model, batch) to labelled scores. They touch no file and leave the model as they found it."""
