"""What an intervention must offer: one public function named like its file, from a population (or its values) and a choice
of parts or units to a NEW population (or value), the given one untouched.

Where a model is trained further afterwards, what must stay as the intervention left it is named as parts (a plan's
`frozen`), or returned as a mask of the store (a run's `held`).
"""
