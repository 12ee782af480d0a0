import { checkArgument } from "../builder/interpreter/variable-warnings.ts";
import type { Dockerfile } from "../dockerfile/instruction.ts";
import { DockerfileError } from "../dockerfile/problems/problem.ts";
import { type BoughError, usageError } from "../errors.ts";
import { parseGoBoolean } from "../go/boolean.ts";
import { type ErrorRule, experimentalRules, type WarningRule } from "./rules.ts";

/** The options of `# check=skip=A,B;error=true;experimental=all` at the top, and of such comments above single instructions. */
export interface CheckDirective {
  /** `line`: the line that the finding is about. */
  isReported(rule: string, line: number | undefined): boolean;
  /** True if violations of Docker's checks are errors. */
  turnsIntoErrors: boolean;
}

/**
 * Reads the `check` parser directive (https://docs.docker.com/reference/dockerfile/#check). The build argument `checkArgument` replaces
 * it, also with an empty value.
 *
 * @throws DockerfileError or BoughError if it is invalid
 */
export function readCheckDirective(
  dockerfile: Dockerfile,
  buildArgs: ReadonlyMap<string, string>,
): CheckDirective {
  const argument = buildArgs.get(checkArgument);
  const whole = readOptions(argument ?? dockerfile.directives.get("check") ?? "");
  if ("invalid" in whole)
    throw argument === undefined ? invalid(dockerfile, whole.invalid) : invalidArgument(whole.invalid);
  const ofInstruction = readInstructionOptions(dockerfile);
  return {
    isReported(rule, line) {
      const own = ofInstruction(rule, line);
      const isExperimental = experimentalRules.some((experimental) => experimental === rule);
      const isSkipped = whole.skips(rule) || own?.skips(rule) === true;
      return !isSkipped && (!isExperimental || whole.enables(rule) || own?.enables(rule) === true);
    },
    turnsIntoErrors: whole.turnsIntoErrors,
  };
}

interface CheckOptions {
  skips(rule: string): boolean;
  enables(rule: string): boolean;
  turnsIntoErrors: boolean;
}

function readOptions(text: string): CheckOptions | { invalid: string } {
  let skips = (_rule: string) => false;
  let enables = (_rule: string) => false;
  let turnsIntoErrors = false;
  for (const option of text.split(";")) {
    if (option.trim() === "") continue;
    const separator = option.indexOf("=");
    const name = option.slice(0, separator < 0 ? undefined : separator).trim();
    const value = separator < 0 ? "" : option.slice(separator + 1).trim();
    if (separator >= 0 && name === "skip") skips = ruleSet(value);
    else if (separator >= 0 && name === "experimental") enables = ruleSet(value);
    else {
      const isOn = name === "error" ? parseGoBoolean(value) : undefined;
      if (isOn === undefined) return { invalid: option.trim() };
      turnsIntoErrors = isOn;
    }
  }
  return { skips, enables, turnsIntoErrors };
}

/**
 * Returns a function that finds the options in a comment above an instruction: https://github.com/moby/buildkit/pull/6334. As in
 * BuildKit, such a comment can only skip or enable checks, and an invalid one has no effect.
 */
function readInstructionOptions(
  dockerfile: Dockerfile,
): (rule: string, line: number | undefined) => CheckOptions | undefined {
  const { instructions, lines, directives } = dockerfile;
  if (!lines.slice(directives.size).some((line) => checkComment.test(line))) return () => undefined;
  return (rule, line = 0) => {
    const found = instructions.findIndex(({ range }) => range.start <= line && line <= range.end);
    if (found < 0 || fileRules.has(rule)) return undefined;
    const name = instructions[found]?.name;
    // The finding is shown at the earlier instruction, but BuildKit reports it at the next one, which replaces it.
    const at =
      rule === "MultipleInstructionsDisallowed"
        ? instructions.findIndex((each, index) => index > found && each.name === name)
        : found;
    const instruction = instructions[at];
    if (instruction === undefined) return undefined;
    const first = instructions[at - 1]?.range.end ?? directives.size;
    return optionsIn(lines.slice(first, instruction.range.start - 1));
  };
}

/** Reads the first `# check=` comment of those above an instruction. An empty comment ends what is above it. */
function optionsIn(linesAbove: readonly string[]): CheckOptions | undefined {
  const last = linesAbove.findLastIndex((line) => /^#\s*$/.test(line));
  for (const line of linesAbove.slice(last + 1)) {
    const [, text] = checkComment.exec(line) ?? [];
    if (text === undefined) continue;
    const options = readOptions(text.trim());
    return "invalid" in options ? undefined : options;
  }
  return undefined;
}

/** Matches up to the first space: the rest of the line is a remark. */
const checkComment = /^#\s*check\s*=\s*([^ ]+)/i;

/** Docker's checks of the whole file. BuildKit makes them without the comments above instructions. */
const fileRules: ReadonlySet<string> = new Set<WarningRule>([
  "ConsistentInstructionCasing",
  "DuplicateStageName",
  "InvalidDefaultArgInFrom",
  "NoEmptyContinuation",
  "ReservedStageName",
]);

function ruleSet(value: string): (rule: string) => boolean {
  const names = new Set(value.split(",").map((name) => name.trim()));
  return (rule) => names.has("all") || names.has(rule);
}

const expected =
  "skip=RULE,..., error=true or experimental=RULE,..., separated by semicolons; all means every rule";

function invalidArgument(option: string): BoughError {
  return usageError(
    `--build-arg ${checkArgument}: invalid check option ${JSON.stringify(option)}`,
    `It takes ${expected}.`,
  );
}

function invalid(dockerfile: Dockerfile, option: string): DockerfileError {
  const index = dockerfile.lines.findIndex((line) => /^#\s*check\s*=/i.test(line));
  const line = Math.max(index, 0) + 1;
  const rule: ErrorRule = "InvalidCheckDirective";
  const message = `invalid check option "${option}"`;
  return new DockerfileError(dockerfile, [{ rule, message, expected, range: { start: line, end: line } }]);
}
