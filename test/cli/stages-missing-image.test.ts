/** `--docker` on a service: the requests of a cached build, and builds after the service has lost images and files. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const dockerfile = `FROM base:1 AS build
RUN compile
FROM base:1 AS other
RUN compile otherwise
FROM base:1
RUN first
COPY --from=build /out/a /a
RUN second
COPY --from=other /out /b
RUN last
`;

let context: string;
let state: string;
let service: FakeService;

async function start(options: Parameters<typeof startFakeService>[0]): Promise<void> {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService(options);
  service.state.addImage("base:1");
  for (const name of ["a", "b"])
    service.state.tree.set(`/out/${name}`, { type: "file", content: `file ${name}` });
  service.state.tree.set("/out", { type: "directory" });
  writeFiles(context, { Dockerfile: dockerfile });
}

async function build(...options: string[]) {
  const before = service.state.instances.length;
  service.clearRequests();
  // It waits for images that it has just made, since a service may not know them yet.
  const clock = createManualClock((milliseconds) => milliseconds < 5000);
  const ended = await boughOn(service, ["build", ".", "--docker", ...options], { context, state, clock });
  const runs = service.state.instances.slice(before).map(commandOf).sort();
  return { ...ended, runs };
}

type Instance = FakeService["state"]["instances"][number];

function commandOf({ command, copies = [] }: Instance): string {
  return copies.length === 0 ? command : `copy ${copies.map(({ destination }) => destination)}`;
}

/** The image of the last operation that ran `command`. */
function imageOf(command: string): string {
  const operation = [...service.state.operations.values()].findLast(
    ({ request }) => request !== undefined && commandOf(request) === command,
  );
  return operation?.record.result?.image ?? "";
}

/** Builds twice, because an image counts as gone only if the service has listed it before. */
async function buildTwice(): Promise<void> {
  for (const _ of [1, 2]) expect(await build()).toMatchObject({ exitCode: 0 });
}

/** Removes the images of the commands `lost`, changes the Dockerfile, and expects one build to run `runs`, the next nothing. */
async function rebuildAfterLoss(
  lost: readonly string[],
  [before, after]: readonly [string | RegExp, string],
  runs: readonly string[],
): Promise<void> {
  await buildTwice();
  for (const command of lost) service.state.forgetImage(imageOf(command));
  writeFiles(context, { Dockerfile: dockerfile.replace(before, after) });
  const again = await build();
  expect(again).toMatchObject({ exitCode: 0 });
  expect(again.runs).toEqual(runs.toSorted());
  expect((await build()).runs).toEqual([]);
}

afterEach(async () => {
  await service.close();
});

describe.each<[string, Parameters<typeof startFakeService>[0]]>([
  ["a plain service", {}],
  ["a service that copies", { extensions: ["copies", "entries"] }],
])("on %s", (_, options) => {
  beforeEach(() => start(options));

  test("a cached build only asks for the image of FROM and tags its result", async () => {
    await buildTwice();
    // With one job no look-up runs when the next stage asks.
    const { exitCode, runs } = await build("--tag", "app", "--jobs", "1");
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: [] });
    expect(
      service.requests.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, "ID")}`),
    ).toEqual(["GET /v1/images", "PATCH /v1/images/ID/tag"]);
  });
});

describe.each<[string, number | "failed operation"]>([
  ["404", 404],
  ["422 and a message", 422],
  ["a failed operation", "failed operation"],
])("a service that reports a lost image with %s", (_, missing) => {
  describe("and copies between images has lost the image of", () => {
    beforeEach(() => start({ missing, extensions: ["copies", "entries"] }));

    test.each<[string, string[], [string, string], string[]]>([
      ["a stage", ["compile"], ["/a /a", "/a /c"], ["compile", "copy /c", "last", "second", "copy /b"]],
      ["a stage that nothing needs", ["compile"], ["RUN last", "RUN end"], ["end"]],
      ["a copy", ["copy /a"], ["RUN second", "RUN other"], ["copy /a", "other", "copy /b", "last"]],
      [
        "a copy and its stage",
        ["copy /a", "compile"],
        ["RUN second", "RUN other"],
        ["compile", "copy /a", "other", "copy /b", "last"],
      ],
      [
        "every step",
        ["compile", "compile otherwise", "first", "copy /a", "second", "copy /b", "last"],
        ["", ""],
        ["compile", "compile otherwise", "first", "copy /a", "second", "copy /b", "last"],
      ],
    ])("%s", (_, lost, change, runs) => rebuildAfterLoss(lost, change, runs));
  });

  describe("and can't copy between images has lost the image of", () => {
    beforeEach(() => start({ missing }));

    test.each<[string, string[], [string | RegExp, string], string[]]>([
      [
        "a stage from which another file is copied",
        ["compile"],
        ["/out/a", "/out/b"],
        ["compile", "second", "last"],
      ],
      ["a stage from which the same file is copied", ["compile"], ["/a /a", "/a /c"], ["second", "last"]],
      [
        "a stage that is read after another one",
        ["compile otherwise"],
        [/ .out/g, " /./out"],
        ["compile otherwise"],
      ],
      [
        "a stage that was not read before, after another one",
        ["last"],
        ["RUN last", "RUN last\nFROM base:1\nCOPY --from=build /out/b /x\nCOPY --from=2 /out/b /b\nRUN end"],
        ["end", "last"],
      ],
      [
        "a stage from which a directory is copied",
        ["compile otherwise"],
        ["/out /b", "/out/ /c"],
        ["compile otherwise", "last"],
      ],
    ])("%s", (_, lost, change, runs) => rebuildAfterLoss(lost, change, runs));

    test.each<[string, number]>([
      ["few files", 1],
      ["so many files that they are sent as an archive", 200],
    ])("a stage, and the copied files: %s", async (_, files) => {
      service.state.tree.set("/bin/tar", { type: "file", content: "tar" });
      service.state.tree.set("/out/a", { type: "directory" });
      for (let file = 0; file < files; file++)
        service.state.tree.set(`/out/a/${file}`, { type: "file", content: `file ${file}` });
      await buildTwice();
      service.state.forgetImage(imageOf("compile"));
      const kept = Bun.CryptoHasher.hash("sha256", "file b", "hex");
      for (const sha256 of service.state.files.keys()) if (sha256 !== kept) service.state.forgetFile(sha256);
      writeFiles(context, { Dockerfile: dockerfile.replace("RUN second", "RUN other") });
      const again = await build();
      expect(again).toMatchObject({ exitCode: 0 });
      expect(again.runs).toEqual(["compile", "last", "other"]);
    });
  });
});

test("a large file of another stage is read again if the service refuses its upload once", async () => {
  await start({});
  service.state.tree.set("/out/a", { type: "file", content: "x".repeat(2_000_000) });
  writeFiles(context, {
    Dockerfile: "FROM base:1 AS a\nRUN first\nFROM base:1\nCOPY --from=a /out/a /a\nRUN last\n",
  });
  let refusals = 0;
  service.intercept = async (request, { method, path }) => {
    if (method !== "POST" || path !== "/v1/files" || refusals++ > 0) return undefined;
    await request.arrayBuffer();
    return new Response("busy", { status: 503 });
  };
  expect(await build()).toMatchObject({ exitCode: 0, runs: ["first", "last"] });
  expect(refusals).toBe(2);
});
