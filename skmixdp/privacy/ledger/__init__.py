"""Privacy ledgers: lasting records of the budgets and charges of private data sets."""
