"""partwise: all pairs of a sentence and a word in one call, every layer, last-step scores of every word on both sides."""

import numpy as np
import torch
from _measure import case, rounds

import partwise as pw

torch.set_num_threads(1)
arrays = case()
names = sorted(name for name in arrays if name[:5] in ("weigh", "bias_"))
layers, hidden = len(names) // 4, arrays["weight_hh_l0"].shape[1]
lstm = torch.nn.LSTM(arrays["embedding"].shape[1], hidden, layers)
lstm.load_state_dict({name: torch.tensor(arrays.pop(name)) for name in names})
head = torch.nn.Linear(hidden, len(arrays["output"]), bias=False)
head.weight.data = torch.tensor(arrays.pop("output"))
ids = torch.tensor(arrays.pop("ids"))
model = pw.wrap(embedding=torch.nn.Embedding.from_pretrained(torch.tensor(arrays.pop("embedding"))), recurrent=lstm, head=head)
sentences, time = ids.shape
pairs, word = ids.repeat_interleave(time, 0), torch.arange(time).repeat(sentences)


def every_pair():
    found = pw.contextual_decomposition(model, pairs, (word, word + 1), budget="100MB").logits()
    return np.stack([found.relevant.values, found.irrelevant.values], axis=1)


rounds(every_pair, 7)
