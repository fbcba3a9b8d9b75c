"""Strike quotes out: one file per operator; `forget` chooses among them."""
