import { jsonText } from "../../terminal/json-text.ts";
import { runCheckCommand } from "../builds/check.ts";
import type { Invocation } from "../command-line/command.ts";
import { findPlace, writeAllOrNone } from "../command-line/result.ts";
import type { ResolvedBake, ResolvedTarget } from "./resolve.ts";
import { invocationOf, placeholder, withTarget } from "./target-command.ts";

/** True for a target with `call = "lint"`, as `docker compose build --check` makes them. */
export function isOnlyChecked({ fields }: ResolvedTarget): boolean {
  return ["check", "lint"].includes(fields.call || "build");
}

/** Checks the Dockerfile of each target as `bough build --check` does. Returns the highest of the exit codes. */
export async function checkTargets(
  targets: ResolvedBake["targets"],
  invocation: Invocation,
): Promise<number> {
  const { runtime, values } = invocation;
  let highest = 0;
  let separator = "";
  for (const target of targets.values()) {
    runtime.stdout.write(`${separator}${target.name}\n\n`);
    separator = "\n";
    const exitCode = await runCheckCommand(invocationOf(target, () => placeholder, invocation)).catch(
      (error: unknown) => {
        throw withTarget(error, target);
      },
    );
    highest = Math.max(highest, exitCode);
  }
  const file = values.text("metadata-file");
  if (file !== undefined) {
    const place = findPlace("--metadata-file", file, runtime.workingDirectory);
    const text = `${jsonText(Object.fromEntries([...targets.keys()].map((name) => [name, {}])), { indent: 2 })}\n`;
    writeAllOrNone([{ ...place, text }]);
  }
  return highest;
}
