"""The operations people perform on a book, each one transaction; commands and services are translations of them."""
