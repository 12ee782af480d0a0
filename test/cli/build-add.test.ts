/** ADD from servers that fail: the messages. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { startRawServer } from "../service/raw-server.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(() => service.close());

async function add(url: string) {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: `FROM base:1\nADD ${url} /file\n` });
  const environment = {
    CONTREE_URL: service.url,
    CONTREE_TOKEN: "t0ken-t0ken",
    BOUGH_HOME: temporaryDirectory(),
  };
  const clock = createManualClock((milliseconds) => milliseconds < 15_000);
  return await runBough(["build"], { workingDirectory, environment, clock });
}

test("the server does not listen", async () => {
  const gone = await startRawServer(() => undefined);
  await gone.close();
  const { exitCode, stderr } = await add(`${gone.url}/file`);
  expect(stderr).toContain(`ADD ${gone.url}/file: connection refused (tried 5 times)\n`);
  expect(stderr).toEndWith("Check the address, and that this machine can reach it.\n");
  expect(exitCode).toBe(1);
});

test("the length is measured for a service that requires it, if the server does not report it", async () => {
  const data = "some bytes";
  const chunk = `${data.length.toString(16)}\r\n${data}\r\n0\r\n\r\n`;
  const source = await startRawServer((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`),
  );
  service.intercept = ({ method, headers }, { path }) =>
    method === "POST" && path === "/v1/files" && !headers.has("content-length")
      ? Response.json({ error: "Length Required", status: 411 }, { status: 411 })
      : undefined;
  const { exitCode } = await add(`${source.url}/file`);
  await source.close();
  expect(exitCode).toBe(0);
  expect(source.requests).toHaveLength(3);
  const sha256 = new Bun.CryptoHasher("sha256").update(data).digest("hex");
  expect(service.state.files.has(sha256)).toBe(true);
});

test("the response breaks off", async () => {
  const source = await startRawServer((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nonly this", () =>
      socket.resetAndDestroy(),
    );
  });
  const { exitCode, stderr } = await add(`${source.url}/file`);
  await source.close();
  expect(stderr).toContain(
    `ADD ${source.url}/file: the connection was closed before the answer was complete (tried 8 times)\n`,
  );
  expect(stderr).toEndWith("Run the build again.\n");
  expect(stderr).not.toMatch(/verbose|fetch|ECONNRESET/);
  expect(exitCode).toBe(1);
});
