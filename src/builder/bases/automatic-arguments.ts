import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { type Platform, platformArguments } from "../state/platform.ts";

/** What the automatic arguments tell about a build. */
export interface BuildTarget {
  /** The service's, if an instruction depends on it. */
  platform: Platform | undefined;
  /** `--target` or the name of the last stage. */
  stage: string;
}

/** Returns the automatic arguments. They are set in FROM, and in a stage once an ARG declares them. */
export function automaticArguments({ platform, stage }: BuildTarget): [name: string, value: string][] {
  return [...(platform === undefined ? [] : platformArguments(platform)), ["TARGETSTAGE", stage]];
}

export function isAutomaticArgument(name: string): boolean {
  return name === "TARGETSTAGE" || /^(BUILD|TARGET)(PLATFORM|OS|OSVERSION|ARCH|VARIANT)$/.test(name);
}

/** Returns TARGETSTAGE as BuildKit does: a last stage without a name is `default`. */
export function targetStageName({ stages }: Pick<Dockerfile, "stages">, target: string | undefined): string {
  return target ?? stages.at(-1)?.name ?? "default";
}
