# Aliases: `make test` is `python3 go.py test`. Arguments: make test ARGS="-k heston"
.DEFAULT_GOAL := help
COMMANDS := help setup demo serve test check tidy docs bench paper sanitize aarch64 fuzz
.PHONY: $(COMMANDS)
$(COMMANDS):
	@python3 go.py $@ $(ARGS)
