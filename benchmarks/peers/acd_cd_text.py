"""acd 0.0.2: `cd_text`, one sentence and one phrase a call, first layer only (it knows no other)."""

import types

import numpy as np
import torch
from _measure import case, rounds
from acd.scores.cd import cd_text

torch.set_num_threads(1)
arrays = case()
hidden = arrays["weight_hh_l0"].shape[1]
lstm = torch.nn.LSTM(arrays["embedding"].shape[1], hidden)
lstm.load_state_dict({name: torch.tensor(value) for name, value in arrays.items() if name.endswith("_l0")})
model = types.SimpleNamespace(
    hidden_dim=hidden,
    lstm=lstm,
    embed=torch.nn.Embedding.from_pretrained(torch.tensor(arrays["embedding"])),
    hidden_to_label=types.SimpleNamespace(weight=torch.tensor(arrays["output"])),
)


@torch.no_grad()
def every_pair():
    scores = []
    for sentence in torch.tensor(arrays["ids"]):
        batch = types.SimpleNamespace(text=sentence.unsqueeze(1))
        scores += [cd_text(batch, model, word, word, return_irrel_scores=True) for word in range(len(sentence))]
    return np.array(scores, np.float32)


rounds(every_pair, 3)
