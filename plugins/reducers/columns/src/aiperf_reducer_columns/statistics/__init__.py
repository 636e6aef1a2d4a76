"""From values to numbers: pipelines of metrics, folds, totals."""
