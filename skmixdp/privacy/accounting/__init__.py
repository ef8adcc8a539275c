"""What releases cost: events, their epsilon, their composition and calibration."""
