import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { runBough } from "../support/bough.ts";
import { openAnsweringEngine } from "../support/engine.ts";
import type { OrdinaryUser } from "../support/ordinary-user.ts";
import type { Builder } from "./builder.ts";
import { readTree } from "./tree.ts";

/** An engine with an address. */
export interface RunningEngine {
  url: string;
  token: string;
  /** Imports from `source`, a path on this machine. Clients over the network must not do that. */
  importBase(source: string, name: string): Promise<unknown>;
  stop(): Promise<void>;
}

type Answer = (request: Request) => Promise<Response>;

/** Serves an engine from this process, which must be root's. Requests go through `front`. */
export async function serveEngine(
  directory: string,
  front: (engine: Answer) => Answer = (engine) => engine,
): Promise<RunningEngine> {
  const engine = await openAnsweringEngine({
    directory,
    clock: systemClock,
    environment: { PATH: process.env.PATH },
  });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 2 ** 40,
    fetch: front((request) => engine.fetch(request)),
  });
  const url = server.url.href;
  const token = "not-asked-for";
  return {
    url,
    token,
    importBase: (source, name) =>
      runCommand(["--url", url, "--token", token, "images", "import", source, "--tag", name], directory),
    async stop() {
      await engine.close();
      await server.stop(true);
    },
  };
}

/** Starts `bough serve` of the compiled program as an ordinary user. */
export async function serveEngineAs(user: OrdinaryUser): Promise<RunningEngine> {
  const bough = user.giveBough();
  const start = (words: readonly string[]) => {
    const environment = ["env", "-i", `PATH=${process.env.PATH}`, `HOME=${user.home}`];
    return Bun.spawn([...user.prefix, ...environment, bough, "--format", "json", ...words], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  };
  const server = start(["serve"]);
  const { value } = await server.stdout.getReader().read();
  if (value === undefined) throw new Error(`bough serve: ${await new Response(server.stderr).text()}`);
  const { url, token } = JSON.parse(new TextDecoder().decode(value)) as { url: string; token: string };
  return {
    url,
    token,
    async importBase(source, name) {
      const [transport = "", path = "", tag] = source.split(":");
      const copy = [transport, user.give(path, `base-${name.replace(":", "-")}`), ...(tag ? [tag] : [])].join(
        ":",
      );
      const child = start(["images", "import", copy, "--tag", name]);
      const stderr = await new Response(child.stderr).text();
      if ((await child.exited) !== 0) throw new Error(`bough images import ${copy}: ${stderr}`);
    },
    async stop() {
      server.kill("SIGINT");
      await server.exited;
    },
  };
}

/** Runs the command line in this process on an engine, with its state in `directory`. */
export function makeBough(engine: RunningEngine, directory: string): Builder {
  mkdirSync(directory, { recursive: true });
  const { url, token } = engine;
  return {
    importBase: (source, name) => engine.importBase(source, name),

    async build({ context, dockerfile, buildArgs, options = [] }) {
      const given = Object.entries(buildArgs).flatMap(([key, value]) => ["--build-arg", `${key}=${value}`]);
      const words = [
        "--url",
        url,
        "--token",
        token,
        "build",
        context,
        "--dockerfile",
        dockerfile,
        ...given,
        ...options,
      ];
      return (JSON.parse(await runCommand(words, directory)) as { image: string }).image;
    },

    async readImage(image) {
      const response = await fetch(new URL(`/v1/inspect/${image}/archive?path=/`, url), {
        // Compressing a whole image takes longer than building it.
        headers: { Authorization: `Bearer ${token}`, "Accept-Encoding": "identity" },
      });
      if (!response.ok || response.body === null)
        throw new Error(`${response.status} ${await response.text()}`);
      return readTree(response.body);
    },

    close: () => engine.stop(),
  };
}

/** Returns the standard output; rejects with the log. */
async function runCommand(words: readonly string[], directory: string): Promise<string> {
  const { exitCode, stdout, stderr } = await runBough(["--format", "json", ...words], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: join(directory, "state") },
  });
  if (exitCode !== 0) throw new Error(`bough ${words.join(" ")}\n${stderr}`);
  return stdout;
}
