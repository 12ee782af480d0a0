/** On the engine, each COPY, ADD and WORKDIR that makes files has a layer of its own. */
import { beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const environment = { BOUGH_HOME: "" };
const bough = (context: string, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: context, environment });

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  expect((await bough("/", "images", "import", layout, "--tag", "busybox:1")).exitCode).toBe(0);
});

interface InspectedLayer {
  instruction: string;
  id: number;
  size: number;
}

async function layersOf(context: string, image: string): Promise<InspectedLayer[]> {
  return JSON.parse((await bough(context, "inspect", image, "-f", "json")).stdout).layers;
}

describe.each(["--docker", "--no-docker"])("a build with %s", (mode) => {
  const build = (context: string, ...options: string[]) => bough(context, "build", ".", mode, ...options);

  function contextOf(dockerfile: string): string {
    const context = temporaryDirectory();
    const files = { "large/a": "a".repeat(2_000_000), "large/b": "b", small: `${mode} small`, "sub/f": "f" };
    writeFiles(context, { Dockerfile: dockerfile, ...files });
    return context;
  }

  test("stores a changed file alone, beside a large COPY before it", async () => {
    const context = contextOf("FROM busybox:1\nCOPY large /large\nCOPY small /\n");
    const first = (await build(context, "-q")).stdout.trim();
    writeFileSync(join(context, "small"), "changed");
    const second = (await build(context, "-q")).stdout.trim();
    const [before, after] = [await layersOf(context, first), await layersOf(context, second)];
    expect(after.map(({ instruction }) => instruction).slice(1)).toEqual([
      "COPY large /large",
      "COPY small /",
    ]);
    expect(after.slice(0, 2).map(({ id }) => id)).toEqual(before.slice(0, 2).map(({ id }) => id));
    expect(after[2]).toMatchObject({ size: "changed".length });
    expect(after[2]?.id).not.toBe(before[2]?.id);
  });

  test("makes a directory of WORKDIR, and no layer if it exists", async () => {
    const context = contextOf("FROM busybox:1\nWORKDIR /made/app\nWORKDIR /bin\nCOPY small /made/app/\n");
    const image = (await build(context, "-q")).stdout.trim();
    const layers = await layersOf(context, image);
    expect(layers.map(({ instruction }) => instruction).slice(1)).toEqual([
      "WORKDIR /made/app",
      "COPY small /made/app/",
    ]);
  });

  test("keeps a COPY cached under another ENV, ARG and USER, and explains the file that changes it", async () => {
    const context = contextOf("FROM busybox:1\nCOPY large /large\nCOPY small sub/f /s/\n");
    await build(context);
    const changed = "FROM busybox:1\nENV A=1\nARG B=2\nUSER 5\nCOPY large /large\nCOPY small sub/f /s/\n";
    writeFiles(context, { Dockerfile: changed });
    expect((await build(context)).stderr).toContain("2 of 2 layers cached");
    writeFileSync(join(context, "sub/f"), "other");
    const explained = (await build(context, "--explain")).stderr;
    expect(explained).toMatch(
      /not cached: line 6, COPY small sub\/f \/s\/: sub\/f \(\/s\/f in the image\) has changed/,
    );
    expect(explained).toContain("1 of 2 layers cached");
    expect((await build(context, "--explain")).stderr).toContain(
      "every layer is cached: there is nothing to explain",
    );
  });

  test("needs no shell for an image that only copies", async () => {
    const context = contextOf("FROM scratch\nWORKDIR /w\nCOPY --chown=3:4 small .\nCOPY sub /d\n");
    const image = (await build(context, "-q")).stdout.trim();
    expect((await bough(context, "cat", `${image}:/w/small`)).stdout).toBe(`${mode} small`);
    expect(await layersOf(context, image)).toHaveLength(3);
  });
});

test("explains a COPY --from by the stage and the path that have changed", async () => {
  const context = temporaryDirectory();
  const stages = (text: string) =>
    `FROM busybox:1 AS made\nRUN mkdir -p /out/d; echo ${text} > /out/d/f; echo x > /same\nFROM busybox:1\nCOPY --from=made /same /out /all/\n`;
  writeFiles(context, { Dockerfile: stages("one") });
  expect((await bough(context, "build", ".", "--docker")).exitCode).toBe(0);
  writeFiles(context, { Dockerfile: stages("two") });
  const { stderr } = await bough(context, "build", ".", "--docker", "--explain");
  expect(stderr).toContain("line 4, COPY --from=made /same /out /all/: /out in --from=made has changed\n");
});

test("two stages that copy the same files over one base make one layer", async () => {
  const context = temporaryDirectory();
  const stage = "FROM busybox:1 AS NAME\nCOPY f /f\nRUN echo NAME > /made\n";
  const last = "FROM busybox:1\nCOPY --from=one /made /1\nCOPY --from=two /made /2\n";
  const stages = ["one", "two"].map((name) => stage.replaceAll("NAME", name)).join("");
  writeFiles(context, { Dockerfile: stages + last, f: "shared by two stages" });
  const { stderr, exitCode } = await bough(context, "build", ".", "--docker");
  expect(exitCode).toBe(0);
  expect(stderr.match(/COPY spawned .* COPY f \/f/g)).toHaveLength(1);
});
