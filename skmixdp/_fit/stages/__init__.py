"""The stages of fits, one file a release: its share of the budget, its query, and what it teaches."""
