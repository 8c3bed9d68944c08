"""Long-range rules (Saphra and Lopez 2020): are rules over a distance learned through their constituents?"""

from partwise.studies._contract import Study
from partwise.studies.long_range_rules.claims import CLAIMS
from partwise.studies.long_range_rules.prepared import PARTS, prepare
from partwise.studies.long_range_rules.recipe import PRESETS

STUDY = Study(
    name="long-range-rules",
    title="Long-range rules",
    paper="Saphra and Lopez (2020), LSTMs Compose (and Learn) Bottom-Up; in its first version, Do LSTMs Learn Compositionally?",
    question="An open symbol is always followed, some random words later, by a close symbol. When does a language model learn "
    "such a rule? And does it learn it earlier, or in the end worse, when the words in between (the conduit) are familiar?",
    method="Corpora of random words hold a known number of rules, counted after they were written; one-layer LSTMs are trained "
    "on them. Contextual decomposition splits every hidden state into what stems from the open symbol (or from the conduit) "
    "and the rest, and gives the probability of the close symbol by that part alone. It is read one word before the close "
    "symbol, on conduits that the corpus had (seen) and on new ones (unseen), beside the model's own probability. Seed i "
    "trains one model of every condition, each on a corpus of its own, so that conditions are compared in pairs.",
    presets={name: preset.seeds for name, preset in PRESETS.items()},
    parts=PARTS,
    claims=CLAIMS,
    prepare=prepare,
)
