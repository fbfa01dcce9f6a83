// The models by name.

import { get } from "../api.js";
import { badge, h, replace, table } from "../dom.js";
import { figure, figureName } from "../figures.js";
import { number } from "../format.js";
import { address } from "../router.js";

const PAGE = 20;

export async function showModels(root, { query, signal }) {
  const { models } = await get("v1/models", { signal });
  models.sort((a, b) => a.name.localeCompare(b.name));
  let page = 0;
  const list = h("div");
  const search = h("input", { type: "search", id: "search", value: query.get("q") ?? "", oninput: () => {
    page = 0;
    draw();
  } });

  function draw() {
    const text = search.value.toLowerCase();
    const found = models.filter((model) => `${[model.name, model.target, ...Object.keys(model.labels)].join(" ")}`.toLowerCase().includes(text));
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    const turn = (to) => () => {
      page = to;
      draw();
    };
    replace(list,
      table([{ title: "Model" }, { title: "Target" }, { title: "Task" }, { title: "Held-out figure", number: true }, { title: "Latest", number: true }, { title: "Versions", number: true }, { title: "Labels" }],
        found.slice(page * PAGE, (page + 1) * PAGE).map(row),
        { caption: "Models", empty: models.length ? "No model has this in its name, target or labels." : "No model yet. Upload a table, then train one on it." }),
      last > 0 && h("nav", { class: "pages", "aria-label": "Pages" },
        h("button", { type: "button", onclick: turn(page - 1), disabled: page === 0 }, "Previous"),
        h("span", { role: "status" }, `Page ${page + 1} of ${last + 1}, ${number(found.length)} models`),
        h("button", { type: "button", onclick: turn(page + 1), disabled: page === last }, "Next")));
  }

  replace(root,
    h("h1", {}, "Models"),
    models.length > 5 && h("div", { class: "inline" }, h("label", { for: "search" }, "Find"), search),
    list);
  draw();
}

/** The figure that people know best: accuracy of classes, else the error. */
function newestFigure(metrics) {
  const name = ["accuracy", "rmse", "log_likelihood"].find((one) => one in metrics);
  return name ? `${figureName(name)} ${figure(name, metrics[name])}` : "–";
}

function row(model) {
  const labels = Object.entries(model.labels).filter(([label]) => label !== "latest");
  return [
    h("a", { href: address(["models", model.name]) }, model.name),
    model.target ?? "–",
    model.task ?? badge("not usable", "bad"),
    [newestFigure(model.newest?.metrics ?? {}), model.newest?.verdict && [" ", badge(model.newest.verdict, "bad")]],
    model.labels.latest ?? "–",
    [number(model.versions.length), model.drifted?.length > 0 && [" ", h("a", {
      class: "badge bad", href: address(["models", model.name, model.drifted.at(-1), "truth"]),
      title: `New rows no longer come like those of the training of version ${model.drifted.join(", ")}.`,
    }, "drift")]],
    labels.map(([label, version]) => badge(`${label} → ${version}`)),
  ];
}
