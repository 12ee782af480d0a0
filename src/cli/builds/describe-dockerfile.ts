/** `--call outline` and `--call targets`: what a Dockerfile takes, and what can be built from it, as docker buildx lists them. */
import { reachableFrom } from "../../builder/graph/build-graph.ts";
import { graphOf, requireTarget, staticGlobals } from "../../builder/graph/stage-references.ts";
import type { Dockerfile, Instruction, Stage } from "../../dockerfile/instruction.ts";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { renderTable } from "../../terminal/table.ts";
import type { Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { type BuildInputs, readBuildInputs } from "./inputs.ts";

/** Prints the list, and builds nothing. */
export async function describeDockerfile(
  call: "outline" | "targets",
  invocation: Invocation,
): Promise<number> {
  using inputs = await readBuildInputs(invocation, { log: invocation.log, keepsContext: false });
  const dockerfile = parseDockerfile(inputs.dockerfile.text, inputs.dockerfile.path);
  const isJson = invocation.values.text("call")?.endsWith(",format=json") === true;
  const globals = isJson ? { ...invocation.globals, format: "json" as const } : invocation.globals;
  const print = call === "targets" ? printTargets : printOutline;
  print(dockerfile, inputs, { ...invocation, globals });
  return 0;
}

function printTargets({ stages, lines }: Dockerfile, _: BuildInputs, invocation: Invocation): void {
  const targets = stages.map(({ name, from, index }) => ({
    name: name ?? null,
    description: commentOn(name, from, lines),
    base: from.image,
    default: index === stages.length - 1,
    line: from.range.start,
  }));
  printResult(invocation, {
    id: targets.flatMap(({ name }) => name ?? []),
    json: { targets },
    table: (style) =>
      renderTable(
        {
          header: ["TARGET", "DESCRIPTION"],
          rows: targets.map(({ name, description, default: isDefault }, index) => [
            `${name ?? (isDefault ? "" : index)}${isDefault ? " (default)" : ""}`.trim(),
            description ?? "",
          ]),
        },
        style,
      ),
  });
}

function printOutline(dockerfile: Dockerfile, inputs: BuildInputs, invocation: Invocation): void {
  const target = requireTarget(dockerfile, inputs.target);
  const instructions = [
    ...dockerfile.globals,
    ...neededStages(dockerfile, inputs, target).flatMap((stage) => stage.instructions),
  ];
  const args = instructions.flatMap((instruction) =>
    instruction.name === "ARG"
      ? instruction.declarations.map(({ key, value }) => ({
          name: key,
          value: inputs.buildArgs.get(key) ?? value ?? null,
          description: commentOn(key, instruction, dockerfile.lines),
        }))
      : [],
  );
  const mounts = instructions.flatMap((instruction) =>
    instruction.name === "RUN" ? instruction.mounts : [],
  );
  const idsOf = (type: string) => {
    const ids = new Map<string, boolean>();
    for (const { type: own, id, target, required } of mounts) {
      const name = id ?? (own === "ssh" ? "default" : target?.split("/").at(-1)) ?? "";
      const isRequired = required === true || required === "true" || required === "1";
      if (own === type) ids.set(name, isRequired || ids.get(name) === true);
    }
    return [...ids].map(([name, isRequired]) => ({ name, required: isRequired }));
  };
  const byName = [...new Map(args.map((arg) => [arg.name, arg])).values()];
  const [secrets, ssh] = [idsOf("secret"), idsOf("ssh")];
  const { name = null } = dockerfile.stages[target] ?? {};
  printResult(invocation, {
    id: byName.map((arg) => arg.name),
    json: { target: name, args: byName, secrets, ssh },
    table: (style) =>
      [
        byName.length > 0 &&
          renderTable(
            {
              header: ["BUILD ARG", "VALUE", "DESCRIPTION"],
              rows: byName.map((arg) => [arg.name, arg.value ?? "", arg.description ?? ""]),
            },
            style,
          ),
        ...(
          [
            ["SECRET", secrets],
            ["SSH", ssh],
          ] as const
        ).map(
          ([title, rows]) =>
            rows.length > 0 &&
            renderTable(
              {
                header: [title, "REQUIRED"],
                rows: rows.map((row) => [row.name, row.required ? "true" : ""]),
              },
              style,
            ),
        ),
      ]
        .filter((table) => table !== false)
        .join("\n"),
  });
}

/** Returns the stages that the target is built from, in their order, and the target. */
function neededStages(dockerfile: Dockerfile, inputs: BuildInputs, target: number): Stage[] {
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, inputs), inputs.contexts);
  const needed = new Set(reachableFrom(graph, target));
  return dockerfile.stages.filter(({ index }) => needed.has(index));
}

/** Returns what the comment above an instruction says about a name: `# NAME what it is`. */
function commentOn(
  name: string | undefined,
  { range }: Pick<Instruction, "range">,
  lines: readonly string[],
): string | null {
  if (name === undefined) return null;
  for (let line = range.start - 2; line >= 0; line--) {
    const [, text] = /^\s*#\s?(.*)$/.exec(lines[line] ?? "") ?? [];
    if (text === undefined) return null;
    const [first = "", ...words] = text.trim().split(/\s+/);
    if (first.toLowerCase() === name.toLowerCase() && words.length > 0) return words.join(" ");
  }
  return null;
}
