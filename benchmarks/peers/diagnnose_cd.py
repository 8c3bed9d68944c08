"""diagNNose 1.1: `ContextualDecomposer`, all sentences at once, one pass a word. Two shims let it be imported today, and its
result is unpacked by hand where its own code unpacks two parts of three."""

import collections
import collections.abc
import tempfile

collections.MutableMapping = collections.abc.MutableMapping  # gone since Python 3.10

import numpy as np
import torch
from _measure import case, rounds

torch.set_num_threads(1)
from diagnnose.attribute.decomposer import ContextualDecomposer
from diagnnose.models.wrappers.forward_lstm import ForwardLSTM

arrays = case()
weights = {f"rnn.{name}": torch.tensor(value) for name, value in arrays.items() if name[:5] in ("weigh", "bias_")}
weights |= {"encoder.weight": torch.tensor(arrays["embedding"]), "decoder.weight": torch.tensor(arrays["output"])}
weights["decoder.bias"] = torch.zeros(len(arrays["output"]))
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save(weights, file.name)
    model = ForwardLSTM(file.name)
width = arrays["weight_hh_l0"].shape[1]
model.init_states = {(layer, name): torch.zeros(1, width) for layer in range(model.num_layers) for name in ("hx", "cx")}
decomposer = ContextualDecomposer(model)
ids = torch.tensor(arrays["ids"])


@torch.no_grad()
def every_pair():
    scores = []
    for inputs in decomposer.wrap_inputs_embeds(ids)[1:]:  # the first is for the biases
        said = model(inputs_embeds=inputs, compute_out=True, only_return_top_embs=True)
        scores.append(torch.stack([part[:, -1].as_subclass(torch.Tensor) for part in said.contributions[:2]]))
    return torch.stack(scores).numpy().astype(np.float32)


rounds(every_pair, 3)
