"""The algebra of bounds: pure functions and folds that use no wall clock."""
