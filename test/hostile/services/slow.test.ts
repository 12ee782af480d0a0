/** Endless responses of a byte every ten seconds: each call gives up within minutes. The tests use a manual clock. */
import { expect, onTestFinished, test } from "bun:test";
import type { Socket } from "node:net";
import type { Service } from "../../../src/service/client.ts";
import { createManualClock } from "../../fake-service/manual-clock.ts";
import { clientOf } from "../../service/client.ts";
import { json as answer, image, operation, startHostileService } from "./hostile-service.ts";

const head = (status: string, type: string) => `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\n\r\n`;
const json = head("200 OK", "application/json");
const bytes = head("200 OK", "application/octet-stream");

const drain = async (stream: Promise<ReadableStream<Uint8Array> | undefined>) => {
  for await (const _ of (await stream) ?? []);
};
const uploaded = (service: Service) => {
  const source = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await Bun.sleep(2);
      controller.enqueue(new Uint8Array(1));
    },
  });
  return service.uploadStream(source);
};

test.each<[attack: string, begins: string, call: (service: Service) => Promise<unknown>, message: RegExp]>([
  ["a response's head", "HTTP/1.1 200 OK\r\nX: ", (service) => service.whoami(), /no answer within 30 s/],
  ["whoami", json, (service) => service.whoami(), /whoami: no answer within 30 s/],
  ["a list of images", json, (service) => service.listImages(), /images.*: no answer within 30 s/],
  [
    "an error",
    head("404 Not Found", "text/plain"),
    (service) => service.tagImage(image, "a:1"),
    /no answer within 30 s/,
  ],
  ["an operation's record", json, (service) => service.getOperation(operation), /no answer within 30 s/],
  [
    "an image's /etc/passwd",
    bytes,
    // Without a list, the service may have no files of images at all, and a build goes on without.
    async (service) => {
      await service.pathType(image, "/");
      await service.readFile(image, "/etc/passwd");
    },
    /no answer within 30 s/,
  ],
  [
    "a file for cat",
    bytes,
    (service) => drain(service.openFile(image, "/a")),
    /only \d+ bytes? received in 60 s/,
  ],
  [
    "an archive for cp",
    bytes,
    (service) => drain(service.openArchive(image, "/a")),
    /only \d+ bytes? received in 60 s/,
  ],
  [
    "the events so far",
    head("200 OK", "text/event-stream"),
    (service) => service.readEventsSoFar(operation, {}),
    /only \d+ bytes? received in 60 s/,
  ],
  ["the response to the beginning of an upload", json, uploaded, /only \d+ bytes? received in 60 s/],
])("%s is given up", async (_, begins, call, message) => {
  const dribble = async (socket: Socket) => {
    socket.write(begins);
    while (!socket.destroyed) {
      socket.write("1");
      await Bun.sleep(2);
    }
  };
  const list = `GET /v1/inspect/${image}/list`;
  const hostile = await startHostileService({ "*": dribble, [list]: answer({ files: [] }) });
  onTestFinished(() => hostile.close());
  const clock = createManualClock();
  let awaitedHeads = 0;
  const { service } = clientOf(hostile.url, {
    clock,
    async fetch(input, init) {
      awaitedHeads++;
      return fetch(input, init).finally(() => awaitedHeads--);
    },
  });
  const isWholeHead = begins.endsWith("\r\n\r\n");
  const began = clock.now();
  let failure: unknown;
  call(service).then(
    () => (failure = "it ended"),
    (error: unknown) => (failure = error),
  );
  for (; failure === undefined; await Bun.sleep(5)) {
    // The clock stands still until the head has arrived, however long the machine takes for it.
    if (isWholeHead && awaitedHeads > 0) continue;
    await clock.advance(5000);
    if (clock.now() - began > 15 * 60_000) throw new Error("it goes on after a quarter of an hour");
  }
  expect(String(failure)).toMatch(message);
});
