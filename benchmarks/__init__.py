"""Speed and accuracy side by side, ours against named peers: `python -m benchmarks`.

Imports nothing, so that `__main__` can hold NumPy to one thread before NumPy is loaded.
"""
