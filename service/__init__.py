"""The REST service: predictions of exported models, with their uncertainty."""
