import type { NetworkPolicy } from "../builder/commands/network.ts";
import { overrideStages, unknownUncachedStages } from "../builder/graph/build-graph.ts";
import { linkStages } from "../builder/graph/linked-stages.ts";
import {
  findBadReferences,
  graphOf,
  mistypedStages,
  neededPart,
  staticGlobals,
} from "../builder/graph/stage-references.ts";
import { interpretFrom, interpretInStage, startGlobals } from "../builder/interpreter/interpret.ts";
import { findUnsupported } from "../builder/interpreter/refusals.ts";
import { declareGlobals } from "../builder/interpreter/settings.ts";
import { unusedBuildArgs } from "../builder/interpreter/variable-warnings.ts";
import {
  findMountProblems,
  findUnsupportedMounts,
  type GivenIds,
  unusedSecrets,
} from "../builder/mounts/mount-support.ts";
import { dependsOnPlatform, targetStageName } from "../builder/state/platform.ts";
import type { Dockerfile, FromInstruction, Instruction } from "../dockerfile/instruction.ts";
import { parseDockerfile } from "../dockerfile/parse.ts";
import { DockerfileError, type Problem } from "../dockerfile/problems/problem.ts";
import { BoughError } from "../errors.ts";
import type { Platform } from "../image/platform.ts";
import { createPace } from "../pace.ts";
import { type CheckDirective, readCheckDirective } from "./check-directive.ts";
import {
  type AssumedService,
  createDryRun,
  type DryRunOptions,
  type DryRunResult,
  type DryRunStage,
  startDryRunStage,
  UncopyableSourceError,
} from "./dry-run.ts";
import { lintDockerfile } from "./lint.ts";
import { lintChangedVariables, type VariableChange } from "./lints/changed-variables.ts";
import { type CheckedLock, findNotLocked, lintReferences, openImage } from "./lints/references.ts";
import type { PlannedFile } from "./planned-file.ts";
import { type ErrorRule, type Finding, isDockerRule, lineOf } from "./rules.ts";

/** The findings about a build that has not been run. */
export interface CheckReport {
  /** The lines that a message shows. */
  source: { path: string; lines: readonly string[] };
  /** Empty if the text does not parse. */
  instructions: readonly Instruction[];
  /** The Dockerfile's escape character. */
  escape: string;
  files: readonly PlannedFile[];
  /** Warnings and errors are sorted by line. */
  warnings: readonly Finding[];
  errors: readonly Finding[];
}

interface CheckOptions extends Omit<PlanOptions, "platform" | "startsFromScratch"> {
  text: string;
  /** `--platform`. */
  platform: Platform | undefined;
  /** The Dockerfile's name, for messages. */
  path: string;
  network: NetworkPolicy;
  /** Returns what is known of the service. Called only if an instruction depends on it. */
  assumeService: () => Promise<AssumedService>;
  /** `--secret` and `--ssh`. */
  given: GivenIds;
  /** `--no-cache-filter`. */
  uncachedStages: readonly string[];
  /** `--check=error`, which does what `# check=error=true` does. */
  turnsIntoErrors: boolean;
  /** `--lock`. */
  lock: CheckedLock | undefined;
  /** The variables for which past builds had to run instructions again. */
  changes: readonly VariableChange[];
}

/** Parses, plans and lints, without a request to a service and without reading a file of the context. */
export async function checkDockerfile(options: CheckOptions): Promise<CheckReport> {
  const { text, path } = options;
  const parsed = attempt("ParseError", () => parseDockerfile(text, path));
  if ("errors" in parsed) {
    const source = { path, lines: text.split(/\r*\n/) };
    return { source, instructions: [], escape: "\\", files: [], warnings: [], errors: parsed.errors };
  }
  const dockerfile = parsed.result;
  const directive = attempt("InvalidCheckDirective", () => readCheckDirective(dockerfile, options.buildArgs));
  if ("result" in directive) return checkParsed(dockerfile, directive.result, options);
  const none = readCheckDirective({ ...dockerfile, directives: new Map() }, new Map());
  const report = await checkParsed(dockerfile, none, options);
  return { ...report, errors: [...directive.errors, ...report.errors] };
}

