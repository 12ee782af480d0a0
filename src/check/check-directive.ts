import type { Dockerfile } from "../dockerfile/instruction.ts";
import { DockerfileError } from "../dockerfile/problems/dockerfile-error.ts";
import { type ErrorRule, experimentalRules } from "./rules.ts";

/** The options of `# check=skip=A,B;error=true;experimental=all`. */
export interface CheckDirective {
  isReported(rule: string): boolean;
  /** True if violations of Docker's checks are errors. */
  turnsIntoErrors: boolean;
}

/**
 * Reads the `check` parser directive (https://docs.docker.com/reference/dockerfile/#check).
 *
 * @throws DockerfileError if it is invalid
 */
export function readCheckDirective(dockerfile: Dockerfile): CheckDirective {
  let skipped = (_rule: string) => false;
  let enabled = (_rule: string) => false;
  let turnsIntoErrors = false;
  for (const option of (dockerfile.directives.get("check") ?? "").split(";")) {
    if (option.trim() === "") continue;
    const separator = option.indexOf("=");
    const name = option.slice(0, separator < 0 ? undefined : separator).trim();
    const value = separator < 0 ? "" : option.slice(separator + 1).trim();
    if (separator >= 0 && name === "skip") skipped = ruleSet(value);
    else if (separator >= 0 && name === "experimental") enabled = ruleSet(value);
    else if (name === "error" && /^(1|t|true)$/i.test(value)) turnsIntoErrors = true;
    else if (name === "error" && /^(0|f|false)$/i.test(value)) turnsIntoErrors = false;
    else throw invalid(dockerfile, option.trim());
  }
  return {
    isReported: (rule) => {
      const isExperimental = experimentalRules.some((experimental) => experimental === rule);
      return !skipped(rule) && (!isExperimental || enabled(rule));
    },
    turnsIntoErrors,
  };
}

function ruleSet(value: string): (rule: string) => boolean {
  const names = new Set(value.split(",").map((name) => name.trim()));
  return (rule) => names.has("all") || names.has(rule);
}

function invalid(dockerfile: Dockerfile, option: string): DockerfileError {
  const index = dockerfile.lines.findIndex((line) => /^#\s*check\s*=/i.test(line));
  const line = Math.max(index, 0) + 1;
  const expected =
    "skip=RULE,..., error=true or experimental=RULE,..., separated by semicolons; all means every rule";
  const rule: ErrorRule = "InvalidCheckDirective";
  const message = `invalid check option "${option}"`;
  return new DockerfileError(dockerfile, [{ rule, message, expected, range: { start: line, end: line } }]);
}
