"""Jobs: each trains a model on a dataset."""
