"""Training on streams: language models on running text, the state carried from window to window."""
