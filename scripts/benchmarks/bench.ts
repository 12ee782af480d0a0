/** The tools of every case: directories, a compiled bough, a service. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Command, run } from "./measure.ts";

/** One line of the table. */
export interface Row {
  case: string;
  /** The results of bough and of what it is compared with, as text. */
  bough: string;
  against: string;
  /** The value that the goal limits. */
  figure: number;
  unit: string;
  goal: Goal;
}

export type Goal = { atMost: number } | { atLeast: number };

export interface Service {
  url: string;
  stats(): Promise<ServiceStats>;
  reset(): Promise<void>;
}

interface ServiceStats {
  requests: Record<string, number>;
  connections: number;
  handlerMilliseconds: number;
  /** The number of different contents received, and of contents received again. */
  contents: number;
  repeated: number;
  sentBytes: number;
}

export function requestsRow(
  name: string,
  requests: ServiceStats["requests"],
  { against, atMost }: { against: string; atMost: number },
): Row {
  const figure = Object.values(requests).reduce((sum, each) => sum + each, 0);
  const bough = Object.keys(requests).join(", ");
  return { case: name, bough, against, figure, unit: "requests", goal: { atMost } };
}

export interface Bench {
  /** A new, empty directory. */
  directory(name: string): string;
  startService(...options: string[]): Promise<Service>;
  /** Returns the service at the far end of a line: `roundTrip` milliseconds, without a limit of bandwidth unless one is given. */
  putFarAway(service: Service, roundTrip: number, megabits?: number): Promise<Service>;
  /** Returns the command of `bough build`. On a service, each context has its own state directory. */
  build(context: string, service: Service | "engine", ...words: string[]): Command;
  /** The compiled program's path. */
  bough: string;
  /** The number of runs of each side of a comparison. */
  times: number;
  /** Adds an action for `close`. */
  atEnd(action: () => Promise<void>): void;
  close(): Promise<void>;
}

export function openBench(times: number): Bench {
  const root = mkdtempSync(join(tmpdir(), "bough-bench-"));
  const bough = resolve("dist/bough");
  const children: Bun.Subprocess[] = [];
  const start = async (...words: string[]) => {
    const child = Bun.spawn([process.execPath, ...words], { stdout: "pipe", stderr: "inherit" });
    children.push(child);
    const { value } = await child.stdout.getReader().read();
    return new TextDecoder().decode(value).trim();
  };
  const ends: (() => Promise<void>)[] = [];
  return {
    bough,
    times,
    directory(name) {
      const path = join(root, name);
      mkdirSync(path, { recursive: true });
      return path;
    },
    async startService(...options) {
      const url = await start(join(import.meta.dir, "service.ts"), ...options);
      // The certificate is the benchmark's own.
      const tls = { rejectUnauthorized: false };
      return {
        url,
        stats: async () => (await (await fetch(`${url}/bench`, { tls })).json()) as ServiceStats,
        reset: async () => void (await fetch(`${url}/bench`, { method: "DELETE", tls })),
      };
    },
    async putFarAway(service, roundTrip, megabits = 0) {
      const line = join(import.meta.dir, "far-line.ts");
      return { ...service, url: await start(line, service.url, String(roundTrip), String(megabits)) };
    },
    build(context, service, ...words) {
      const where = service === "engine" ? ["--local"] : ["--url", service.url, "--token", "benchmark"];
      const state = service === "engine" ? join(root, "engine-state") : `${context}-state`;
      return { words: [bough, ...where, "build", context, ...words], env: { BOUGH_HOME: state } };
    },
    atEnd(action) {
      ends.push(action);
    },
    async close() {
      for (const end of ends) await end();
      for (const child of children) child.kill();
      await Promise.all(children.map(({ exited }) => exited));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Runs a first build: removes the state of earlier builds before it. */
export async function runFresh(command: Command, options?: Parameters<typeof run>[1]) {
  rmSync(command.env?.BOUGH_HOME ?? "", { recursive: true, force: true });
  return run(command, options);
}

/** Builds several times, with pauses, until everything is recorded: bough does not trust the state of files just written. */
export async function runUntilSettled(command: Command): Promise<void> {
  for (let time = 0; time < 4; time++) {
    await run(command);
    await Bun.sleep(200);
  }
}
