import { BoughError } from "../../errors.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { BuildServices } from "../job.ts";
import { cannotBeStarted } from "../operations/ask-image.ts";
import type { StageState } from "../state/state.ts";
import type { Step } from "./step.ts";

/**
 * Returns an error if a command was not started because the image has no shell, so that a shell in the image is impossible, too.
 * Does not ask a service that returned no configuration of the image.
 */
export async function missingShell(
  outcome: OperationOutcome,
  { command, mounts }: Pick<Step, "command" | "mounts">,
  { layer, staged }: Pick<StageState, "layer" | "staged">,
  { facts, supports }: BuildServices,
): Promise<BoughError | undefined> {
  if (!cannotBeStarted(outcome)) return undefined;
  const isScripted = mounts !== undefined && !(await supports.mounts()).secrets;
  if (!isScripted && (command.form !== "shell" || !supports.describesImages())) return undefined;
  if (staged.has("/bin/sh") || staged.get("/bin")?.type === "symlink") return undefined;
  if ((await facts.isFile(layer.image, "/bin/sh")) || !supports.inspection()) return undefined;
  return new BoughError(
    `the image has no shell (/bin/sh) to run this with (operation ${outcome.operation})`,
    {
      hint: isScripted
        ? "The service does not support mounts, and bough's replacement needs /bin/sh. Build on the embedded engine with --local."
        : 'Copy one into the image, or name a program that it has: RUN ["/program", "argument"].',
    },
  );
}
