/** The rules of `--check`, by the names that `# check=skip=` takes. */

/** Docker's build checks, with Docker's names and meanings: https://docs.docker.com/reference/build-checks/ */
export const dockerRules = [
  "ConsistentInstructionCasing",
  "CopyIgnoredFile",
  "DuplicateStageName",
  "ExposeInvalidFormat",
  "ExposeProtoCasing",
  "FromAsCasing",
  "FromPlatformFlagConstDisallowed",
  "InvalidDefaultArgInFrom",
  "InvalidDefinitionDescription",
  "JSONArgsRecommended",
  "LegacyKeyValueFormat",
  "MaintainerDeprecated",
  "MultipleInstructionsDisallowed",
  "NoEmptyContinuation",
  "RedundantTargetPlatform",
  "ReservedStageName",
  "SecretsUsedInArgOrEnv",
  "StageNameCasing",
  "UndefinedArgInFrom",
  "UndefinedVar",
  "WorkdirRelativePath",
] as const;

/** Differences from Docker's build, of which a build also warns in its log. */
export const ownRules = [
  /** `ADD archive.tar`: copied as it is. */
  "ArchiveNotUnpacked",
  /** `COPY --from`: only a build with `--docker` copies between stages. */
  "CopyFromSkipped",
  /** The sources of a COPY or ADD match no file. */
  "CopyMatchesNothing",
  /** The specification's default excludes leave out a source, or some of it. */
  "DefaultExclude",
  /** A RUN without a command, or a WORKDIR or USER that is empty after variables are expanded: Docker accepts them. */
  "EmptySetting",
  /** A source is empty after variables are expanded, which means the whole context. */
  "EmptySource",
  /** Only a build with `--docker` keeps such a setting. */
  "InstructionSkipped",
  /** `--from` names an image, and nearly a stage. */
  "MistypedStage",
  /** `RUN --mount=type=secret` or `ssh`, which, as far as is known, the service in use does not support. */
  "MountUnsupported",
  /** An instruction has bytes that are not UTF-8: they become U+FFFD, as in Docker's build. */
  "NotUtf8",
  /** `FROM --platform` asks for a platform that, as far as is known, the service in use does not run. */
  "OtherPlatform",
  /** A source climbs out of the context by `..`, and is cut off at its root. */
  "SourceAboveContext",
  /** A socket, a pipe or a device in a directory that is copied. */
  "SpecialFileLeftOut",
  /** `--build-arg` of a name that no ARG declares. */
  "UnusedBuildArg",
  /** `--no-cache-filter` of a stage that the Dockerfile does not have. */
  "UnusedNoCacheFilter",
  /** `--secret` or `--ssh` of an id that no `RUN --mount` asks for. */
  "UnusedSecret",
] as const;

/** Errors that keep a build from succeeding. No directive turns them off. */
export const errorRules = [
  /** `# check=` has an unknown option. */
  "InvalidCheckDirective",
  /** An instruction that cannot be carried out: a bad substitution, mode or digest, a name that is blank. */
  "InvalidInstruction",
  /** A source of COPY or ADD that is missing, leads out of the context, or can't be copied. */
  "InvalidSource",
  /** A `RUN --mount=from=` that can refer to nothing; with `--docker` a `COPY --from`, too. */
  "InvalidStage",
  /** `# check=error=true`, and one of Docker's checks is violated. */
  "LintViolation",
  /** The text is not a Dockerfile. */
  "ParseError",
  /** Valid for Docker, but refused here: leaving it out would give another image. */
  "Unsupported",
] as const;

type DockerRule = (typeof dockerRules)[number];
export type WarningRule = DockerRule | (typeof ownRules)[number];
export type ErrorRule = (typeof errorRules)[number];

/** Rules that are reported only if `# check=experimental=` asks for them, as in Docker. */
export const experimentalRules: readonly WarningRule[] = ["InvalidDefinitionDescription"];

export function isDockerRule(rule: string): boolean {
  return dockerRules.some((name) => name === rule);
}

export function isWarningRule(rule: string): rule is WarningRule {
  return isDockerRule(rule) || ownRules.some((name) => name === rule);
}
