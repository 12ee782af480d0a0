/** Directories of a context that another process replaces by links to this machine's files while a build reads them. */
import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { openLocalBough } from "../support/local-bough.ts";

let bough: Awaited<ReturnType<typeof openLocalBough>>;
beforeAll(async () => {
  bough = await openLocalBough();
});

const files = 20;
const builds = 40;
/** A deep path: a swap while it is followed is likely. */
const deep = Array(200).fill("d").join("/");

/** Swaps the directory `sub` for the link `link`, and back, until it is killed. The link stays for long enough to be read. */
const swapper = `
while (1) {
  rename "sub", "kept"; rename "link", "sub";
  select undef, undef, undef, rand() * 0.02;
  rename "sub", "link"; rename "kept", "sub";
  select undef, undef, undef, rand() * 0.005;
}`;

/** Prints what of the host is in `/sub`, so that no part of the Dockerfile's own text matches. */
const search =
  "(grep -r HO''ST /sub; find /sub -name 'HO*ST'; ls -lR /sub | grep HO''ST) | sed s/HO/GH/; true";

test.each([
  ["COPY sub", `COPY sub/${deep} /sub\nRUN ${search}`],
  ["a bind mount", `RUN --mount=type=bind,source=sub/${deep},target=/sub ${search}`],
])("%s brings nothing of the host into the image", async (_, instructions) => {
  const context = temporaryDirectory();
  const host = temporaryDirectory();
  for (const [directory, content] of [
    [join(context, "sub"), "own"],
    [host, "HOST"],
  ] as const) {
    const names = Array.from({ length: files }, (_, index) => `${deep}/deep/${index}`);
    writeFiles(directory, Object.fromEntries(names.map((name) => [name, `${content} ${name}\n`])));
    mkdirSync(join(directory, deep, `${content}-directory`));
    symlinkSync(`${content}-target`, join(directory, deep, "link"));
  }
  writeFiles(host, { [`${deep}/deep/HOST`]: "" });
  symlinkSync(host, join(context, "link"));
  writeFiles(context, {
    Dockerfile: `FROM base:1\n${instructions}\n`,
    ".dockerignore": "link\nkept\n",
  });

  const attack = Bun.spawn(["perl", "-e", swapper], { cwd: context });
  try {
    for (let build = 0; build < builds; build++) {
      const { stderr } = await bough(context, "build", "--no-cache", ".");
      expect(stderr).not.toContain("GHST");
      expect(stderr).not.toContain("bough itself failed");
    }
  } finally {
    attack.kill();
    await attack.exited;
  }
});
