"""What a method must offer: one public function named like its file, from a population (or arrays made from one) and a batch
or a part to an `xarray.Dataset` with named dimensions, `member` among them.

A method touches no file, draws nothing unless it is given a seed, and leaves the population, its mode, its gradients and the
global random state as it found them. A name that does not exist is answered with the nearest one and the list of all.
"""
