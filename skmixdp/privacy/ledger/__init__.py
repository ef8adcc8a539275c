"""Privacy ledgers: persistent records of the budgets and charges of private data sets."""
