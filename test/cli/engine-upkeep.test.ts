/** `bough engine df` and `bough engine prune`, on an engine that has built something. */
import { expect, test } from "bun:test";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

test("prune says what it would remove, removes it with -y, and leaves what tags and builds use", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const context = temporaryDirectory();
  const bough = (...words: string[]) =>
    runBough(["--local", ...words], { workingDirectory: context, environment });

  expect((await bough("engine", "df")).stderr).toContain("there is no engine in");
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough("images", "import", layout, "--tag", "busybox:1");
  writeFiles(context, {
    Dockerfile:
      "FROM busybox:1\nCOPY big /big\nRUN --mount=type=cache,target=/c echo built | tee /c/x > /built\n",
    big: "x".repeat(100_000),
  });
  const image = (await bough("build", "-q")).stdout;

  const usage = JSON.parse((await bough("-f", "json", "engine", "df")).stdout);
  expect(usage).toMatchObject({ images: { count: 2, tagged: 1 }, layers: { count: 2 }, files: { count: 1 } });
  expect(usage.caches).toMatchObject({ count: 1 });
  expect(usage.files.bytes).toBeGreaterThanOrEqual(100_000);
  expect((await bough("engine", "df")).stdout).toMatch(/^caches +1 +\S+ .+ of RUN --mount=type=cache$/m);
  expect((await bough("engine", "df")).stdout).toMatch(/^images +2 +- +1 tagged$/m);

  const planned = await bough("engine", "prune");
  expect(planned.stdout).toStartWith("would remove 0 images, 0 layers, 1 uploaded file, ");
  expect(planned.stderr).toContain("-y does it");
  expect(JSON.parse((await bough("-f", "json", "engine", "df")).stdout)).toEqual(usage);

  expect((await bough("engine", "prune", "-y")).stdout).toStartWith(
    "removed 0 images, 0 layers, 1 uploaded file, ",
  );
  expect(JSON.parse((await bough("-f", "json", "engine", "df")).stdout).caches).toEqual({
    count: 0,
    bytes: 0,
  });
  expect((await bough("build", "-q")).stdout).toBe(image);
  // What was uploaded is gone: it is sent again, and said so.
  const fresh = await bough("build", "--no-cache");
  expect(fresh.exitCode).toBe(0);
  expect(fresh.stderr).toContain("the service no longer has 1 uploaded file: sending again");

  const everything = await bough("engine", "prune", "--all", "-y");
  expect(everything.stdout).toContain("tags that are gone: busybox:1");
  expect((await bough("images", "-q")).stdout).toBe("");
});
