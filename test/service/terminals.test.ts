import { afterEach, expect, test } from "bun:test";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { clientOf, rejection } from "./client.ts";
import { type RawServer, rawAnswer, startRawServer } from "./raw-server.ts";

let server: RawServer | undefined;
afterEach(() => server?.close());

const operation = "1b2c3d4e-0000-4000-8000-000000000000";

test.each(["425 Too Early", "429 Too Many Requests", "503 Service Unavailable"])(
  "a terminal is opened again after %s",
  async (status) => {
    server = await startRawServer((socket, count) => {
      socket.write(count === 0 ? rawAnswer(status, "{}") : rawAnswer("200 OK", "shown"));
    });
    const { service } = clientOf(server.url, {
      clock: createManualClock((milliseconds) => milliseconds === 200),
    });
    const opened = await service.openTerminal(operation);
    expect(await new Response(opened).text()).toBe("shown");
  },
);

test.each([
  ["that is busy for more than a minute", "503 Service Unavailable", "20"],
  ["that wants to be left alone for a day", "503 Service Unavailable", "86400"],
  ["that refuses it", "500 Internal Server Error", "20"],
])("a terminal of a service %s is an error", async (_, status, seconds) => {
  server = await startRawServer((socket) => {
    socket.write(rawAnswer(status, "{}", { "Retry-After": seconds }));
  });
  const { service } = clientOf(server.url, {
    clock: createManualClock((milliseconds) => milliseconds === 20_000),
  });
  const error = await rejection(service.openTerminal(operation));
  expect(error).toMatchObject({ message: expect.stringContaining(`responded with ${status.slice(0, 3)}`) });
});
