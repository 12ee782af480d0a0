import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { redactUrl } from "../../builder/addresses/source-url.ts";
import { fetchContent, sourceFault, watched, withRetries } from "../../builder/remote-files/fetch-url.ts";
import type { RemoteAccess } from "../../builder/remote-files/remote-access.ts";
import { decodeDockerfile } from "../../dockerfile/text/decode.ts";
import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { rejectOnAbort } from "../../service/http/deadline.ts";
import type { Log } from "../../terminal/log.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { contextGroup } from "./context-group.ts";
import type { FetchedContext } from "./fetched-context.ts";
import { openTree } from "./fetched-tree.ts";
import type { KeptContexts } from "./kept-contexts.ts";
import { createDecompress } from "./programs.ts";
import { unpackContext } from "./unpack-context.ts";

export interface FetchDependencies {
  access: RemoteAccess;
  contexts: KeptContexts;
  log: Log;
  runtime: Pick<Runtime, "stdin" | "inputs" | "environment" | "workingDirectory">;
  /** The phrase for content that is not an archive but a text (default: `a Dockerfile`). */
  textKind?: string | undefined;
}

/** Downloads an archive of the context's files, or a Dockerfile that is built without any. */
export function fetchFromUrl(url: string, fetching: FetchDependencies): Promise<FetchedContext> {
  const { access, log } = fetching;
  if (!URL.canParse(url)) throw usageError(`the build context ${redactUrl(url)}: invalid address`);
  const shown = redactUrl(url, access.buildArgs);
  const name = `${access.subject} ${shown}`;
  log.info(`downloading ${shown}`);
  return download(url, access, (content) => keep(content, { shown, name, location: shown }, fetching));
}

/** Downloads a URL, and calls `use` with the content, once for each attempt. */
export function download<Result>(
  url: string,
  access: RemoteAccess,
  use: (content: AsyncIterable<Uint8Array>, headers: Headers) => Promise<Result>,
): Promise<Result> {
  return withRetries(access, false, async () => {
    const hint =
      "Check that the address is right and that this machine may access it. The address of a git repository ends in .git.";
    const { body, headers } = await fetchContent(url, access, hint);
    const content = watched(body, access);
    try {
      return await use(content, headers);
    } catch (error) {
      throw sourceFault(url, error, access);
    } finally {
      // Ends the response if an error occurred before it was read.
      content.cancel().catch(() => undefined);
    }
  });
}

/** The time to wait for a signal after a failed read: Ctrl-C also ends the program that writes to standard input, maybe first. */
const interruptionMilliseconds = 50;

/** Reads an archive or a Dockerfile from standard input. The session is that of the path `-`. */
export async function readFromStdin(fetching: FetchDependencies): Promise<FetchedContext> {
  const { clock, signal } = fetching.access;
  const { stdin, inputs, workingDirectory } = fetching.runtime;
  if (!stdin.isPiped)
    throw usageError(
      "the build context is read from standard input, and nothing is piped in",
      wording`Pipe in a tar archive of the context or a Dockerfile: ${{ command: "build", words: ["-"], isLine: true }} < context.tar`,
    );
  const content = interruptible(inputs.takeStandardInput("the build context"), signal);
  const location = resolve(workingDirectory, "-");
  try {
    return await keep(content, { shown: "-", name: "standard input", location }, fetching);
  } catch (error) {
    await clock.sleep(interruptionMilliseconds, signal);
    throw error;
  }
}

async function keep(
  content: AsyncIterable<Uint8Array>,
  { shown, name, location }: { shown: string; name: string; location: string },
  { access, contexts, log, runtime, textKind }: FetchDependencies,
): Promise<FetchedContext> {
  const group = contextGroup(location);
  using started = contexts.begin(group);
  const { sha256, bytes } = await unpackContext(content, started.path, {
    name,
    maxBytes: access.maxAddBytes,
    signal: access.signal,
    textKind,
    decompress: createDecompress(runtime.environment.PATH),
  });
  const held = started.keep(sha256);
  const dockerfile = readIfThere(join(held.path, "Dockerfile"));
  const what =
    dockerfile === undefined ? access.subject : (textKind ?? "a Dockerfile without a build context");
  log.info(`${what} came from ${shown === "-" ? name : shown} (${formatBytes(bytes)}, sha256:${sha256})`);
  const text = dockerfile === undefined ? {} : { dockerfile };
  return { held, ...openTree(held.path), location, name, shown, sha256, ...text };
}

function readIfThere(path: string): string | undefined {
  try {
    return decodeDockerfile(readFileSync(path));
  } catch {
    return undefined;
  }
}

/** Yields the chunks of a stream. Rejects as soon as the signal is aborted, even if no data comes. */
async function* interruptible(
  stream: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const chunks = stream[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await rejectOnAbort(signal, chunks.next());
    if (done === true) return;
    yield value;
  }
}
