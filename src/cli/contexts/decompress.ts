import type { BuildJob } from "../../builder/job.ts";
import { BoughError } from "../../errors.ts";

const packages = { bzip2: "bzip2", xz: "xz-utils" } as const;

/** Decompresses formats that Bun does not support, with the machine's programs. */
export function createDecompress(PATH: string | undefined): BuildJob["decompress"] {
  return (compression, content, name) => {
    const program = Bun.which(compression, PATH === undefined ? {} : { PATH });
    if (program !== null) return pass([program, "-dc"], content, name);
    throw new BoughError(`${name} is compressed with ${compression}, but that program is not installed`, {
      kind: "usage",
      hint: `Install it: apt-get install ${packages[compression]}; or copy the archive unchanged, with --unpack=false.`,
    });
  };
}

async function* pass(
  command: readonly string[],
  content: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array> {
  // Loaded only for such an archive.
  const { endHelper, startHelper } = await import("../../engine/system/helper.ts");
  const helper = startHelper(command, { environment: {} });
  const fed = feed(helper.stdin, content);
  // Awaited below: until then, this prevents an unhandled rejection.
  fed.catch(() => undefined);
  const said = new Response(helper.stderr).text();
  try {
    for await (const chunk of helper.stdout) yield chunk;
    await fed;
    if ((await helper.exited) !== 0) throw new BoughError(`${name} is damaged: ${(await said).trim()}`);
  } finally {
    endHelper(helper);
  }
}

async function feed(input: Bun.FileSink, content: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of content) {
      // Returns a number, or a promise that rejects if the program has exited.
      await input.write(chunk);
      await input.flush();
    }
  } finally {
    await input.end();
  }
}
