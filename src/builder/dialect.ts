import type { RuleInheritance } from "../context/patterns/rules.ts";

/**
 * The policies that `--docker` changes. The dialect is chosen once, where a build begins. Code asks for a policy and never compares
 * names of dialects (`scripts/layering.ts` checks that).
 */
export interface Dialect {
  /** The name is written into provenance, and into keys of results that depend on the dialect. */
  readonly name: "default" | "docker";
  /** Builds only the stages that the target needs, concurrently. By default all, in the order of the Dockerfile. */
  readonly buildsNeededStages: boolean;
  /** A `COPY --from` copies. By default it is skipped. */
  readonly copiesFromImages: boolean;
  /**
   * COPY and ADD behave as in BuildKit: they fetch repositories, follow the image's links, keep hard links and special files, and refuse
   * what BuildKit refuses.
   */
  readonly copiesAsBuildKit: boolean;
  /** ADD unpacks local archives without being asked. */
  readonly unpacksArchives: boolean;
  /** CMD, LABEL and the other configuring instructions change the image, and a base image's triggers run. By default they are skipped. */
  readonly keepsConfiguration: boolean;
  /**
   * The later one of ENV and ARG wins, and a RUN's shell expands its variables. By default `--build-arg` wins, bough expands them, and
   * no secret of ENV is stored.
   */
  readonly hasDockersVariables: boolean;
  /** The names in USER and `--chown` are looked up in the image's tables. By default `su` knows what a USER means. */
  readonly looksUpUsers: boolean;
  /** The host name of a RUN; `undefined`: whatever the service sets. */
  readonly hostName: string | undefined;
  /** Default excludes apply, and so does the ignore file of a fetched context. */
  readonly filtersContexts: boolean;
  /** How ignore rules that match a directory apply to its contents. */
  readonly ignoreInheritance: RuleInheritance;
  /** SOURCE_DATE_EPOCH is a build argument and the time of images. */
  readonly hasSourceDate: boolean;
}

/** `default`: as the specification says. `docker`: as `docker build` does it. */
export const dialects: Readonly<Record<Dialect["name"], Dialect>> = {
  default: {
    name: "default",
    buildsNeededStages: false,
    copiesFromImages: false,
    copiesAsBuildKit: false,
    unpacksArchives: false,
    keepsConfiguration: false,
    hasDockersVariables: false,
    looksUpUsers: false,
    hostName: undefined,
    filtersContexts: true,
    ignoreInheritance: "every",
    hasSourceDate: false,
  },
  docker: {
    name: "docker",
    buildsNeededStages: true,
    copiesFromImages: true,
    copiesAsBuildKit: true,
    unpacksArchives: true,
    keepsConfiguration: true,
    hasDockersVariables: true,
    looksUpUsers: true,
    hostName: "buildkitsandbox",
    filtersContexts: false,
    ignoreInheritance: "effective",
    hasSourceDate: true,
  },
};
