import { displayPath } from "../../context/file-system/display-path.ts";
import type { ConfigurationInstruction } from "../../dockerfile/instruction.ts";
import { type Message, wording } from "../../messages/wording.ts";

/** A warning about a Dockerfile, which a build and a check report in the same words. */
export interface BuildWarning {
  /** Its name for `# check=skip=`. */
  rule:
    | "ArchiveNotUnpacked"
    | "CopyFromSkipped"
    | "EmptySetting"
    | "InstructionSkipped"
    | "MistypedStage"
    | "UndefinedVar"
    | "UnusedBuildArg"
    | "UnusedNoCacheFilter"
    | "UnusedSecret";
  message: Message;
  /** The name that it is about, if an instruction can have several such warnings, or if it is about no line. */
  subject?: string;
  /** Set if the image lacks files for this reason, which Docker's has: their name. */
  leavesOut?: string;
  /** The instruction that is skipped. */
  skipped?: ConfigurationInstruction["name"];
}

export function skippedInstruction(name: ConfigurationInstruction["name"]): BuildWarning {
  const remedy = skipRemedies[name] ?? wording`only a build with ${{ option: "docker" }} keeps it`;
  return { rule: "InstructionSkipped", message: wording`${name} is skipped: ${remedy}`, skipped: name };
}

const skipRemedies: Partial<Record<ConfigurationInstruction["name"], Message>> = {
  SHELL: wording`every shell-form RUN goes through /bin/sh, unless built with ${{ option: "docker" }}`,
  ONBUILD: wording`only a build with ${{ option: "docker" }} runs triggers`,
};

/** Returns true if a warning means that the image differs from what the Dockerfile asks for. */
export function changesImage({ rule, skipped }: { rule?: string; skipped?: string }): boolean {
  return skipped === "SHELL" || (rule !== undefined && imageRules.includes(rule));
}

const imageRules = ["ArchiveNotUnpacked", "CopyFromSkipped", "DefaultExclude"];

export function skippedCopyFrom(from: string): BuildWarning {
  const message = wording`COPY --from=${from} is skipped: only a build with ${{ option: "docker" }} copies between stages`;
  return { rule: "CopyFromSkipped", message };
}

export function copiedArchive(source: string): BuildWarning {
  const message = wording`ADD ${source}: the archive is copied unchanged, not unpacked as in Docker: ADD --unpack or a build with ${{ option: "docker" }} unpacks it`;
  const leavesOut = `the files in ${displayPath(source)}`;
  return { rule: "ArchiveNotUnpacked", message, subject: source, leavesOut };
}

export const emptyWorkdir: BuildWarning = {
  rule: "EmptySetting",
  message: "WORKDIR is empty after its variables are replaced, so it changes nothing, as in Docker",
};

export const emptyUser: BuildWarning = {
  rule: "EmptySetting",
  message: "USER is empty after its variables are replaced, so it means root, as in Docker",
};

export const emptyRun: BuildWarning = {
  rule: "EmptySetting",
  message: "RUN has no command: a shell is started with nothing to do, as in Docker",
};

const maxExcludedNamed = 4;

/** Describes `paths` in the context, the most surprising first. */
export function describeExcluded(paths: readonly string[]): Message {
  const named = paths.slice(0, maxExcludedNamed).map(displayPath);
  const more = paths.length - named.length;
  const names = named.join(", ") + (more === 0 ? "" : ` and ${more} more`);
  return wording`left out by default excludes: ${names} (${{ option: "no-default-excludes" }} copies them)`;
}

/** A part of Docker's image that a build without `--docker` leaves out. */
export interface MissingPart {
  /** An instruction such as `CMD`, or files. */
  what: string;
  line: number;
}

/** `COPY --from (lines 3, 14), ENTRYPOINT (line 18) and CMD (line 19)` */
export function describeMissing(parts: readonly MissingPart[]): string {
  const named = [...Map.groupBy(parts, ({ what }) => what)].map(([what, all]) => {
    const lines = [...new Set(all.map(({ line }) => line))];
    return `${what} (${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")})`;
  });
  const last = named.pop() ?? "";
  return named.length === 0 ? last : `${named.join(", ")} and ${last}`;
}
