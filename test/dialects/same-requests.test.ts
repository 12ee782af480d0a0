/** The requests of a step are the same bytes each time, and its operations are told apart all the same. */
import { expect, onTestFinished, test } from "bun:test";
import { startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { startPlainService } from "./plain-service.ts";

function makeBuild(url: string, files: Record<string, string>) {
  const context = temporaryDirectory();
  writeFiles(context, files);
  return (state: string, ...options: string[]) =>
    runBough(["--url", url, "--token", "t0ken-t0ken", "build", ".", ...options], {
      workingDirectory: context,
      clock: createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000),
      environment: { BOUGH_HOME: state },
    });
}

test("a step's requests are the same bytes, with --no-cache and with another state directory", async () => {
  const service = startPlainService({});
  onTestFinished(() => service.close());
  // Each stage starts from the same image, so no request differs because of the one before it.
  const stage = "FROM base:1\nENV A=1\nCOPY --chown=app data /data/\n";
  const build = makeBuild(service.url, {
    Dockerfile: [
      `${stage}USER app\nRUN one\n`,
      `${stage}WORKDIR /srv\nRUN <<END\ntwo\nEND\n`,
      `${stage}RUN --mount=type=cache,target=/c three\n`,
      "FROM base:1\nRUN four\n",
    ].join(""),
    "data/file": "content",
    "data/empty": "directory/",
  });
  const state = temporaryDirectory();
  const sent = [];
  for (const [home, ...options] of [[state], [state, "--no-cache"], [temporaryDirectory()]] as const) {
    service.bodies.length = 0;
    expect(await build(home, ...options)).toMatchObject({ exitCode: 0 });
    sent.push(service.bodies.filter((body) => body.includes(`"image":"${service.base}"`)));
  }
  expect(sent[0]?.length).toBeGreaterThanOrEqual(4);
  expect(sent[1]).toEqual(sent[0] ?? []);
  expect(sent[2]).toEqual(sent[0] ?? []);
});

test("the request of a failed step that is built again, and is lost, is not taken for the failed one", async () => {
  const service = await startFakeService({ run: () => (runs++ === 0 ? { exitCode: 1 } : undefined) });
  onTestFinished(() => service.close());
  let runs = 0;
  const build = makeBuild(service.url, { Dockerfile: `FROM ${service.state.addImage()}\nRUN one\n` });
  const state = temporaryDirectory();
  expect(await build(state)).toMatchObject({ exitCode: 1 });
  let lost = 0;
  service.intercept = (_, { method, path }) =>
    method === "POST" && path === "/v1/instances" && lost++ === 0
      ? new Response("", { status: 502 })
      : undefined;
  expect(await build(state)).toMatchObject({ exitCode: 0 });
  expect(runs).toBe(2);
});
