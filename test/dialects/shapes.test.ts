/**
 * Builds on services that have only the specification's six calls and return what they say in every form: a table with each form in
 * changing company, and shapes drawn at random. Each build sends the right requests and notices a command that fails.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { runs, seededRandom } from "../support/random.ts";
import type { Shape } from "./shape.ts";
import { printed, startShapedService } from "./shaped-service.ts";
import { shapeOf, table } from "./shapes.ts";

/** Every directive of the specification; RUNs and the COPY with names are the only ones that need a command. */
const dockerfile = (source: string) => `ARG BASE=base:1
FROM $BASE AS tools
MAINTAINER somebody
LABEL a=b
EXPOSE 80
VOLUME /data
STOPSIGNAL SIGTERM
HEALTHCHECK NONE
ONBUILD RUN later
SHELL ["/bin/sh", "-c"]
CMD ["serve"]
ENTRYPOINT serve
ARG VERSION=1
ARG NOTHING
ENV A=b C=$UNKNOWN
COPY a.txt /srv/
RUN first $VERSION$NOTHING
USER app
WORKDIR /srv
COPY a.txt b.txt
ADD --chmod=600 a.txt http://${source}/data /opt/
COPY --from=tools /srv /srv
RUN ["second", "$C"]
COPY --chown=app:grp a.txt /opt/owned/
RUN third
`;

let source: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  const headers = { etag: '"1"' };
  source = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("data", { headers }) });
});
afterAll(() => source.stop(true));

async function buildOn(shape: Shape): Promise<void> {
  const service = startShapedService(shape);
  const directory = temporaryDirectory();
  const context = join(directory, "context");
  mkdirSync(context);
  writeFileSync(join(context, "a.txt"), "a\n");
  const bough = (...words: string[]) =>
    runBough(["--url", service.url, "--token", "tok-5ecret", ...words], {
      workingDirectory: context,
      clock: createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000),
      environment: { BOUGH_HOME: join(directory, "state") },
    });
  try {
    const text = dockerfile(`127.0.0.1:${source.port}`);
    writeFileSync(join(context, "Dockerfile"), text);
    const first = await bough("build", ".", "--tag", "app:1");
    expect(first).toMatchObject({ exitCode: 0 });
    const commands = [
      "first 1",
      "su -s /bin/sh -c 'second '\\'''\\''' app",
      "sh",
      "su -s /bin/sh -c third app",
    ];
    const sent: unknown[] = service.instances.map(({ command, image, cwd, files }) => [
      command,
      image,
      cwd,
      Object.keys(files),
    ]);
    expect(sent).toEqual([
      [commands[0], service.base, "/", ["/srv/a.txt"]],
      [commands[1], service.made[0], "/srv", ["/srv/b.txt", "/opt/a.txt", "/opt/data"]],
      [commands[2], service.made[1], "/", [expect.stringMatching(/^\/\.bough-.*a\.txt$/)]],
      [commands[3], service.made[2], "/srv", []],
    ]);
    expect(service.tags.get("app:1")).toBe(service.made[3] ?? "");
    if (shape.output.form !== "nothing") expect(first.stderr).toContain(printed);
    expect(first.stderr.includes("reports no exit codes")).toBe(shape.exitCode === undefined);

    writeFileSync(join(context, "Dockerfile"), `${text}RUN fail\n`);
    const second = await bough("build", ".");
    expect(second).toMatchObject({ exitCode: 1 });
    if (shape.exitCode !== undefined) expect(second.stderr).toContain("failed with exit code 3");
    expect(service.instances.map(({ command }) => command)).toEqual([
      ...commands,
      "su -s /bin/sh -c fail app",
    ]);
  } finally {
    service.close();
  }
}

test("the table has 150 services or more", () => {
  expect(new Set(table.map((shape) => JSON.stringify(shape))).size).toBeGreaterThanOrEqual(150);
});

test.each(table.map((shape) => [JSON.stringify(shape), shape] as const))("%s", async (_, shape) => {
  await buildOn(shape);
});

test("services of any other shape", async () => {
  const random = seededRandom(42);
  for (let run = 0; run < runs(20); run++) {
    const shape = shapeOf((count) => Math.floor(random() * count));
    await buildOn(shape).catch((cause: unknown) => {
      throw new Error(`on ${JSON.stringify(shape)}`, { cause });
    });
  }
}, 120_000);
