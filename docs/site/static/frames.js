// A picture with frames, `name=value.png` beside `name.png`, gets a slider over them.
for (const image of document.querySelectorAll("img[data-values]")) {
  const values = image.dataset.values.split(" ");
  const frames = values.map((value) => image.src.replace(/\.png$/, `=${value}.png`));
  const slider = document.createElement("input");
  const shown = document.createElement("output");
  slider.type = "range";
  slider.max = values.length - 1;
  slider.value = values.length >> 1;
  slider.setAttribute("aria-label", image.alt);
  const show = () => {
    image.src = frames[slider.value];
    shown.value = values[slider.value];
    slider.setAttribute("aria-valuetext", shown.value);
  };
  slider.addEventListener("input", show);
  slider.addEventListener(
    "pointerenter",
    () => frames.forEach((frame) => (new Image().src = frame)),
    { once: true },
  );
  const row = document.createElement("div");
  row.className = "frames";
  row.append(slider, shown);
  image.after(row);
  show();
}
