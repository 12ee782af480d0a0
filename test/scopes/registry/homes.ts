/** Machines with empty homes, each with its embedded engine, that share a cache in a registry or a directory. */
import { cpSync, rmSync } from "node:fs";
import { type BoughOptions, type Ended, runBough, temporaryDirectory } from "../../support/bough.ts";

export interface Home {
  context: string;
  home: string;
}

export interface Built extends Ended {
  /** The steps that ran, sorted: stages run at once. */
  runs: string[];
  /** Methods and addresses of the requests to registries, in order. */
  requests: string[];
  /** Bytes of the bodies that came from registries. */
  receivedBytes: number;
  image: string | undefined;
}

export function newHome(): Home {
  return { context: temporaryDirectory(), home: temporaryDirectory() };
}

/** Replaces the context by a copy of the files in `source`, as a new checkout does. */
export function placeFiles({ context }: Pick<Home, "context">, source: string): void {
  rmSync(context, { recursive: true });
  cpSync(source, context, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
}

/** Builds a copy of the files in `source`. */
export async function buildIn(
  { context, home }: Home,
  source: string,
  words: readonly string[],
  { environment, ...options }: Partial<BoughOptions> = {},
): Promise<Built> {
  placeFiles({ context }, source);
  const requests: string[] = [];
  let receivedBytes = 0;
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  const ended = await runBough(["--local", "-f", "json", "build", context, ...words], {
    workingDirectory: context,
    environment: { BOUGH_HOME: home, ...environment },
    ...options,
    fetch: async (input, init) => {
      const { method, url } = input instanceof Request ? input : new Request(input, init);
      requests.push(`${method} ${new URL(url).pathname}`);
      const response = await send(input, init);
      if (response.body === null) return response;
      const body = response.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            receivedBytes += chunk.byteLength;
            controller.enqueue(chunk);
          },
        }),
      );
      return new Response(body, response);
    },
  });
  const runs = [...ended.stderr.matchAll(/ spawned op=\S+ (.*)$/gm)].map(([, title = ""]) => title).sort();
  const image = ended.exitCode === 0 ? (JSON.parse(ended.stdout).image as string) : undefined;
  return { ...ended, runs, requests, receivedBytes, image };
}
