"""The engine: one per state directory; starts, adopts, folds, answers."""
