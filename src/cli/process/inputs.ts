/**
 * Reads the files that options and arguments name: files, pipes (also a shell's `<(...)`), devices, and `-` for standard input. Each
 * is read completely, or is an error. `input-source.ts`, which reads them, is loaded only then.
 */
import { usageError } from "../../errors.ts";
import type { InputSource } from "./input-source.ts";

export interface ReadOptions {
  /** The maximum size. A larger input is an error. */
  maxBytes: number;
  signal: AbortSignal;
  /** True to accept an empty pipe, for readers that report themselves what is missing. */
  mayBeEmpty?: boolean;
}

export interface Inputs {
  /**
   * Reads the file of an absolute path, or `-`. A pipe is read only once: later calls return the same bytes. Rejects with the error of
   * a system call, or with a BoughError of kind `usage`; neither contains the path.
   */
  read(path: string, options: ReadOptions): Promise<Buffer>;
  /**
   * Returns standard input for a single reader, which reads it in parts, or later. From now on, nothing else can read it.
   *
   * @param use what standard input contains, such as `the build context`
   * @throws BoughError of kind `usage` if something else reads it
   */
  takeStandardInput(use: string): AsyncIterable<Uint8Array>;
  /** True if standard input has been read because an option names it. */
  readonly hasReadStandardInput: boolean;
  /** Returns inputs that refuse pipes, for paths that do not come from the command line. `isNamed` returns true for paths that do. */
  withoutPipes(isNamed?: (path: string) => boolean): Inputs;
}

const standardInput = "standard input";

export function createInputs(stdin: { stream(): AsyncIterable<Uint8Array> }): Inputs {
  const streams = new Map<string, Promise<Buffer>>();
  let taken: string | undefined;

  async function readStream(
    source: Exclude<InputSource, { kind: "file" }>,
    path: string,
    maxBytes: number,
  ): Promise<Buffer> {
    const isStandard = source.kind === standardInput;
    if (isStandard && taken !== undefined)
      throw usageError(`standard input is ${taken}, and can't be this, too`);
    const { readAll, readOpened } = await import("./input-source.ts");
    const key = isStandard ? standardInput : source.key;
    const reading =
      streams.get(key) ??
      (isStandard ? readAll(stdin.stream(), maxBytes) : readOpened(source.descriptor, path, maxBytes));
    streams.set(key, reading);
    return reading;
  }

  const view = (readsPipe: (path: string) => boolean): Inputs => ({
    async read(path, { maxBytes, signal, mayBeEmpty = false }) {
      const { findSource, readFile, whileNotAborted } = await import("./input-source.ts");
      const source = await findSource(path);
      if (source.kind !== "file" && !readsPipe(path)) throw usageError("it is not a regular file");
      const reading =
        source.kind === "file" ? readFile(source, path, maxBytes) : readStream(source, path, maxBytes);
      const bytes = await whileNotAborted(signal, reading);
      if (bytes.byteLength > maxBytes) throw usageError(`it is larger than ${maxBytes} bytes`);
      if (bytes.byteLength > 0 || mayBeEmpty || source.kind === "file") return bytes;
      throw usageError(
        source.kind === standardInput
          ? "standard input is empty"
          : "it is empty: nothing was written to the pipe",
      );
    },
    takeStandardInput(use) {
      const other = taken ?? (streams.has(standardInput) ? "read by another option" : undefined);
      if (other !== undefined) throw usageError(`standard input can't be ${use}: it is ${other}`);
      taken = use;
      return stdin.stream();
    },
    get hasReadStandardInput() {
      return streams.has(standardInput);
    },
    withoutPipes: (isNamed = () => false) => view((path) => readsPipe(path) && isNamed(path)),
  });
  return view(() => true);
}
