import { describeMissing, type MissingPart } from "../../builder/state/warnings.ts";
import { BoughError } from "../../errors.ts";
import type { Values } from "../command-line/arguments.ts";
import type { BuildOutput } from "../export/build-outputs.ts";

/**
 * Throws if an image that lacks a part of Docker's would leave this machine, unless `--no-docker` asks for it. The settings of an
 * image count only where they are written.
 */
export function requireCompleteImage(
  missing: readonly MissingPart[],
  outputs: readonly BuildOutput[],
  values: Pick<Values, "flag">,
): void {
  if (values.flag("no-docker")) return;
  const kinds = outputs.flatMap(({ destinations }) => destinations.map(({ kind }) => kind));
  const hasSettings = kinds.some((kind) => !["local", "tar"].includes(kind));
  const counted = missing.filter(({ what }) => hasSettings || !["CMD", "ENTRYPOINT"].includes(what));
  if (kinds.length === 0 || counted.length === 0) return;
  const [option, does] = values.flag("push") ? ["--push", "pushes"] : ["--output", "writes"];
  throw new BoughError(`${option} is refused: the image lacks ${describeMissing(counted)}`, {
    kind: "usage",
    hint: `With --docker it is built as Docker does; BOUGH_DOCKER=1 makes that the default. --no-docker ${does} it as it is.`,
  });
}
