// The models by name.

import { get } from "../api.js";
import { badge, h, replace, table } from "../dom.js";
import { figure, figureName } from "../figures.js";
import { number, targetNames } from "../format.js";
import { address } from "../router.js";

const COLUMNS = [
  { title: "Model" }, { title: "Target" }, { title: "Task" }, { title: "Held-out figure", number: true },
  { title: "Latest", number: true }, { title: "Versions", number: true }, { title: "Labels" },
];

export async function showModels(root, { signal }) {
  const { models } = await get("v1/models", { signal });
  models.sort((a, b) => a.name.localeCompare(b.name));
  const list = h("div");
  const search = h("input", { type: "search", id: "search", oninput: () => draw() });
  const draw = () => {
    const text = search.value.trim().toLowerCase();
    const found = models.filter((model) => [model.name, model.target, ...Object.keys(model.labels)].join(" ").toLowerCase().includes(text));
    replace(list, table(COLUMNS, found.map(row), {
      cards: true,
      caption: "Models",
      empty: models.length ? "No model has this in its name, target or labels." : "No model yet. Upload a table, then train one on it.",
    }));
  };
  draw();
  replace(root,
    h("h1", {}, "Models"),
    models.length > 1 && h("div", { class: "inline" }, h("label", { for: "search" }, "Find by name, target or label"), search),
    list);
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
    targetNames(model.target).join(", ") || "–",
    model.task ?? badge("not usable", "bad"),
    [newestFigure(model.newest?.metrics ?? {}), model.newest?.verdict && [" ", badge(model.newest.verdict, "bad")]],
    model.labels.latest ?? "–",
    [number(model.versions.length), model.drifted?.length > 0 && [" ", h("a", {
      class: "badge bad", href: address(["models", model.name, model.drifted.at(-1), "truth"]),
      title: `New rows no longer come like those of the training of version ${model.drifted.join(", ")}.`,
    }, "drift")]],
    labels.length ? labels.map(([label, version]) => badge(`${label} → ${version}`)) : "–",
  ];
}
