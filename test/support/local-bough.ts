import { type Ended, runBough, temporaryDirectory } from "./bough.ts";
import { makeBusyboxLayout } from "./busybox-image.ts";

/** Runs bough on the embedded engine, in a working directory. */
type LocalBough = (workingDirectory: string, ...words: string[]) => Promise<Ended>;

/** Returns bough with a state for all tests of a file, in which a busybox image has the tag `base:1`. */
export async function openLocalBough(): Promise<LocalBough> {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const bough: LocalBough = (workingDirectory, ...words) =>
    runBough(["--local", ...words], { workingDirectory, environment });
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const { exitCode, stderr } = await bough("/", "images", "import", layout, "--tag", "base:1");
  if (exitCode !== 0) throw new Error(stderr);
  return bough;
}
