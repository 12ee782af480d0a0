import type { FailedStart, RuntimeWords, Start } from "./runtime.ts";

/** The beginning of crun's message if the kernel refuses to run the command after crun has handed over to it. */
const refusals = { run: Buffer.from('{"msg":"exec container process '), exec: Buffer.from("exec: ") };

/** Translates crun's messages about a command that it can't start to runc's wording. crun's messages have no common prefix. */
export class CrunWords implements RuntimeWords {
  readonly #start: Start;

  constructor(start: Start) {
    this.#start = start;
  }

  mayBegin(held: Buffer): boolean {
    const refusal = refusals[this.#start.as];
    const length = Math.min(refusal.length, held.length);
    return held.subarray(0, length).equals(refusal.subarray(0, length)) || !this.#start.hasStarted();
  }

  explain(error: string): FailedStart {
    const { program } = this.#start;
    const isPath = program.includes("/");
    const failed = (exitCode: 126 | 127, reason: string): FailedStart => {
      return { kind: "command", exitCode, message: `exec: "${program}": ${reason}` };
    };
    const missing = failed(127, "executable file not found in $PATH");
    if (error.startsWith("executable file `"))
      return isPath ? failed(127, `stat ${program}: no such file or directory`) : missing;
    const [, problem] = /^open executable: (.*)$/s.exec(error) ?? [];
    if (problem !== undefined && !isPath) return missing;
    if (problem !== undefined)
      return failed(
        126,
        problem === "Not a directory" ? `stat ${program}: not a directory` : "permission denied",
      );
    const [, refused] = /^exec: (.*)$/s.exec(error) ?? [];
    if (refused !== undefined)
      return { kind: "command", exitCode: 1, message: `exec ${program}: ${refused.toLowerCase()}` };
    // The kernel's reason, which other programs print in lower case.
    return { kind: "sandbox", message: error.replace(/: [A-Z][a-z ]+$/, (reason) => reason.toLowerCase()) };
  }

  translate(held: Buffer): Buffer | undefined {
    const [, program, reason] =
      /^\{"msg":"exec container process (?:\(missing dynamic library\?\) )?`(.*)`: ([^"]*)","level":"error","time":"[^"]*"\}\n$/.exec(
        held.toString(),
      ) ?? [];
    if (program === undefined || reason === undefined) return undefined;
    return Buffer.from(`exec ${program}: ${reason.toLowerCase()}\n`);
  }
}
