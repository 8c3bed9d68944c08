"""What every script here does: read a case, time some rounds, say the times and the peak memory as one line of JSON."""

import json
import resource
import sys
import time

import numpy as np


def case():
    """The arrays of the case named on the command line: ids (sentence, time), and weights by PyTorch's names."""
    with np.load(sys.argv[1]) as arrays:
        return {name: arrays[name] for name in arrays.files}


def rounds(work, count):
    """Time `work` once a round; its last result is an array of scores, of which a fingerprint is kept for comparison."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        scores = work()
        seconds.append(time.perf_counter() - start)
    if len(sys.argv) > 2:
        np.save(sys.argv[2], np.asarray(scores))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))
