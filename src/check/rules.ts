import type { Problem } from "../dockerfile/problems/problem.ts";
import type { Message } from "../messages/wording.ts";

/** Docker's build checks, by the names that `# check=skip=` takes, with Docker's descriptions: https://docs.docker.com/reference/build-checks/ */
export const dockerRules = {
  ConsistentInstructionCasing:
    "All commands within the Dockerfile should use the same casing (either upper or lower)",
  CopyIgnoredFile: "Attempting to Copy file that is excluded by .dockerignore",
  DuplicateStageName: "Stage names should be unique",
  ExposeInvalidFormat:
    "IP address and host-port mapping should not be used in EXPOSE instruction. This will become an error in a future release",
  ExposeProtoCasing: "Protocol in EXPOSE instruction should be lowercase",
  FromAsCasing: "The 'as' keyword should match the case of the 'from' keyword",
  FromPlatformFlagConstDisallowed: "FROM --platform flag should not use a constant value",
  InvalidDefaultArgInFrom: "Default value for global ARG results in an empty or invalid base image name",
  InvalidDefinitionDescription:
    "Comment for build stage or argument should follow the format: `# <arg/stage name> <description>`. If this is not intended to be a description comment, add an empty line or comment between the instruction and the comment.",
  JSONArgsRecommended:
    "JSON arguments recommended for ENTRYPOINT/CMD to prevent unintended behavior related to OS signals",
  LegacyKeyValueFormat: "Legacy key/value format with whitespace separator should not be used",
  MaintainerDeprecated:
    "The MAINTAINER instruction is deprecated, use a label instead to define an image author",
  MultipleInstructionsDisallowed:
    "Multiple instructions of the same type should not be used in the same stage",
  NoEmptyContinuation: "Empty continuation lines will become errors in a future release",
  RedundantTargetPlatform:
    "Setting platform to predefined $TARGETPLATFORM in FROM is redundant as this is the default behavior",
  ReservedStageName: "Reserved words should not be used as stage names",
  SecretsUsedInArgOrEnv: "Sensitive data should not be used in the ARG or ENV commands",
  StageNameCasing: "Stage names should be lowercase",
  UndefinedArgInFrom: "FROM command must use declared ARGs",
  UndefinedVar: "Variables should be defined before their use",
  WorkdirRelativePath:
    "Relative workdir without an absolute workdir declared within the build can have unexpected results if the base image changes",
} as const;

/** bough's own rules, most of which are about differences from Docker's build. A build warns of them, too. */
export const ownRules = {
  ArchiveNotUnpacked: "ADD copies an archive as it is, without --docker.",
  /** Found in the history of builds on this machine. */
  ChangingVariable: "An ARG or ENV that changes with most builds is above a RUN that takes long.",
  CopyFromSkipped: "COPY --from is skipped: only a build with --docker copies between stages.",
  CopyMatchesNothing: "The sources of a COPY or ADD match no file.",
  DefaultExclude: "The default excludes leave out a source, or some of it.",
  /** Docker accepts such instructions. */
  EmptySetting: "A RUN has no command, or a WORKDIR or USER is empty after variables are expanded.",
  EmptySource: "A source is empty after variables are expanded, which means the whole context.",
  InstructionSkipped: "An instruction is skipped: only a build with --docker keeps such a setting.",
  MistypedStage: "--from names an image whose name is similar to that of a stage.",
  /** It is reported as far as the service in use is known. */
  MountUnsupported: "The service does not support RUN --mount=type=secret or ssh.",
  /** Such bytes become U+FFFD, as in Docker's build. */
  NotUtf8: "An instruction has bytes that are not UTF-8.",
  /** It is reported as far as the service in use is known. */
  OtherPlatform: "FROM --platform asks for a platform that the service does not run.",
  SourceAboveContext: "A source climbs out of the context by .. and is cut off at its root.",
  SpecialFileLeftOut: "A directory that is copied has a socket, a pipe or a device.",
  /** Not reported for references that a lock has. */
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
  /** Without `--docker`, only mounts are checked. */
  InvalidStage: "The --from of a RUN --mount or COPY names no stage or image that it can use.",
  LintViolation: "A check of Docker's is violated, and such violations are errors.",
  NotLocked: "The lock of --locked does not have what an instruction fetches.",
  ParseError: "The text is not a Dockerfile.",
  /** Ignoring the instruction would silently make a different image. */
  Unsupported: "An instruction is valid for Docker, but refused by bough.",
} as const;

type DockerRule = keyof typeof dockerRules;
export type WarningRule = DockerRule | keyof typeof ownRules;
export type ErrorRule = keyof typeof errorRules;

/** Rules that are reported only if `# check=experimental=` asks for them, as in Docker. */
export const experimentalRules: readonly WarningRule[] = [
  "InvalidDefinitionDescription",
  // A tag that moves may be intended.
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
export interface Finding extends Omit<Problem, "rule" | "range" | "message"> {
  rule: string;
  message: Message;
  /** The lines of the instruction; `undefined` if the finding is not about the Dockerfile. */
  range: Problem["range"] | undefined;
  /** Advice for the user. */
  hint?: Message;
  /** The instruction that a build without `--docker` skips. */
  skipped?: string;
  /** The name that it is about, if an instruction can have several findings of its rule, or if it is about no line. */
  subject?: string;
}

/** Returns the line that a finding is shown at, 1-based. */
export function lineOf({ culprit, range }: Finding): number | undefined {
  return culprit?.line ?? range?.start;
}

export function warn(
  rule: WarningRule,
  message: Message,
  { range }: { range: Problem["range"] },
  subject?: string,
): Finding {
  return { rule, message, range, ...(subject !== undefined && { subject }) };
}
