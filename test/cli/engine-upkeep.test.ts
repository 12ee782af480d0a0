/** `bough engine df` and `bough engine prune`, on an engine that has built something. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { diskUsage } from "../../src/engine/system/disk.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

test("prune says what it would remove, removes it with -y, and keeps everything that tags and builds use", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const context = temporaryDirectory();
  const bough = (...words: string[]) =>
    runBough(["--local", ...words], { workingDirectory: context, environment });

  expect((await bough("engine", "df")).stderr).toContain("there is no engine in");
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough("images", "import", layout, "--tag", "busybox:1");
  writeFiles(context, {
    // A file of the context would not be uploaded, because the engine reads it where it is.
    Dockerfile: `FROM busybox:1\nCOPY <<big /big\n${"x\n".repeat(50_000)}big\nRUN --mount=type=cache,target=/c echo built | tee /c/x > /built\n`,
  });
  const image = (await bough("build", "-q")).stdout;

  const usage = JSON.parse((await bough("-f", "json", "engine", "df")).stdout);
  expect(usage).toMatchObject({ images: { count: 3, tagged: 1 }, layers: { count: 3 }, files: { count: 1 } });
  expect(usage.owners).toMatchObject([
    { kind: "imported", count: 1, reclaimableBytes: 0 },
    { kind: "session", name: expect.stringMatching(/^build:/), count: 2, reclaimableBytes: 0, context },
  ]);
  expect(usage.caches).toMatchObject({ count: 1 });
  // One number for one thing.
  const listed = JSON.parse((await bough("-f", "json", "images", "--all")).stdout);
  const { size } = JSON.parse((await bough("-f", "json", "inspect", image.trim())).stdout);
  expect(listed.find(({ uuid }: { uuid: string }) => uuid === image.trim())).toMatchObject({ size });
  expect(usage.layers.bytes).toBe(size);
  expect(usage.files.bytes).toBeGreaterThanOrEqual(100_000);
  expect((await bough("engine", "df")).stdout).toMatch(/^caches +1 +\S+ .+ of RUN --mount=type=cache$/m);
  expect((await bough("engine", "df")).stdout).toMatch(/^total .* 3 images, 1 tagged$/m);
  expect((await bough("engine", "df")).stdout).toMatch(/^build:\w{16} +2 +\S+ .+ - +\S/m);

  const planned = await bough("engine", "prune");
  expect(planned.stdout).toStartWith("would remove 1 uploaded file, ");
  expect(planned.stderr).toContain("-y removes it");
  expect(JSON.parse((await bough("-f", "json", "engine", "df")).stdout)).toEqual(usage);

  expect((await bough("engine", "prune", "-y")).stdout).toStartWith("removed 1 uploaded file, ");
  expect(JSON.parse((await bough("-f", "json", "engine", "df")).stdout).caches).toMatchObject({
    count: 0,
    bytes: 0,
  });
  expect((await bough("build", "-q")).stdout).toBe(image);
  // The uploaded file is gone: bough says so and sends it again.
  const fresh = await bough("build", "--no-cache");
  expect(fresh.exitCode).toBe(0);
  expect(fresh.stderr).toContain("1 uploaded file is gone: sending again");

  using store = new Database(join(environment.BOUGH_HOME, "sessions/embedded.db"), { readonly: true });
  const facts = () => store.query("SELECT * FROM fact WHERE image <> ''").all();
  expect(facts()).not.toEqual([]);
  const everything = await bough("engine", "prune", "--all", "-y");
  expect(everything.stdout).toContain("removed tags: busybox:1");
  expect((await bough("images", "-q")).stdout).toBe("");
  expect(facts()).toEqual([]);
});

test("prune --archives removes what imported layers were unpacked from; the image can be used, exported and imported again", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const context = temporaryDirectory();
  const bough = (line: string) =>
    runBough(["--local", ...line.split(" ")], { workingDirectory: context, environment });
  const archives = async () => JSON.parse((await bough("-f json engine df")).stdout).blobs;
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough(`images import ${layout} --tag busybox:1`);
  writeFiles(context, { Dockerfile: "FROM busybox:1\nRUN echo built > /built\n" });
  const image = (await bough("build -q")).stdout;

  const before = await archives();
  expect(before).toMatchObject({ count: 1, reclaimableBytes: 0 });
  expect((await bough("engine prune")).stdout).not.toContain("archive");
  expect((await bough("engine prune --archives")).stdout).toContain("would remove 1 archive: ");
  expect(await archives()).toEqual(before);
  expect((await bough("engine prune --archives --keep 1GB")).stderr).toContain(
    "--archives and --keep cannot be used together",
  );
  const removed = JSON.parse((await bough("-f json engine prune --archives -y")).stdout);
  expect(removed.archives).toEqual({ count: 1, bytes: before.bytes });
  expect(await archives()).toMatchObject({ count: 0, bytes: 0 });

  expect((await bough("build -q")).stdout).toBe(image);
  expect((await bough(`run ${image.trim()} -- cat /built`)).stdout).toBe("built\n");
  expect((await bough(`images export busybox:1 oci:${context}/layout:1`)).exitCode).toBe(0);
  const other = { BOUGH_HOME: temporaryDirectory() };
  const again = await runBough(["--local", "images", "import", `oci:${context}/layout:1`], {
    workingDirectory: context,
    environment: other,
  });
  expect(again).toMatchObject({ exitCode: 0 });
  await bough(`images import ${layout} --tag busybox:1`);
  expect(await archives()).toEqual(before);
});

test("prune removes layers that later builds have superseded, then the least recently used, then sessions", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const contexts = [temporaryDirectory(), temporaryDirectory()];
  const bough = (line: string, workingDirectory = "/") =>
    runBough(["--local", ...line.split(" ")], { workingDirectory, environment });
  const json = async (line: string) => JSON.parse((await bough(`-f json ${line}`)).stdout);
  const layersOf = () => diskUsage(join(environment.BOUGH_HOME, "engine/layers"));
  await bough(`images import ${await makeBusyboxLayout(temporaryDirectory())} --tag busybox:1`);
  const before = layersOf();
  const dockerfile =
    "FROM busybox:1\nARG EDIT\nRUN echo $EDIT > /edit; head -c 3000000 /dev/urandom > /big\nRUN rm /edit\n";
  for (const context of contexts) writeFiles(context, { Dockerfile: dockerfile });
  for (const edit of [1, 2, 3, 4, 5])
    await bough(`build --build-arg EDIT=${edit} --tag app:dev`, contexts[0]);
  // The second build lacks the last two lines, one of which made a layer at the stage's end; the rest is cached.
  const long = `${dockerfile}RUN head -c 1000000 /dev/urandom > /trailing\nWORKDIR /made/at/the/end\n`;
  for (const content of [long, dockerfile]) {
    writeFiles(contexts[1] ?? "", { Dockerfile: content });
    await bough("build --build-arg EDIT=6", contexts[1]);
  }
  await bough("-S work use busybox:1");
  await bough("-S work run -s -- date>/date");
  expect(layersOf() - before).toBeGreaterThan(18_000_000);

  // --keep allows more than there is, but superseded layers are removed anyway.
  expect((await json("engine df")).layers.reclaimableBytes).toBeWithin(13_000_000, 13_600_000);
  expect((await bough("engine prune --keep 1GB -y")).stdout).toStartWith(
    "removed 11 images, 10 layers: 13 MB",
  );
  expect(layersOf() - before).toBeWithin(6_000_000, 6_500_000);
  for (const [index, context] of contexts.entries()) {
    const again = await bough(`build --build-arg EDIT=${index + 5}`, context);
    expect(again.stderr).toContain("2 of 2 layers cached");
    expect(again.stderr).not.toContain("[WARN]");
  }

  // Only one of the two builds has a tag.
  const kept = (await json("engine df")).layers.bytes + (await json("engine df")).blobs.bytes;
  expect((await bough(`engine prune --keep ${kept - 1_000_000} -y`)).stdout).toMatch(
    /^removed \d images?, \d layers?: /,
  );
  expect(layersOf() - before).toBeWithin(3_000_000, 3_500_000);

  expect((await json("engine prune --sessions --older-than 1h")).sessions).toEqual([]);
  const build = (await json("session list --filter build:"))[0].key.replace("build:", "");
  mkdirSync(join(environment.BOUGH_HOME, "contexts", build, "commit/tree"), { recursive: true });
  expect((await bough("engine prune --sessions -y")).stdout).toContain("removed sessions: ");
  expect(readdirSync(join(environment.BOUGH_HOME, "contexts"))).toEqual([]);
  expect(await json("session list")).toEqual([]);
  expect((await json("images --all")).map(({ tag }: { tag: string }) => tag)).toEqual([
    "app:dev",
    "busybox:1",
  ]);
});

test("prune keeps the layers that the latest builds with a scope have used", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const context = temporaryDirectory();
  const bough = (...words: string[]) =>
    runBough(["--local", ...words], { workingDirectory: context, environment });
  await bough("images", "import", await makeBusyboxLayout(temporaryDirectory()), "--tag", "busybox:1");
  writeFiles(context, { Dockerfile: "FROM busybox:1\nARG EDIT\nRUN echo $EDIT > /edit\n" });
  for (const edit of ["1", "2"]) await bough("build", "--cache-to", "main", "--build-arg", `EDIT=${edit}`);
  const [session] = JSON.parse((await bough("-f", "json", "session", "list")).stdout);
  await bough("session", "delete", session.key);
  expect((await bough("engine", "df")).stdout).toMatch(/^scope main +2 .* see `bough cache show`$/m);

  // Removes the layer of the first build, and the index that the second build has replaced.
  await bough("engine", "prune", "-y");
  const build = (edit: string) => bough("build", "--cache-from", "main", "--build-arg", `EDIT=${edit}`);
  expect((await build("2")).stderr).toMatch(/cached layer:\w+ RUN .* \(main, /);
  const again = await build("1");
  expect(again.exitCode).toBe(0);
  expect(again.stderr).toContain("RUN spawned");
});

test("prune works on a full disk, on which nothing else does", async () => {
  const home = temporaryDirectory();
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", home]);
  try {
    const bough = (...words: string[]) =>
      runBough(["--local", ...words], { workingDirectory: home, environment: { BOUGH_HOME: home } });
    await bough("images", "import", await makeBusyboxLayout(temporaryDirectory()), "--tag", "busybox:1");
    fill(home);
    const { stderr, exitCode } = await bough("images");
    expect(stderr).toMatch(
      /cannot open the state file \S+: no space is left on the disk\n.*`bough engine prune`/,
    );
    expect(exitCode).toBe(1);
    expect((await bough("engine", "prune", "--all", "-y")).stdout).toContain("removed 1 image, 1 layer");
    expect((await bough("images")).exitCode).toBe(0);
  } finally {
    Bun.spawnSync(["umount", "-l", home]);
  }
});

function fill(directory: string): void {
  const { bavail, bsize } = statfsSync(directory);
  const { exitCode } = Bun.spawnSync(["fallocate", "-l", `${bavail * bsize}`, join(directory, "ballast")]);
  expect(exitCode).toBe(0);
}
