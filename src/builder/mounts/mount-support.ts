import type { Dockerfile, RunInstruction } from "../../dockerfile/instruction.ts";
import { DockerfileError } from "../../dockerfile/problems/dockerfile-error.ts";
import type { Problem } from "../../dockerfile/problems/problem.ts";
import { wordsOfMount } from "../../dockerfile/words/references.ts";
import { BoughError } from "../../errors.ts";
import type { NamedContexts } from "../contexts/named-context.ts";
import type { MountSupport, ServiceSupport } from "../service-support.ts";
import { missingSecret } from "../state/secrets.ts";
import { expandMounts } from "./expand-mounts.ts";
import type { MountSpec } from "./mount-spec.ts";
import { mountedDirectory } from "./mounted-directory.ts";

/** The ids given on the command line. */
export interface GivenIds {
  secrets: readonly string[];
  agents: readonly string[];
}

export function refuseBadMounts(dockerfile: Dockerfile, given: GivenIds, contexts: NamedContexts): void {
  const problems = findMountProblems(dockerfile, given, contexts);
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}

/**
 * Finds invalid mounts, required secrets that are not given, and caches that a directory should fill, as far as they are known
 * before anything is run.
 */
export function findMountProblems(
  dockerfile: Dockerfile,
  given: GivenIds,
  contexts: NamedContexts,
): Problem[] {
  return problemsOf(dockerfile, (run) => {
    const found: Pick<Problem, "message" | "expected">[] = [];
    for (const mount of run.mounts) {
      // A mount with variables is checked when the build reaches it.
      if (mount.from?.includes("$") === true || wordsOfMount(mount).some((word) => /[$'"\\`]/.test(word)))
        continue;
      try {
        const [spec] = expandMounts(
          { mounts: [mount] },
          {
            lookup: () => undefined,
            escape: dockerfile.escape,
            // Any directory but the root, on which nothing may be mounted: relative targets start at the WORKDIR.
            workdir: "/workdir",
          },
        );
        requireGiven(spec, given);
        if (spec !== undefined) mountedDirectory(spec, contexts);
      } catch (error) {
        if (!(error instanceof BoughError)) throw error;
        found.push({ message: [error.message, error.hint].filter(Boolean).join(". ") });
      }
    }
    return found;
  });
}

function requireGiven(spec: MountSpec | undefined, { secrets, agents }: GivenIds): void {
  if (spec?.type !== "secret" && spec?.type !== "ssh") return;
  const given = spec.type === "secret" ? secrets : agents;
  if (spec.required && !given.includes(spec.id)) throw missingSecret(spec.type, spec.id, given);
}

/** Finds mounts whose contents would stay in the service's images, and agents that it can't reach. */
export function findUnsupportedMounts(dockerfile: Dockerfile, support: MountSupport): Problem[] {
  return problemsOf(dockerfile, ({ mounts }) =>
    mounts.flatMap(({ type }) => {
      const message = whyUnsupported(type, support);
      return message === undefined ? [] : [{ message }];
    }),
  );
}

/** Returns `undefined` if the service supports the mount. */
export function whyUnsupported(type: string, support: MountSupport): string | undefined {
  if (type === "secret" && !support.secrets) return `not supported: --mount=type=secret: ${secretReason}`;
  if (type === "ssh" && !support.agents) return `not supported: --mount=type=ssh: ${agentReason}`;
  return undefined;
}

const secretReason =
  "the service does not support such mounts, and a secret would stay in its records and images; the embedded engine (--local) supports them";
const agentReason =
  "the service can't reach an agent on this machine; the embedded engine (--local) supports such mounts";

function problemsOf(
  { instructions }: Dockerfile,
  find: (run: RunInstruction) => Pick<Problem, "message" | "expected">[],
): Problem[] {
  return instructions.flatMap((instruction) => {
    const { range } = instruction;
    return instruction.name === "RUN" ? find(instruction).map((problem) => ({ ...problem, range })) : [];
  });
}

/** Throws for unsupported mounts. Asks the service only if a RUN has a mount that depends on it. */
export async function requireMounts(
  dockerfile: Dockerfile,
  supports: Pick<ServiceSupport, "mounts">,
): Promise<void> {
  const none = findUnsupportedMounts(dockerfile, { secrets: false, agents: false });
  if (none.length === 0) return;
  const problems = findUnsupportedMounts(dockerfile, await supports.mounts());
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}
