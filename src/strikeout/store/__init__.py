"""Where a book lives: canonical bytes, the ledger, and the places quotes and states are kept."""
