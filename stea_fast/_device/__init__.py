"""A refinement whose data stays on a device: the stages in torch, for tensors on any device.

The same mathematics as the NumPy stages, which define it; tests compare the two on CPU tensors. Only scalars come
back to the host while a refinement runs: how many pairs there are, and whether a sweep changed anything.
"""
