// The interface for programs, out of its own description.

import { get } from "./api.js";
import { el, fill } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme =
  localStorage.getItem("lab2048.theme") ?? (dark ? "dark" : "light");
const main = document.getElementById("main");
const EXAMPLES = {
  "/api/analyse": "/api/analyse?board=64+16+4+/+8+32+2+/+2+.+4&rules=3x3&player=expectimax",
  "/api/reach": "/api/reach?board=2+4+/+.+.",
  "/api/players": "/api/players?rules=4x4",
  "/api/tables": "/api/tables",
  "/api/results": "/api/results",
};

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.join(", ");
  if (schema.type === "array") return `list of ${kind(schema.items)}`;
  return (
    {
      null: "null",
      number: "number",
      integer: "whole number",
      string: "text",
      boolean: "true or false",
      object: "object",
    }[schema.type] ?? "anything"
  );
}

function parameters(list) {
  if (!list?.length) return null;
  return el(
    "div",
    { class: "wide" },
    el(
      "table",
      { class: "results docs" },
      el(
        "tbody",
        {},
        list.map((each) =>
          el(
            "tr",
            {},
            el("td", {}, el("code", {}, each.name), each.required ? " *" : ""),
            el("td", {}, kind(each.schema)),
            el(
              "td",
              {},
              each.description ?? each.schema?.description ?? "",
              each.schema?.default !== undefined
                ? ` (usually ${JSON.stringify(each.schema.default)})`
                : "",
            ),
          ),
        ),
      ),
    ),
  );
}

function model(name, schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([field, facts]) => ({
    name: field,
    schema: facts,
    description: facts.description,
    required: schema.required?.includes(field),
  }));
  return el(
    "section",
    { class: "card" },
    el("h3", {}, name),
    el("p", { class: "dim" }, schema.description ?? ""),
    parameters(rows),
  );
}

try {
  const found = await get("/api/openapi.json");
  const calls = Object.entries(found.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, facts]) =>
      el(
        "section",
        { class: "card" },
        el("h3", {}, el("code", {}, `${method.toUpperCase()} ${path}`)),
        (facts.description ?? "").split("\n\n").map((text) => el("p", {}, text)),
        parameters(facts.parameters),
        facts.requestBody
          ? el(
              "p",
              {},
              "Body: ",
              el("code", {}, kind(facts.requestBody.content["application/json"].schema)),
            )
          : null,
        method === "get" && EXAMPLES[path]
          ? el("p", {}, "Try it: ", el("a", { href: EXAMPLES[path] }, EXAMPLES[path]))
          : null,
      ),
    ),
  );
  const models = Object.entries(found.components.schemas)
    .filter(([name]) => !name.includes("ValidationError"))
    .map(([name, schema]) => model(name, schema));
  fill(
    main,
    el(
      "div",
      { class: "docs-page" },
      el("h1", {}, "The interface for programs"),
      el("p", {}, found.info.description),
      el(
        "p",
        {},
        "Errors are JSON, ",
        el("code", {}, '{"detail": "one line"}'),
        ", with a status of 4xx. The description for tools: ",
        el("a", { href: "/api/openapi.json" }, "/api/openapi.json"),
        ".",
      ),
      calls,
      el("h2", {}, "Objects"),
      models,
    ),
  );
} catch (error) {
  fill(main, el("p", { class: "trouble" }, error.message));
}
