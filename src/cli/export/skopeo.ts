import { findPolicy } from "../../engine/import/signature-policy.ts";
import { lastWords } from "../../engine/import/tool.ts";
import { findProgram, helperEnvironment } from "../../engine/system/programs.ts";
import { isInUserNamespace } from "../../engine/system/user-namespace.ts";
import { BoughError } from "../../errors.ts";
import { endHelper, startHelper } from "../../programs/helper.ts";
import { readLines } from "../../streams.ts";
import type { Runtime } from "../process/runtime.ts";

interface SkopeoJob {
  /** A directory for skopeo's temporary files. */
  directory: string;
  onStart?: (pid: number) => void;
  runtime: Runtime;
}

/** Has skopeo copy an image. `onLine` is called with each line that skopeo prints. */
export async function copyImage(
  options: readonly string[],
  [from, to]: readonly [from: string, to: string],
  { onLine, ...job }: SkopeoJob & { onLine: (line: string) => void },
): Promise<void> {
  await runSkopeo([...options, from, to], job, (output) => relay(output, onLine));
}

/**
 * Runs skopeo, with the credentials that it finds, such as those of `docker login` or `skopeo login`. Returns what `read` makes of
 * its standard output.
 */
export async function runSkopeo<Result>(
  words: readonly string[],
  { directory, onStart, runtime }: SkopeoJob,
  read: (output: ReadableStream<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const { environment, signal } = runtime;
  signal.throwIfAborted();
  const command = [
    findProgram("skopeo", environment),
    ...["--tmpdir", directory],
    ...(findPolicy(environment) === undefined ? ["--insecure-policy"] : []),
    ...words,
  ];
  // Without this, skopeo looks for credentials in root's directory, which in a user namespace belongs to another user.
  const own = isInUserNamespace() ? { XDG_RUNTIME_DIR: directory } : {};
  const skopeo = startHelper(command, { environment: { ...own, ...helperEnvironment(environment) } });
  const kill = () => endHelper(skopeo);
  signal.addEventListener("abort", kill, { once: true });
  try {
    onStart?.(skopeo.pid);
    const [result, said, status] = await Promise.all([
      read(skopeo.stdout),
      new Response(skopeo.stderr).text(),
      skopeo.exited,
    ]);
    signal.throwIfAborted();
    if (status !== 0) throw new BoughError(`skopeo: ${lastWords(said) || `exited with code ${status}`}`);
    return result;
  } finally {
    signal.removeEventListener("abort", kill);
    endHelper(skopeo);
  }
}

async function relay(output: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  for await (const line of readLines(output)) {
    // The progress of layers is reported in bytes, elsewhere.
    if (line.trim() !== "" && !line.startsWith("Copying blob")) onLine(line.trim());
  }
}
