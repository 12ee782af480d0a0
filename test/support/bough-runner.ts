/** The process of `user-bough.ts`: each line of its standard input is a command line, each line of its output how one ended. */
import { runBough } from "./bough.ts";
import type { Request, Response } from "./user-bough.ts";

for await (const line of console) void answer(JSON.parse(line));

async function answer({ id, words, options }: Request): Promise<void> {
  const response: Response = { id, ended: await runBough(words, options) };
  process.stdout.write(`${JSON.stringify(response)}\n`);
}
