import type { Dockerfile, Stage } from "../dockerfile/instruction.ts";
import type { Finding } from "./finding.ts";
import { lintBaseImages } from "./lints/base-images.ts";
import { lintCasing } from "./lints/casing.ts";
import { lintCommands } from "./lints/commands.ts";
import { lintDescriptions } from "./lints/descriptions.ts";
import { lintExpose } from "./lints/expose.ts";
import { lintSecrets } from "./lints/secrets.ts";
import { lintStageNames } from "./lints/stage-names.ts";

/** A family of lints that need nothing but the Dockerfile. */
type Lint = (dockerfile: Dockerfile, stages: readonly Stage[]) => Finding[];

const lints: readonly Lint[] = [
  lintBaseImages,
  lintCasing,
  lintCommands,
  lintDescriptions,
  lintExpose,
  lintSecrets,
  lintStageNames,
];

/** Returns the findings about a Dockerfile's text. The plan has those about the expanded words. */
export function lintDockerfile(dockerfile: Dockerfile): Finding[] {
  return [...dockerfile.warnings, ...lints.flatMap((lint) => lint(dockerfile, dockerfile.stages))];
}
