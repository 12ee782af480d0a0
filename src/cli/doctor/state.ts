import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/state-directory.ts";
import { openLocalStore } from "../service/connection.ts";
import { type CheckResult, failedCheck } from "./check-result.ts";

/** The free space below which doctor warns: a build soon uses it up. */
const littleRoomBytes = 1_000_000_000;

/** Checks that bough can keep its state. Opens the database of the service in use, as every command does. */
export function checkState(runtime: Runtime, globals: GlobalOptions, hasService: boolean): CheckResult {
  const check = "state directory";
  const directory = stateDirectory(runtime);
  try {
    makeWritable(directory);
    if (hasService) openLocalStore(runtime, globals).close();
    const { mode, uid } = statSync(directory);
    const isForeign = runtime.userId !== undefined && uid !== runtime.userId && uid !== 0;
    const isOpen = runtime.userId !== undefined && (mode & 0o1002) === 0o002;
    if (isForeign || isOpen) {
      const how = isForeign ? `it belongs to uid ${uid}` : `mode 0${(mode & 0o7777).toString(8)}`;
      const fix = isForeign ? "Set BOUGH_HOME to a directory of your own." : `chmod o-w ${directory}`;
      const detail = `other users of this machine can write to ${directory} (${how})`;
      return { check, status: "warning", detail, fix };
    }
    const { bavail, bsize } = statfsSync(directory);
    const detail = `${directory}, ${formatBytes(bavail * bsize)} free`;
    if (bavail * bsize >= littleRoomBytes) return { check, status: "ok", detail };
    const fix =
      "Free space on the disk (`bough engine prune`), or set BOUGH_HOME to a directory on another one.";
    return { check, status: "warning", detail, fix };
  } catch (error) {
    return failedCheck(check, error);
  }
}

function makeWritable(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    accessSync(directory, constants.W_OK);
  } catch (error) {
    throw new BoughError(`${directory} cannot be written to: ${reasonOf(error)}`, {
      hint: "Set BOUGH_HOME to a directory of your own.",
      cause: error,
    });
  }
}
