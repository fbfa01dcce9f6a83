// Before anything is drawn: the theme that the reader chose.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
