"""The algebra of bounds: pure functions and folds, without a wall clock."""
