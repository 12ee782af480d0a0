/** `bough inspect`: its output at several widths, and the images of the engine. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type InspectedLayer, renderInspection } from "../../src/cli/images/render-inspection.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const amount = (files: number, bytes = 0) => ({ files, bytes });
const layer = (instruction: string, changes: Partial<InspectedLayer["changes"]>, others: string[] = []) => ({
  ...{ id: "1", instruction, others, createdAt: "2026-01-01T00:00:00Z", isBase: false },
  changes: { added: amount(0), changed: amount(0), deleted: amount(0), hidden: amount(0), ...changes },
});
const inspection = {
  image: "4d004027-5a6b-4bda-9c83-90380ca00d3b",
  tags: ["app:dev", "app:1"],
  createdAt: "2026-01-01T00:00:00Z",
  platform: "linux/amd64",
  origin: { author: "Jane \u001b[31m" },
  config: {
    Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin", "A=1"],
    Cmd: ["app", "--serve"],
    User: "app",
  },
  layers: [
    layer("ADD rootfs.tar / ", { added: amount(3412, 74_800_000) }),
    layer(
      "RUN apt-get update && apt-get install -y --no-install-recommends build-essential",
      { added: amount(4120, 311_000_000), changed: amount(3, 900), hidden: amount(9, 84_000_000) },
      Array.from({ length: 6 }, (_, index) => `COPY file-${index} /srv/`),
    ),
    layer("RUN rm -rf /var/lib/apt/lists/*", { deleted: amount(9, 84_000_000) }),
  ],
};

describe("the output", () => {
  test("at 80 columns", () => {
    const shown = renderInspection(inspection, { columns: 80, now: Date.parse("2026-01-01T03:00:00Z") });
    expect(shown).toBe(`\
IMAGE     4d004027-5a6b-4bda-9c83-90380ca00d3b
TAGS      app:dev app:1
CREATED   3 h ago
PLATFORM  linux/amd64
AUTHOR    Jane \\x1b[31m
SIZE      386 MB in 3 layers
USER      app
CMD       ["app","--serve"]
ENV       PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin
          A=1

LAYER  SIZE                ADDED  CHANGED  DELETED  INSTRUCTION
1      75 MB   ██▍         3412   -        -        ADD rootfs.tar /
2      311 MB  ██████████  4120   3        -        COPY file-0 /srv/
                                                    COPY file-1 /srv/
                                                    COPY file-2 /srv/
                                                    COPY file-3 /srv/
                                                    (and 2 more)
                                                    RUN apt-get update && apt-g…
3      0 B                 -      -        9        RUN rm -rf /var/lib/apt/lis…

Wasted: 84 MB in layer 2. Later layers change or delete that.
`);
  });

  test.each([40, 60, 80, 119, 200])("fits %d columns, or 62 if there are fewer", (columns) => {
    const lines = renderInspection(inspection, { columns }).split("\n");
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(Math.max(columns, 62));
    expect(lines.some((line) => line.includes("██████████"))).toBe(true);
    expect(lines.some((line) => line.includes("CHANGED"))).toBe(columns >= 64);
  });

  test("has a creation time that cannot be parsed as it is", () => {
    const shown = renderInspection({ ...inspection, createdAt: "20260101T000000Z" }, { now: 0 });
    expect(shown).toContain("CREATED   20260101T000000Z\n");
  });

  test("is not cut for a pipe, and has bytes as well", () => {
    const lines = renderInspection(inspection, {}).split("\n");
    expect(lines).toContainEqual(
      expect.stringMatching(/^2 .* 4120, 311 MB {2}3, 900 B .*COPY file-0 .srv.$/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^ .* RUN apt-get .*build-essential$/));
  });
});

describe("an image of the engine", () => {
  const directory = temporaryDirectory();
  const bough = async (...words: string[]) => {
    const environment = { BOUGH_HOME: join(directory, "home") };
    return runBough(["--local", ...words], { workingDirectory: directory, environment });
  };
  beforeAll(async () => {
    writeFiles(directory, {
      Dockerfile:
        'FROM base:1\nMAINTAINER me\nCOPY f /srv/\nRUN rm /etc/group; echo 12 > /srv/made\nCMD ["x"]\n',
      f: "f\n",
    });
    const base = await makeBusyboxLayout(join(directory, "base"));
    for (const line of [`images import ${base} --tag base:1`, "build . --docker --tag app:1"])
      expect((await bough(...line.split(" "))).exitCode).toBe(0);
  }, 180_000);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test("has its configuration, and its layers with their instructions", async () => {
    const shown = JSON.parse((await bough("inspect", "app:1", "-f", "json")).stdout);
    expect(shown).toMatchObject({ tags: ["app:1"], author: "me", config: { Cmd: ["x"] } });
    expect(shown.layers).toHaveLength(3);
    expect(shown.layers[0]).toMatchObject({ instruction: "busybox", isBase: true, hidden: { files: 1 } });
    expect(shown.layers[1]).toMatchObject({
      ...{ layer: 2, instruction: "COPY f /srv/", isBase: false, size: 2, added: { files: 1, bytes: 2 } },
    });
    expect(shown.layers[2]).toMatchObject({
      ...{ layer: 3, instruction: "RUN rm /etc/group; echo 12 > /srv/made", others: [] },
      ...{ isBase: false, size: 3, added: { files: 1, bytes: 3 }, deleted: { files: 1 } },
    });
    expect(shown.size).toBe(shown.layers[0].size + 5);
    expect(shown.history.map((line: { created_by: string }) => line.created_by)).toEqual([
      "busybox",
      "MAINTAINER me",
      "COPY f /srv/ # buildkit",
      "RUN /bin/sh -c rm /etc/group; echo 12 > /srv/made # buildkit",
      'CMD ["x"]',
    ]);
  });

  test("the history of the build's session marks the layer of the configuration as a commit", async () => {
    const [{ key }] = JSON.parse((await bough("session", "list", "--filter", "build:", "-f", "json")).stdout);
    const shown = JSON.parse((await bough("session", "show", key, "-f", "json")).stdout);
    expect(shown.history.map(({ kind, title }: { kind: string; title: string }) => [kind, title])).toEqual([
      ["from", "FROM base:1"],
      ["copy", "COPY f /srv/"],
      ["run", "RUN rm /etc/group; echo 12 > /srv/made"],
      ["commit", "(the configuration)"],
    ]);
  });

  test("--layer lists a layer's files", async () => {
    expect((await bough("inspect", "app:1", "--layer", "2")).stdout).toBe(`\
CHANGE  MODE        BEFORE  SIZE  PATH
added   -rw-r--r--  -       2 B   /srv/f
added   drwxr-xr-x  -       -     /srv/
`);
    expect((await bough("inspect", "app:1", "--layer", "3")).stdout).toBe(`\
CHANGE   MODE        BEFORE  SIZE  PATH
deleted  -rw-r--r--  67 B    -     /etc/group
added    -rw-r--r--  -       3 B   /srv/made
`);
    const json = JSON.parse(
      (await bough("-f", "json", "inspect", "app:1", "--layer", "3", "-n", "1")).stdout,
    );
    expect(json).toEqual([
      {
        ...{ change: "deleted", path: "/etc/group", type: "file", mode: "0644", size: 0 },
        hidden: { files: 1, bytes: 67 },
      },
    ]);
    expect((await bough("inspect", "app:1", "--layer", "4")).stderr).toContain("Its layers are 1 to 3.");
  });

  test("the result of a run has one more layer", async () => {
    expect((await bough("run", "--keep", "app:1", "touch", "/by-run")).exitCode).toBe(0);
    const { layers } = JSON.parse((await bough("inspect", "-f", "json")).stdout);
    expect(layers).toHaveLength(4);
    expect(layers[3]).toMatchObject({ instruction: "touch /by-run", added: { files: 1, bytes: 0 } });
  });

  test("files with several hard links have a layer before the RUN, each with its own instruction", async () => {
    writeFiles(directory, {
      "linked/Dockerfile": "FROM base:1\nENV A=1\nCOPY tree /t/\nARG B\nRUN echo > /t/one\n",
      "linked/tree/one": "1\n",
      "linked/tree/two": { hardLink: "linked/tree/one" },
    });
    expect((await bough("build", "linked", "--docker", "--tag", "linked:1")).exitCode).toBe(0);
    const { layers, history } = JSON.parse((await bough("inspect", "linked:1", "-f", "json")).stdout);
    expect(layers.slice(1)).toMatchObject([
      { instruction: "COPY tree /t/", others: [] },
      { instruction: "RUN echo > /t/one", others: [] },
    ]);
    expect(history.slice(1).map((line: { created_by: string }) => line.created_by)).toEqual([
      "ENV A=1",
      "COPY tree /t/ # buildkit",
      "ARG B",
      "RUN |1 B= /bin/sh -c echo > /t/one # buildkit",
    ]);
  });
});

test("on a service without layers an image has the build's steps, also once a session uses it", async () => {
  const service = await startFakeService();
  const [workingDirectory, state] = [temporaryDirectory(), temporaryDirectory()];
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nRUN one\nRUN two\n" });
  service.state.addImage("base:1");
  const call = (...words: string[]) =>
    runBough(["--url", service.url, ...words], { workingDirectory, environment: { BOUGH_HOME: state } });
  await call("build", ".", "--tag", "app:1");
  await call("-S", "work", "use", "app:1");
  const { layers } = JSON.parse((await call("inspect", "app:1", "-f", "json")).stdout);
  await service.close();
  expect(layers.map(({ instruction }: { instruction: string }) => instruction)).toEqual([
    "FROM base:1",
    "RUN one",
    "RUN two",
  ]);
});
