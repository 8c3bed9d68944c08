"""Attentive guidance (Baan et al. 2019): what does a compositional seq2seq look like inside, against one that memorises?"""

from partwise.studies._contract import Study
from partwise.studies.attentive_guidance.claims import CLAIMS
from partwise.studies.attentive_guidance.prepared import PARTS, prepare
from partwise.studies.attentive_guidance.recipe import PRESETS

STUDY = Study(
    name="attentive-guidance",
    title="Attentive guidance",
    paper="Baan, Leible, Nikolaus, Rau, Ulmer, Baumgärtner, Hupkes and Bruni (2019), "
    "On the Realization of Compositionality in Neural Networks, BlackboxNLP",
    question="Trained on single lookup tables and on some of their compositions, does a sequence-to-sequence model compute "
    "compositions that it has never seen? And does it take guidance of its attention to get there?",
    method="Two arms of one architecture. The baseline learns from the targets alone; the guided arm is also told, at each "
    "output step, which input position to attend to. Seed i trains a model of each arm on the same split i, so the arms are "
    "compared in pairs. Every output symbol must be right, the copied input, the intermediate result and the end mark "
    "included. The weights are those of the epoch with the best accuracy on the validation rows (ties: lower loss, then "
    "later epoch); the last epoch is reported beside.",
    presets={name: preset.seeds for name, preset in PRESETS.items()},
    parts=PARTS,
    claims=CLAIMS,
    prepare=prepare,
)
