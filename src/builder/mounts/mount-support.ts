import type { BuildContext } from "../../context/build-context.ts";
import type { Dockerfile, Mount, RunInstruction } from "../../dockerfile/instruction.ts";
import { DockerfileError, type Problem } from "../../dockerfile/problems/problem.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { wordsOfMount } from "../../dockerfile/words/references.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { nearest } from "../../suggest.ts";
import { type DirectoryContext, findContext, type NamedContexts } from "../contexts/named-context.ts";
import type { MountSupport, ServiceSupport } from "../service-support.ts";
import type { BuildWarning } from "../state/warnings.ts";
import { type MountSpec, readMounts } from "./mount-spec.ts";

/** The ids given on the command line. */
export interface GivenIds {
  secrets: readonly string[];
  agents: readonly string[];
}

export function refuseBadMounts(dockerfile: Dockerfile, contexts: NamedContexts): void {
  const problems = findMountProblems(dockerfile, contexts);
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}

/**
 * Finds invalid mounts, and caches that a directory should fill, as far as they are known before anything is run. A missing secret is
 * reported only when a command needs it: a cached step needs none.
 */
export function findMountProblems(dockerfile: Dockerfile, contexts: NamedContexts): Problem[] {
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
        if (spec !== undefined) mountedDirectory(spec, contexts);
      } catch (error) {
        if (!(error instanceof BoughError)) throw error;
        found.push({ message: [error.message, error.hint].filter(Boolean).join(". ") });
      }
    }
    return found;
  });
}

/** Finds mounts of secrets that would stay in the service's images, and of agents that it can't reach. */
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

/** Warns of `--secret` and `--ssh` ids that the Dockerfile never asks for. */
export function unusedSecrets(
  { instructions, path }: Dockerfile,
  given: GivenIds,
  { context, contexts }: { context: BuildContext; contexts: NamedContexts },
): BuildWarning[] {
  const mounts = instructions.flatMap((instruction) =>
    instruction.name === "RUN" ? instruction.mounts : [],
  );
  // A mount with a variable may ask for any id.
  if (mounts.some((mount) => wordsOfMount(mount).some((word) => word.includes("$")))) return [];
  // An address may contain a variable, so any ADD may name a repository or a URL.
  const mayFetch =
    context.isFetched === true ||
    contexts.values().some((each) => each.kind === "directory" && each.source.kind !== "local") ||
    instructions.some(({ name }) => name === "ADD");
  const mayServeFetch = (id: string) =>
    mayFetch && /^(GIT_AUTH_(TOKEN|HEADER)(\..*)?|HTTP_AUTH_(TOKEN|HEADER)_.+|default)$/.test(id);
  return (["secret", "ssh"] as const).flatMap((type) => {
    const asked = new Set(
      mounts.filter((mount) => mount.type === type).flatMap((mount) => idOf(mount) ?? []),
    );
    const ids = type === "secret" ? given.secrets : given.agents;
    return ids
      .filter((id) => !asked.has(id) && !mayServeFetch(id))
      .map((id): BuildWarning => {
        const option = { option: type, value: type === "secret" ? `id=${id}` : id };
        const meant = nearest(id, asked);
        const advice = meant === undefined ? "" : ` (did you mean ${meant}?)`;
        return {
          rule: "UnusedSecret",
          subject: `${type} ${id}`,
          message: wording`${option} has no effect: no RUN --mount=type=${type} in ${path} uses it${advice}`,
        };
      });
  });
}

/** Returns `undefined` if the mount is invalid, which is reported elsewhere. */
function idOf(mount: Parameters<typeof readMounts>[0][number]): string | undefined {
  try {
    const [spec] = readMounts([mount], "/workdir");
    return spec?.type === "secret" || spec?.type === "ssh" ? spec.id : undefined;
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    return undefined;
  }
}

/** Returns the mounts of a RUN. Docker replaces variables in every field but `from`. */
export function expandMounts(
  { mounts }: Pick<RunInstruction, "mounts">,
  { lookup, escape, workdir }: { lookup: Lookup; escape: EscapeCharacter; workdir: string },
): MountSpec[] {
  return readMounts(
    mounts.map((mount) => replaceWords(mount, (word) => expandWord(word, lookup, escape))),
    workdir,
  );
}

function replaceWords(mount: Mount, expand: (word: string) => string): Mount {
  const text = (word: string | undefined) => (word === undefined ? undefined : expand(word));
  const flag = (word: string | true | undefined) => (word === true ? true : text(word));
  return {
    type: expand(mount.type).toLowerCase(),
    id: text(mount.id),
    from: mount.from,
    source: text(mount.source),
    target: text(mount.target),
    readonly: flag(mount.readonly),
    required: flag(mount.required),
    sharing: text(mount.sharing),
    mode: text(mount.mode),
    uid: text(mount.uid),
    gid: text(mount.gid),
    size: text(mount.size),
    env: text(mount.env),
  };
}

/**
 * Returns the directory of a named context that a bind mounts; `undefined` if the mount's files come from elsewhere. Throws for a
 * cache: only an image can fill one.
 */
export function mountedDirectory(spec: MountSpec, contexts: NamedContexts): DirectoryContext | undefined {
  if ((spec.type !== "bind" && spec.type !== "cache") || spec.from === undefined) return undefined;
  const { from } = spec;
  const found = findContext(from, contexts);
  if (found?.kind !== "directory") return undefined;
  if (spec.type === "bind") return found;
  throw new BoughError(
    wording`not supported: --mount=type=cache,from=${from}: ${{ option: "build-context" }} ${found.name} is a directory, and only a stage or an image can fill a cache`,
    {
      kind: "usage",
      hint: `Make a stage of it (FROM scratch AS files, COPY --from=${from} . /) and write from=files.`,
    },
  );
}
