/**
 * What this process reads because an option or argument names it: a file, a pipe (also a shell's `<(...)`), a device, or `-` for
 * standard input. It arrives whole, or is an error. `input-source.ts` reads it, and is loaded only then.
 */
import { usageError } from "../../errors.ts";
import type { InputSource } from "./input-source.ts";

export interface ReadOptions {
  /** More is an error. */
  maxBytes: number;
  signal: AbortSignal;
  /** True if a pipe that ends without a byte is no error here: what reads the text says what is missing. */
  mayBeEmpty?: boolean;
}

export interface Inputs {
  /**
   * Reads what an absolute path, or `-`, names. A pipe is read once: whoever names it again gets the same. Rejects with the error of
   * a system call, or with a BoughError of kind `usage`; neither names the path.
   */
  read(path: string, options: ReadOptions): Promise<Buffer>;
  /**
   * Gives standard input to one reader, for what is too large to be held, or is read later. Nothing else can read it then.
   *
   * @param use what it is, such as `the build context`
   * @throws BoughError of kind `usage` if something else reads it
   */
  takeStandardInput(use: string): AsyncIterable<Uint8Array>;
  /** True if an option has named standard input, so that nothing is left of it. */
  readonly hasReadStandardInput: boolean;
  /** Returns the same without pipes, for names that nobody has given on the command line: except what `isNamed` is true for. */
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
