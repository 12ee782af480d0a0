import { usageError } from "../../errors.ts";
import { abandonable } from "../../service/http/deadline.ts";
import { readAtMost } from "../../streams.ts";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "./runtime.ts";

/** It is sent in one request. */
const maxBytes = 64 * 1024 * 1024;
const noticedMilliseconds = 2000;

/** Reads all of standard input if it is piped, else returns `undefined`. Logs a message if its end takes long to come. */
export async function readPipedInput(runtime: Runtime, log: Log): Promise<Uint8Array | undefined> {
  const { stdin, clock, signal } = runtime;
  if (!stdin.isPiped) return undefined;
  const done = new AbortController();
  clock.sleep(noticedMilliseconds, done.signal).then(
    () => log.info("reading standard input until it ends; use </dev/null if the command reads none"),
    () => undefined,
  );
  try {
    return await abandonable(signal, readAll(stdin.stream()));
  } finally {
    done.abort();
  }
}

async function readAll(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const { bytes, isWhole } = await readAtMost(maxBytes, source);
  if (isWhole) return bytes;
  throw usageError(
    "standard input is larger than 64 MiB, the maximum that can be sent",
    "Give it as a file: --file INPUT:/tmp/input.",
  );
}
