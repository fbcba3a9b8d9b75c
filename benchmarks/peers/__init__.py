"""The opponents, each as fast as we know how to make it. They import nothing of strikeout but the paper's scheme."""
