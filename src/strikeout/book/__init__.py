"""A book: quotes, calibrations and the record of every change, in one file."""

from strikeout.book.book import Book as Book
