/** Checks options of a bake that no target may have a use for. */
import { usageError } from "../../../errors.ts";
import type { BakeOptions } from "../options/bake-options.ts";
import { type ResolvedTarget, targetPlatforms } from "../resolve.ts";
import { isPush } from "../target-entries.ts";
import { withTarget } from "../target-error.ts";

/** Throws for a `--platform-service` that no target uses, and for a target that needs the image of another service. */
export function requireServices(
  targets: ReadonlyMap<string, ResolvedTarget>,
  { "platform-service": services = new Map() }: BakeOptions,
): void {
  const used = new Set(targets.values().flatMap(({ fields }) => targetPlatforms(fields)));
  for (const [name, { option }] of services)
    if (!used.has(name))
      throw usageError(
        `${option}: no target has the platform ${name}`,
        `--set '*.platform=linux/amd64,${name}' gives each target two platforms.`,
      );
  const profilesOf = ({ fields }: ResolvedTarget): (string | undefined)[] => {
    const profiles = targetPlatforms(fields).map((name) => services.get(name)?.profile);
    return profiles.length === 0 ? [undefined] : profiles;
  };
  for (const target of targets.values())
    for (const need of target.needs) {
      const needed = targets.get(need);
      const has = needed === undefined ? [] : profilesOf(needed);
      if (profilesOf(target).some((profile) => !has.includes(profile)))
        throw withTarget(
          usageError(
            `it is made of the target ${need}, which is built on another service`,
            "Build both for the same platforms, or push the other's image and name it in FROM.",
          ),
          target,
        );
    }
}

/** Throws if there is nothing that `--sign` could sign. */
export function requireSigned(targets: ReadonlyMap<string, ResolvedTarget>, { sign }: BakeOptions): void {
  const isAnyPushed = targets.values().some(({ fields }) => (fields.output ?? []).some(isPush));
  if (sign !== undefined && !isAnyPushed)
    throw usageError("--sign needs an image that is pushed", "Give --push.");
}
