"""Jobs: trainings of models on datasets."""
