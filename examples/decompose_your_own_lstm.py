"""Open an LSTM of your own, see its gates, and split its predictions into what each word contributes.

Run it with `python examples/decompose_your_own_lstm.py`; it takes a few seconds. The model here learns to close what was
opened, `( a b c )`, `[ c a b ]`, so that the last word depends on the first.
"""

from __future__ import annotations

import torch
from torch import nn

import partwise as pw

WORDS = ["(", ")", "[", "]", "a", "b", "c"]


def sentences(count: int) -> torch.Tensor:
    inner = torch.randint(4, 7, (count, 3))
    kind = torch.randint(0, 2, (count, 1)) * 2
    return torch.cat((kind, inner, kind + 1), dim=1)


def main() -> None:
    # 1. A plain PyTorch model, trained as anyone would.
    torch.manual_seed(0)
    embedding, lstm, head = nn.Embedding(7, 16), nn.LSTM(16, 32, num_layers=2, batch_first=True), nn.Linear(32, 7)
    model = nn.ModuleList([embedding, lstm, head])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        ids = sentences(64)
        logits = head(lstm(embedding(ids[:, :-1]))[0])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    # 2. Wrapped: the same modules, left untouched, with every gate of every step open.
    lm = pw.wrap(embedding=embedding, recurrent=lstm, head=head)
    print(f"the open recurrence differs from nn.LSTM by {lm.certificate['float64']:.0e} (float64)")
    pair = torch.tensor([[WORDS.index(word) for word in sentence.split()] for sentence in ("( c a b", "[ c a b")])
    recorder = pw.Recorder(["layer1.forget_gate"])
    lm(pair, tap=recorder)
    print(f"layer 1 keeps {recorder['layer1.forget_gate'].mean(dim=(0, 2))[1]:.2f} of its cell at the second word")

    # 3. What does each word say about the closing bracket? Every word of both sentences in one call.
    place = torch.arange(4)
    found = pw.contextual_decomposition(lm, pair.repeat_interleave(4, 0), (place.repeat(2), place.repeat(2) + 1))
    scores = found.logits(tokens=[WORDS.index(")"), WORDS.index("]")]).relevant.values.reshape(2, 4, 2)
    for word, (after_round, after_square) in zip(["( or [", "c", "a", "b"], (scores[..., 1] - scores[..., 0]).T, strict=True):
        print(f"{word:>6} speaks for ']' over ')' by {after_round:+.2f} after '(' and by {after_square:+.2f} after '['")
    print(f"certificate: both parts sum to the model's hidden states, up to {found.certificate:.0e} relative")


if __name__ == "__main__":
    main()
