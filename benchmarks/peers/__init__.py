"""The opponents, each as fast as we can make it. They import nothing of strikeout but the paper's scheme."""
