/** `--call outline` and `--call targets`: what a Dockerfile takes, and what can be built from it, as docker buildx lists them. */
import { requireTarget } from "../../builder/graph/stage-references.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { jsonText } from "../../terminal/json-text.ts";
import { printResult } from "../command-line/result.ts";
import { outlineInBuildx, targetsInBuildx } from "./call-json.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";
import type { Call } from "./options/input-definitions.ts";
import { commentOn, type Outline, outlineOf } from "./outline.ts";
import type { BuildInvocation } from "./request.ts";

/** Prints the list, and builds nothing. */
export async function describeDockerfile(
  { method, isJson }: Call & { method: "outline" | "targets" },
  invocation: BuildInvocation,
): Promise<number> {
  using inputs = await readBuildInputs(invocation, { log: invocation.log, keepsContext: false });
  const dockerfile = parseDockerfile(inputs.dockerfile.text, inputs.dockerfile.path);
  const { json, result } =
    method === "targets" ? describeTargets(dockerfile, inputs) : describeOutline(dockerfile, inputs);
  if (isJson) invocation.runtime.stdout.write(`${jsonText(json, { indent: 2 })}\n`);
  else printResult(invocation, result);
  return 0;
}

interface Description {
  /** In the words of docker buildx. */
  json: unknown;
  result: Parameters<typeof printResult>[1];
}

function describeTargets(dockerfile: Dockerfile, inputs: BuildInputs): Description {
  const { stages, lines } = dockerfile;
  const targets = stages.map(({ name, from, index }) => ({
    name: name ?? null,
    description: commentOn(name, from, lines) ?? null,
    base: from.image,
    default: index === stages.length - 1,
    line: from.range.start,
  }));
  const rows = targets.map(({ name, description, default: isDefault }) => [
    `${name ?? ""}${isDefault ? " (default)" : ""}`.trim(),
    description ?? "",
  ]);
  return {
    json: targetsInBuildx(dockerfile, inputs.dockerfile),
    result: {
      id: targets.flatMap(({ name }) => name ?? []),
      json: { targets },
      table: () => alignColumns([["TARGET", "DESCRIPTION"], ...rows], 1),
    },
  };
}

function describeOutline(dockerfile: Dockerfile, inputs: BuildInputs): Description {
  const outline = outlineOf(dockerfile, inputs, requireTarget(dockerfile, inputs.target));
  const { name, args } = outline;
  const mounts = (list: Outline["secrets"]) =>
    list.map(({ name, isRequired }) => ({ name, required: isRequired }));
  return {
    json: outlineInBuildx(outline, inputs.dockerfile),
    result: {
      id: args.map((arg) => arg.name),
      json: {
        target: name ?? null,
        args: args.map(({ name, value = null, description = null }) => ({ name, value, description })),
        secrets: mounts(outline.secrets),
        ssh: mounts(outline.ssh),
      },
      table: () => renderOutline(outline),
    },
  };
}

/** Nothing, if the target takes nothing and has no name. */
function renderOutline({ name, description, args, secrets, ssh }: Outline): string {
  const title = [["TARGET:", name ?? "(default)"], ...(description ? [["DESCRIPTION:", description]] : [])];
  const table = (header: string[], rows: string[][]) =>
    rows.length === 0 ? "" : `${alignColumns([header, ...rows], 3)}\n`;
  const mounts = (list: Outline["secrets"]) =>
    list.map(({ name, isRequired }) => [name, isRequired ? "true" : ""]);
  return [
    name === undefined ? "" : `${alignColumns(title, 1)}\n`,
    table(
      ["BUILD ARG", "VALUE", "DESCRIPTION"],
      args.map(({ name, value = "", description = "" }) => [name, value, description]),
    ),
    table(["SECRET", "REQUIRED"], mounts(secrets)),
    table(["SSH", "REQUIRED"], mounts(ssh)),
  ].join("");
}

/** Pads the columns but the last, as Go's tabwriter does for docker. */
function alignColumns(rows: readonly (readonly string[])[], padding: number): string {
  const widths = rows.reduce<number[]>(
    (widths, row) => row.map((cell, at) => Math.max(widths[at] ?? 0, Bun.stringWidth(cell))),
    [],
  );
  const pad = (cell: string, at: number, row: readonly string[]) =>
    at === row.length - 1 ? cell : cell + " ".repeat((widths[at] ?? 0) - Bun.stringWidth(cell) + padding);
  return rows.map((row) => `${row.map(pad).join("")}\n`).join("");
}
