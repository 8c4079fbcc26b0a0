// The page /api/docs, made from the OpenAPI description.

import { get } from "./api.js";
import { el, fill } from "./dom.js";
import { followTheme } from "./theme.js";

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

const fact = (text, ...inside) => el("p", {}, text, ...inside);

// A call: its method and path, description, parameters and body.
function call(path, method, { description = "", parameters: list, requestBody: body }) {
  const schema = body?.content["application/json"].schema;
  const example = method === "get" ? EXAMPLES[path] : null;
  return el(
    "section",
    { class: "card" },
    el("h3", {}, el("code", {}, `${method.toUpperCase()} ${path}`)),
    description.split("\n\n").map((text) => fact(text)),
    parameters(list),
    schema ? fact("Body: ", el("code", {}, kind(schema))) : null,
    example ? fact("Try it: ", el("a", { href: example }, example)) : null,
  );
}

const calls = (paths) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, facts]) => call(path, method, facts)),
  );

const models = (schemas) =>
  Object.entries(schemas)
    .filter(([name]) => !name.includes("ValidationError"))
    .map(([name, schema]) => model(name, schema));

const errors = () =>
  fact(
    "Errors are JSON, ",
    el("code", {}, '{"detail": "one line"}'),
    ", with a status of 4xx, or 503 if too much work waits already. The description for tools: ",
    el("a", { href: "/api/openapi.json" }, "/api/openapi.json"),
    ".",
  );

const documentation = ({ info, paths, components }) =>
  el(
    "div",
    { class: "docs-page" },
    el("h1", {}, "The interface for programs"),
    fact(info.description),
    errors(),
    calls(paths),
    el("h2", {}, "Objects"),
    models(components.schemas),
  );

async function load(place) {
  try {
    fill(place, documentation(await get("/api/openapi.json")));
  } catch (error) {
    fill(place, el("p", { class: "trouble" }, error.message));
  }
}

followTheme();
load(document.getElementById("main"));
