"""Storage of books: quotes, states and pages in a file or in memory, and the signed ledger."""
