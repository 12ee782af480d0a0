import type { Problem } from "../dockerfile/problems/problem.ts";

/** The rules of `--check`, by the names that `# check=skip=` takes, and what each demands or reports. */

/** Docker's build checks, with Docker's names and meanings: https://docs.docker.com/reference/build-checks/ */
export const dockerRules = {
  ConsistentInstructionCasing: "All instructions should be written in the same case.",
  CopyIgnoredFile: "COPY and ADD should not name files that .dockerignore leaves out.",
  DuplicateStageName: "Names of stages should be unique.",
  ExposeInvalidFormat: "EXPOSE should name ports only, without an IP address or a mapping.",
  ExposeProtoCasing: "The protocol of EXPOSE should be in lower case.",
  FromAsCasing: "The AS of a FROM should be in the case of FROM.",
  FromPlatformFlagConstDisallowed: "FROM --platform should not have a constant value.",
  InvalidDefaultArgInFrom: "The default value of an ARG should make the reference of a FROM valid.",
  InvalidDefinitionDescription: "The comment above an ARG or a stage should begin with its name.",
  JSONArgsRecommended: "CMD and ENTRYPOINT should have JSON arguments, so that signals reach the program.",
  LegacyKeyValueFormat: "ENV and LABEL should be written as KEY=VALUE.",
  MaintainerDeprecated: "LABEL should be used instead of MAINTAINER.",
  MultipleInstructionsDisallowed:
    "A stage should have one CMD, ENTRYPOINT and HEALTHCHECK: only the last counts.",
  NoEmptyContinuation: "No empty line should follow a line that is continued.",
  RedundantTargetPlatform: "FROM --platform=$TARGETPLATFORM is the default.",
  ReservedStageName: "A stage should not be named scratch or context.",
  SecretsUsedInArgOrEnv: "ARG and ENV should not have secrets, which the image would show.",
  StageNameCasing: "Names of stages should be in lower case.",
  UndefinedArgInFrom: "A FROM should use only declared arguments.",
  UndefinedVar: "Variables should be defined before they are used.",
  WorkdirRelativePath: "A relative WORKDIR should follow an absolute one.",
} as const;

/** Differences from Docker's build, of which a build also warns in its log. */
export const ownRules = {
  ArchiveNotUnpacked: "ADD copies an archive as it is, without --docker.",
  CopyFromSkipped: "COPY --from is skipped: only a build with --docker copies between stages.",
  CopyMatchesNothing: "The sources of a COPY or ADD match no file.",
  DefaultExclude: "The default excludes leave out a source, or some of it.",
  /** Docker accepts them. */
  EmptySetting: "A RUN has no command, or a WORKDIR or USER is empty after variables are expanded.",
  EmptySource: "A source is empty after variables are expanded, which means the whole context.",
  InstructionSkipped: "An instruction is skipped: only a build with --docker keeps such a setting.",
  MistypedStage: "--from names an image, and nearly a stage.",
  /** It is reported as far as the service in use is known. */
  MountUnsupported: "The service does not support RUN --mount=type=secret or ssh.",
  /** They become U+FFFD, as in Docker's build. */
  NotUtf8: "An instruction has bytes that are not UTF-8.",
  /** It is reported as far as the service in use is known. */
  OtherPlatform: "FROM --platform asks for a platform that the service does not run.",
  SourceAboveContext: "A source climbs out of the context by .. and is cut off at its root.",
  SpecialFileLeftOut: "A directory that is copied has a socket, a pipe or a device.",
  /** Unless a lock has it. */
  UnpinnedReference: "An image has no digest, a URL no checksum, or a repository no commit.",
  UnusedBuildArg: "--build-arg has a name that no ARG declares.",
  UnusedNoCacheFilter: "--no-cache-filter names a stage that the Dockerfile does not have.",
  UnusedSecret: "--secret or --ssh has an id that no RUN --mount asks for.",
} as const;

/** Errors that keep a build from succeeding. No directive turns them off. */
export const errorRules = {
  InvalidCheckDirective: "# check= has an unknown option.",
  InvalidInstruction:
    "An instruction cannot be carried out: a bad substitution, mode or digest, a name that is blank.",
  InvalidSource: "A source of COPY or ADD is missing, leads out of the context, or can't be copied.",
  /** With `--docker` that of a `COPY --from`, too. */
  InvalidStage: "The --from of a RUN --mount or COPY can refer to nothing.",
  LintViolation: "A check of Docker's is violated, and such violations are errors.",
  NotLocked: "The lock of --locked does not have what an instruction fetches.",
  ParseError: "The text is not a Dockerfile.",
  /** The image would be another one without it. */
  Unsupported: "An instruction is valid for Docker, but refused by bough.",
} as const;

type DockerRule = keyof typeof dockerRules;
export type WarningRule = DockerRule | keyof typeof ownRules;
export type ErrorRule = keyof typeof errorRules;

/** Rules that are reported only if `# check=experimental=` asks for them, as in Docker. */
export const experimentalRules: readonly WarningRule[] = [
  "InvalidDefinitionDescription",
  // A tag that moves may be what is wanted.
  "UnpinnedReference",
];

export function isDockerRule(rule: string): rule is DockerRule {
  return Object.hasOwn(dockerRules, rule);
}

export function isWarningRule(rule: string): rule is WarningRule {
  return isDockerRule(rule) || Object.hasOwn(ownRules, rule);
}

/** Returns the address of Docker's page about one of its rules. */
export function pageOf(rule: string): string | undefined {
  return isDockerRule(rule) ? `https://docs.docker.com/go/dockerfile/rule/${kebabCase(rule)}/` : undefined;
}

/** Converts `JSONArgsRecommended` to `json-args-recommended`. */
function kebabCase(name: string): string {
  return name.replace(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, "-").toLowerCase();
}

/** A warning or an error of `--check`. */
export interface Finding extends Omit<Problem, "rule" | "range"> {
  rule: string;
  /** The lines of the instruction; `undefined` if the finding is not about the Dockerfile. */
  range: Problem["range"] | undefined;
  /** Advice for the user. */
  hint?: string;
}

/** Returns the line that a finding is shown at, 1-based. */
export function lineOf({ culprit, range }: Finding): number | undefined {
  return culprit?.line ?? range?.start;
}

export function warn(rule: WarningRule, message: string, { range }: { range: Problem["range"] }): Finding {
  return { rule, message, range };
}

/** Returns the message with the advice. */
export function textOf({ message, hint }: Finding): string {
  return hint === undefined ? message : `${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}`;
}
