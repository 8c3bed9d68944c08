"""The same guided encoder-decoder as a PyTorch user would write it for one model: fused modules, autograd, one row a step.

It shares no code with the library, so it serves twice: as the yardstick of the benchmarks, and as an independent oracle
in the tests.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

START = 2


class PlainSeq2Seq(nn.Module):
    def __init__(self, source_words: int, target_words: int, embedding: int, hidden: int, cell: str = "gru") -> None:
        super().__init__()
        recurrent = {"gru": nn.GRU, "lstm": nn.LSTM}[cell]
        self.encoder_embedding = nn.Embedding(source_words, embedding)
        self.encoder = recurrent(embedding, hidden, batch_first=True)
        self.score = nn.Linear(2 * hidden, hidden)
        self.energy = nn.Linear(hidden, 1)
        self.decoder_embedding = nn.Embedding(target_words, hidden)
        self.focus = nn.Linear(2 * hidden, hidden)
        self.decoder = recurrent(hidden, hidden, batch_first=True)
        self.output = nn.Linear(hidden, target_words)

    def forward(self, source: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Scores (batch, step, word) and attention (batch, step, position) under greedy decoding; rows of one length."""
        encoded, state = self.encoder(self.encoder_embedding(source))
        word = torch.full((len(source),), START)
        scores, attentions = [], []
        for _ in range(steps):
            hidden = state[0] if isinstance(state, tuple) else state
            query = hidden[-1].unsqueeze(1).expand_as(encoded)
            fit = torch.relu(self.score(torch.cat((encoded, query), dim=-1)))
            attention = torch.softmax(self.energy(fit).squeeze(-1), dim=-1)
            context = torch.bmm(attention.unsqueeze(1), encoded).squeeze(1)
            focus = torch.relu(self.focus(torch.cat((context, self.decoder_embedding(word)), dim=-1)))
            out, state = self.decoder((context * focus).unsqueeze(1), state)
            score = self.output(out.squeeze(1))
            word = score.argmax(dim=-1)
            scores.append(score)
            attentions.append(attention)
        return torch.stack(scores, 1), torch.stack(attentions, 1)


def step(model: PlainSeq2Seq, optimiser: torch.optim.Optimizer, source: Tensor, target: Tensor, guidance: float) -> float:
    """One update on rows of one length whose alignment is the diagonal; losses are means over rows, summed over steps."""
    optimiser.zero_grad()
    scores, attention = model(source, target.shape[1])
    loss = torch.zeros((), dtype=scores.dtype)
    for t in range(target.shape[1]):
        loss = loss + functional.cross_entropy(scores[:, t], target[:, t])
        if guidance:
            right = torch.full((len(source),), t)
            loss = loss + guidance * functional.nll_loss(attention[:, t].clamp_min(1e-20).log(), right)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimiser.step()
    return float(loss.detach())
