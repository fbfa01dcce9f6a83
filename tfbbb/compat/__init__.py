"""Programs written for other libraries, under Keras 3."""
