import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import type { BuildJob } from "../job.ts";
import { parentDirectories, pathInImage } from "../state/path-in-image.ts";
import type { StageState } from "../state/state.ts";
import { type Destination, namesDirectory } from "./destination.ts";

/**
 * Warns of `--link` where it makes a difference. Docker's own builder ignores the flag, as bough does. BuildKit, which can link
 * layers, does not look at the image: it replaces links by directories and a directory by a file. `found`: the destination, if
 * known.
 */
export async function warnOfLinking(
  { link, range: { start: line } }: CopyInstruction | AddInstruction,
  { destination, found, isFile }: { destination: string; found?: Destination; isFile: boolean },
  { layer, staged, config }: StageState,
  { services, emit, asked }: BuildJob,
): Promise<void> {
  if (link !== true || !asked.dialect.copiesAsBuildKit) return;
  const path = pathInImage(config.WorkingDir, destination);
  const warn = (what: string, advice: string) => {
    const message = `--link: ${what}, as in Docker's own builder; BuildKit replaces it if it links layers: ${advice}`;
    emit({ type: "warning", message, line });
  };
  const isWord = !namesDirectory(destination);
  for (const at of [...parentDirectories(path), ...(isWord ? [] : [path])]) {
    const entry = staged.get(at);
    const target =
      entry === undefined
        ? await services.facts.readLink(layer.image, at)
        : entry.type === "symlink"
          ? entry.target
          : undefined;
    if (target !== undefined) return warn(`${at} is a link, which is followed`, "name its target");
  }
  if (isFile && isWord && found?.isDirectory === true && path !== "/")
    warn(`${path} is a directory, so the file is put into it`, `write ${path}/`);
}
