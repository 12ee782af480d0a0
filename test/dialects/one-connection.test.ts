/** A build on a server that answers one connection at a time: it takes the next one when the last has ended. */
import { expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { startPlainService } from "./plain-service.ts";

/** Hands one connection after the other to a service. */
async function startFront(port: number) {
  const waiting: Socket[] = [];
  let isBusy = false;
  const serve = (socket: Socket) => {
    isBusy = true;
    if (socket.destroyed) return serveNext();
    const service = connect(port, "127.0.0.1");
    socket.on("error", () => service.destroy());
    service.on("error", () => socket.destroy());
    socket.pipe(service).pipe(socket);
    socket.once("close", () => {
      service.destroy();
      serveNext();
    });
  };
  const serveNext = () => {
    isBusy = false;
    const next = waiting.shift();
    if (next !== undefined) serve(next);
  };
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => undefined);
    if (isBusy) waiting.push(socket);
    else serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}`, close: () => server.close() };
}

/** Waits of some seconds pass sooner, and each request finds connections that have been idle. */
const clock: Clock = {
  now: Date.now,
  sleep: (milliseconds, signal) =>
    systemClock.sleep(milliseconds <= 15_000 ? Math.min(milliseconds, 100) : milliseconds, signal),
};

test("each connection ends with its answer once a further one gets none", async () => {
  const service = startPlainService({});
  const front = await startFront(Number(new URL(service.url).port));
  const context = temporaryDirectory();
  writeFiles(context, {
    ...Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`files/${index}`, `${index}\n`])),
    Dockerfile: "FROM base:1\nRUN first\nCOPY files /files/\nRUN second\nCOPY files /more/\nRUN third\n",
  });
  try {
    const { exitCode, stderr } = await runBough(
      ["--url", front.url, "--token", "tok-5ecret", "build", ".", "--tag", "app:1"],
      { workingDirectory: context, clock, environment: { BOUGH_HOME: join(context, "state") } },
    );
    expect(stderr).toContain("the service serves one connection at a time");
    expect(exitCode).toBe(0);
    expect(service.commands).toEqual(["first", "second", "third"]);
    expect(service.calls.filter((call) => call === "POST /v1/files")).toHaveLength(12);
  } finally {
    front.close();
    service.close();
  }
}, 180_000);
