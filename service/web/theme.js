// A classic script, so that the first paint already has the theme that was chosen.
const theme = localStorage.getItem("tfbbb-theme");
if (theme === "light" || theme === "dark") {
  document.documentElement.dataset.theme = theme;
}
