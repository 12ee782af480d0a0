import type { BuildContext } from "../../context/build-context.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { wordsOfMount } from "../../dockerfile/words/references.ts";
import { BoughError } from "../../errors.ts";
import { nearest } from "../../suggest.ts";
import type { NamedContexts } from "../contexts/named-context.ts";
import type { BuildWarning } from "../state/warnings.ts";
import { readMounts } from "./mount-spec.ts";
import type { GivenIds } from "./mount-support.ts";

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
  // An address may contain a variable, so any ADD may name a repository.
  const mayFetch =
    context.isRepository === true ||
    contexts.values().some((each) => each.kind === "directory" && each.source.kind === "repository") ||
    instructions.some(({ name }) => name === "ADD");
  const mayServeGit = (id: string) => mayFetch && /^(GIT_AUTH_(TOKEN|HEADER)(\..*)?|default)$/.test(id);
  return (["secret", "ssh"] as const).flatMap((type) => {
    const asked = new Set(
      mounts.filter((mount) => mount.type === type).flatMap((mount) => idOf(mount) ?? []),
    );
    const ids = type === "secret" ? given.secrets : given.agents;
    return ids
      .filter((id) => !asked.has(id) && !mayServeGit(id))
      .map((id): BuildWarning => {
        const option = type === "secret" ? `--secret id=${id}` : `--ssh ${id}`;
        const meant = nearest(id, asked);
        const advice = meant === undefined ? "" : ` (did you mean ${meant}?)`;
        return {
          rule: "UnusedSecret",
          message: `${option} has no effect: no RUN --mount=type=${type} in ${path} uses it${advice}`,
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
