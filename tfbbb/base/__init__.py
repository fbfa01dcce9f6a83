"""What knows no mathematics: private APIs, noise, checks of arguments, texts, files."""
