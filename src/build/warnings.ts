import { displayPath } from "../context/display-path.ts";
import type { Mount, SkippedName } from "../dockerfile/instruction.ts";

/** What a build has to say of a Dockerfile; a check says the same in the same words. */
export interface BuildWarning {
  /** Its name for `# check=skip=`. */
  rule:
    | "ArchiveNotUnpacked"
    | "CopyFromSkipped"
    | "InstructionSkipped"
    | "MountLeftOut"
    | "UndefinedVar"
    | "UnusedBuildArg";
  message: string;
}

export function skippedInstruction(name: SkippedName): BuildWarning {
  const reason = skipReasons[name] ?? "an image of this service carries no such setting";
  return { rule: "InstructionSkipped", message: `${name} is skipped: ${reason}` };
}

const skipReasons: Partial<Record<SkippedName, string>> = {
  SHELL: "every shell-form RUN goes through /bin/sh",
  ONBUILD: "no image inherits its triggers here",
};

export function skippedCopyFrom(from: string): BuildWarning {
  const message = `COPY --from=${from} is skipped: builds of several stages are not supported yet`;
  return { rule: "CopyFromSkipped", message };
}

export function leftOutMount({ type, target }: Mount): BuildWarning {
  const place = target === undefined ? "its directory" : target;
  const message = `RUN --mount=type=${type} is run without the mount: ${place} becomes part of the layer`;
  return { rule: "MountLeftOut", message };
}

export function copiedArchive(source: string): BuildWarning {
  const message = `ADD ${source}: the archive is copied as it is, not unpacked as Docker would; unpack it in a RUN`;
  return { rule: "ArchiveNotUnpacked", message };
}

const maxExcludedNamed = 4;

/** `paths` in the context, the most surprising first. */
export function describeExcluded(paths: readonly string[]): string {
  const named = paths.slice(0, maxExcludedNamed).map(displayPath);
  const more = paths.length - named.length;
  const names = named.join(", ") + (more === 0 ? "" : ` and ${more} more`);
  return `left out by default excludes: ${names} (--no-default-excludes copies them)`;
}
