/** Errors for failed instances that say more than the service's result. */
import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { ExpandedCommand } from "../commands/command.ts";
import type { BuildServices } from "../job.ts";
import { lineNamedIn, PlacementError } from "../location.ts";
import { cannotBeStarted } from "../operations/probe-image.ts";
import type { StageState } from "../state/state.ts";

/** Returns an error if the command never ran because of a staged file, which was to be put in place for it. */
export function placementError(
  { status, error, operation }: OperationOutcome,
  command: ExpandedCommand,
  { staged }: Pick<StageState, "staged">,
): PlacementError | undefined {
  if (status !== "FAILED" || error === undefined) return undefined;
  // The error may be about the program itself, which can't be started.
  const [program = ""] = command.form === "exec" ? command.words : [];
  const isProgram = (path: string) => program !== "" && posix.basename(path) === posix.basename(program);
  const line = lineNamedIn(error, new Map([...staged].filter(([path]) => !isProgram(path))));
  return line === undefined ? undefined : new PlacementError(`${error} (operation ${operation})`, line);
}

/** Returns an error if copies from other images have failed, at the line of a staged file in their way, or at their own line. */
export function copyError(
  { status, error, operation }: OperationOutcome,
  line: number,
  { staged }: Pick<StageState, "staged">,
): PlacementError | undefined {
  if (status !== "FAILED" || error === undefined) return undefined;
  return new PlacementError(`${error} (operation ${operation})`, lineNamedIn(error, staged) ?? line);
}

/** Returns an error if a command of bough's own was not started because the image has no shell. */
export function missingOwnShell(
  outcome: OperationOutcome,
  { staged }: Pick<StageState, "staged">,
): PlacementError | undefined {
  if (!cannotBeStarted(outcome)) return undefined;
  const message = `the image has no shell (/bin/sh), which bough needs to make a layer of the staged files (operation ${outcome.operation})`;
  return new PlacementError(message, [...staged.values()].at(-1)?.line, {
    hint: "Start from an image that has a shell, or end with a RUN in exec form of a program that the image has.",
  });
}

/**
 * Returns an error if a command was not started because the image has no shell. Does not ask a service that returned no configuration
 * of the image.
 */
export async function missingShell(
  outcome: OperationOutcome,
  { command, hasMounts }: { command: ExpandedCommand; hasMounts: boolean },
  { layer, staged }: Pick<StageState, "layer" | "staged">,
  { inspection, supports }: BuildServices,
): Promise<BoughError | undefined> {
  if (!cannotBeStarted(outcome)) return undefined;
  const isScripted = hasMounts && !(await supports.mounts()).secrets;
  if (!isScripted && (command.form !== "shell" || !supports.describesImages())) return undefined;
  if (staged.has("/bin/sh") || staged.get("/bin")?.type === "symlink") return undefined;
  if ((await inspection.isFile(layer.image, "/bin/sh")) || !supports.inspection()) return undefined;
  return new BoughError(
    `the image has no shell (/bin/sh) to run this with (operation ${outcome.operation})`,
    {
      hint: isScripted
        ? wording`The service does not support mounts, and bough's replacement needs /bin/sh.${wording` Build on the embedded engine with ${{ option: "local" }}.`}`
        : 'Copy one into the image, or name a program that it has: RUN ["/program", "argument"].',
    },
  );
}