function attempt<Result>(rule: ErrorRule, action: () => Result): { result: Result } | { errors: Finding[] } {
  try {
    return { result: action() };
  } catch (error) {
    if (!(error instanceof DockerfileError)) throw error;
    return { errors: error.problems.map((problem) => errorOf(rule, problem)) };
  }
}

async function checkParsed(
  dockerfile: Dockerfile,
  { isReported, turnsIntoErrors }: CheckDirective,
  options: CheckOptions,
): Promise<CheckReport> {
  const depends = options.platform !== undefined || dependsOnPlatform(dockerfile);
  const assumed = depends ? await options.assumeService() : undefined;
  const platform = assumed && {
    ...assumed,
    platforms: { ...assumed.platforms, target: options.platform ?? assumed.platforms.target },
  };
  const startsFromScratch = async () => (await options.assumeService()).startsFromScratch;
  const built = overrideStages(dockerfile, options.contexts);
  const plan = await planBuild(built, { ...options, platform, startsFromScratch });
  const unused = [
    ...unusedBuildArgs(dockerfile, options.buildArgs),
    ...unusedSecrets(dockerfile, options.given, options),
    ...unknownUncachedStages(dockerfile, options.uncachedStages),
  ];
  const needed = neededPart(built, options);
  const mounts = await unsupportedMounts(needed, options);
  const warnings = [
    ...unused.map((warning) => ({ ...warning, range: undefined })),
    ...lintDockerfile(dockerfile),
    ...mistypedStages(built, options),
    ...plan.warnings,
    ...lintReferences(plan.references, options.lock),
    ...lintChangedVariables(dockerfile, options.changes),
    ...(mounts.isCertain ? [] : mounts.problems.map((problem) => ({ ...problem, rule: "MountUnsupported" }))),
  ].filter(({ rule, range }) => isReported(rule, range?.start));
  const errors = [
    ...badReferences(built, options),
    ...findUnsupported(needed, options.network).map((problem) => errorOf("Unsupported", problem)),
    ...findMountProblems(built, options.contexts).map((problem) => errorOf("InvalidInstruction", problem)),
    ...(mounts.isCertain ? mounts.problems.map((problem) => errorOf("Unsupported", problem)) : []),
    ...plan.errors,
    ...findNotLocked(plan.references, options.lock),
    ...(turnsIntoErrors || options.turnsIntoErrors ? violations(warnings) : []),
  ];
  return {
    source: dockerfile,
    instructions: dockerfile.instructions,
    escape: dockerfile.escape,
    files: plan.files,
    warnings: byLine(warnings),
    errors: byLine(withoutRepeats(errors)),
  };
}

async function unsupportedMounts(
  dockerfile: Dockerfile,
  { assumeService }: CheckOptions,
): Promise<{ problems: Problem[]; isCertain: boolean }> {
  const none = findUnsupportedMounts(dockerfile, { secrets: false, agents: false });
  if (none.length === 0) return { problems: [], isCertain: true };
  const { mounts, isCertain } = await assumeService();
  return { problems: findUnsupportedMounts(dockerfile, mounts), isCertain };
}

function badReferences(
  dockerfile: Dockerfile,
  { buildArgs, target, dialect, contexts }: CheckOptions,
): Finding[] {
  const graph = graphOf(dockerfile, staticGlobals(dockerfile, { buildArgs, target }), contexts);
  return findBadReferences(dockerfile, graph, dialect).map((problem) => errorOf("InvalidStage", problem));
}

