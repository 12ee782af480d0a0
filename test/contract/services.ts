/** The services that follow the API's document, each with the same image and a way to send requests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { startServer } from "../support/server.ts";
import type { Send } from "./client.ts";

export interface ContractService {
  send: Send;
  /** The id of an image with the tag `busybox:latest`. */
  image: string;
  /** The address of an image to import. */
  importable: string;
  canImport: boolean;
  close(): Promise<unknown>;
}

export const services: readonly [name: string, start: () => Promise<ContractService>][] = [
  ["the fake service", startFake],
  ["the engine", startEngine],
  ["bough serve, over HTTP", startServed],
];

async function startFake(): Promise<ContractService> {
  const fake = await startFakeService({
    run: ({ command, args = [] }) => play([command, ...args].join(" ")),
  });
  const { tree } = fake.state;
  for (const path of ["/etc", "/bin"]) tree.set(path, { type: "directory" });
  tree.set("/etc/passwd", { type: "file", content: "root:x:0:0:root:/root:/bin/sh\n" });
  tree.set("/bin/busybox", { type: "file", content: "a program" });
  tree.set("/bin/sh", { type: "symlink", target: "busybox" });
  return {
    send: fake.handle,
    image: fake.state.addImage("busybox:latest"),
    importable: "docker://registry.example/busybox:latest",
    canImport: true,
    close: () => fake.close(),
  };
}

async function startEngine(): Promise<ContractService> {
  const engine = await TestEngine.open();
  return {
    send: (request) => engine.engine.fetch(request),
    image: await engine.importBase("busybox:latest"),
    importable: await makeBusyboxLayout(join(engine.directory, "importable")),
    canImport: true,
    close: () => engine.close(),
  };
}

async function startServed(): Promise<ContractService> {
  const home = mkdtempSync(join(tmpdir(), "bough-contract-"));
  const environment = { BOUGH_HOME: home };
  const layout = await makeBusyboxLayout(join(home, "layout"));
  const words = ["--local", "-q", "images", "import", layout, "--tag", "busybox:latest"];
  const image = (await runBough(words, { workingDirectory: "/", environment })).stdout.trim();
  const server = await startServer(environment);
  return {
    async send(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("Authorization", `Bearer ${server.token}`);
      const { method } = request;
      const body = method === "GET" || method === "HEAD" ? {} : { body: await request.arrayBuffer() };
      return fetch(`${server.url}${pathname}${search}`, { method, headers, redirect: "manual", ...body });
    },
    image,
    // Clients of a server cannot import files of its machine, and no registry runs at this address.
    importable: "docker://127.0.0.1:1/busybox:latest",
    canImport: false,
    async close() {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Returns the outcome of a command of the cases, for a service that runs none. */
function play(command: string): RunOutcome {
  if (command.startsWith("sleep")) return { until: new Promise(() => {}) };
  if (command === "cat") return { catsInput: true };
  if (command.includes("exit 3")) return { stdout: "out\n", stderr: "err\n", exitCode: 3 };
  return { stdout: "out\n" };
}
