"""Rules for quotes: their catalogue, how strict they are, and one function per rule."""