/** Returns an error if Docker's rules are violated. bough's own rules do not count: the directive asks Docker to be strict. */
function violations(warnings: readonly Finding[]): Finding[] {
  const violated = byLine(warnings).filter(({ rule }) => isDockerRule(rule));
  const [first] = violated;
  if (first === undefined) return [];
  const rules = [...new Set(violated.map(({ rule }) => rule))].sort();
  const message = `lint violation found for rules: ${rules.join(", ")}`;
  return [{ rule: "LintViolation" satisfies ErrorRule, message, range: first.range }];
}

function errorOf(rule: ErrorRule, problem: Problem): Finding {
  return { ...problem, rule: problem.rule ?? rule };
}

/** Removes duplicates: the plan also finds errors that are found in the text. */
function withoutRepeats(findings: readonly Finding[]): Finding[] {
  const keyOf = (finding: Finding) => `${lineOf(finding)} ${finding.rule} ${finding.message}`;
  return [...new Map(findings.map((finding) => [keyOf(finding), finding])).values()];
}

/** Sorts findings. Those without a line come first. */
function byLine(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((one, other) => (lineOf(one) ?? 0) - (lineOf(other) ?? 0));
}

interface PlanOptions extends Omit<DryRunOptions, "baseOf" | "triggersOf" | "opensContexts"> {
  target: string | undefined;
}

const emptyPlan = (): DryRunResult => ({ files: [], references: [], warnings: [], errors: [] });

/** Interprets a Dockerfile as a build does, without a service. Records errors, and goes on after them. */
async function planBuild(dockerfile: Dockerfile, options: PlanOptions): Promise<DryRunResult> {
  const plan = emptyPlan();
  const { buildArgs, dialect } = options;
  const { escape } = dockerfile;
  const pace = createPace(options.signal);
  const perform = async <Result>(
    instruction: Instruction,
    before: Result,
    action: () => Promise<Result>,
    { errors }: DryRunResult = plan,
  ) => {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
      errors.push(findingOf(error, instruction));
      return before;
    }
  };

  const stage = targetStageName(dockerfile, options.target);
  let globals = startGlobals({ platforms: options.platform?.platforms, stage }, buildArgs);
  for (const instruction of dockerfile.globals)
    globals = await perform(instruction, globals, async () =>
      declareGlobals(instruction, globals, { buildArgs, escape }),
    );
  const { graph, sourcesOf, triggersOf, ...links } = linkStages(dockerfile, globals, options);
  const needed = new Set(links.needed);
  const ends: DryRunStage[] = [];
  const baseOf = (from: FromInstruction) => ends[sourcesOf(from)[0] ?? -1];
  for (const { index, from, instructions } of dockerfile.stages) {
    const isNeeded = needed.has(index);
    // Docker checks all stages. In one that is not built, only findings of Docker's own rules count.
    const result = isNeeded ? plan : emptyPlan();
    const backend = createDryRun({ ...options, baseOf, triggersOf, opensContexts: isNeeded }, escape, result);
    for (const edge of graph.nodes[index]?.edges ?? []) {
      const image = edge.kind !== "copy" || dialect.copiesFromImages ? openImage(edge) : undefined;
      if (image !== undefined) result.references.push(image);
    }
    // A FROM that fails starts a stage anyway: the instructions after it are not a part of the stage before.
    let stage = await perform(from, startDryRunStage(), () => interpretFrom(from, globals, backend), result);
    for (const instruction of instructions)
      stage = await perform(
        instruction,
        stage,
        () => interpretInStage(instruction, stage, globals, backend),
        result,
      );
    ends[index] = stage;
    if (!isNeeded) plan.warnings.push(...result.warnings.filter(({ rule }) => isDockerRule(rule)));
  }
  return plan;
}

function findingOf(error: BoughError, { range }: Instruction): Finding {
  const rule: ErrorRule = error instanceof UncopyableSourceError ? "InvalidSource" : "InvalidInstruction";
  return { rule, message: error.wording, range, ...(error.hint === undefined ? {} : { hint: error.hint }) };
}
