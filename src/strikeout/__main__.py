"""``python -m strikeout`` is the command line too."""

from strikeout.cli import main

if __name__ == "__main__":
    main()
