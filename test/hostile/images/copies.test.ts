/** Copies between images with links to files of this machine, and of huge trees: no file of the machine is read or changed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ImageCopy } from "../../../src/service/wire/instance.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { TestEngine } from "../../support/engine.ts";
import { openUserEngine } from "../../support/user-engine.ts";
import { makeCanary } from "../canary.ts";

const canary = makeCanary(join(temporaryDirectory(), "canary"), { empty: "", "deep/file": "machine" });
const climb = "../".repeat(20);

const sourceTree = `mkdir -p /s/x /s/y; echo image > /s/file; echo image > /s/x/empty; ln -s ${canary.path} /out;
  ln -s ${climb}${canary.path} /climb; ln -s ${canary.path}/deep/file /s/y/file; ln -s loop /loop; mkdir /real; ln -s /real /ok`;
/** The second layer puts links where the first one has directories. */
const baseTrees = [
  "mkdir -p /d/x /e/y /lower/deep; touch /d/x/there",
  `rm -r /d/x /lower; ln -s ${canary.path} /d/x; ln -s ${canary.path} /lower; ln -s ${climb}${canary.path} /climb;
   ln -s ${canary.path}/empty /file; ln -s ${canary.path}/new/deep /dangling; ln -s ${canary.path}/empty /d/file`,
];

/** Copies with their outcome: an error message, or the output of a command in the resulting image. */
const attacks: [string, Omit<ImageCopy, "image">, { says: string } | { shows: string; as: string }][] = [
  ["a source that is a link out", { sources: ["/out"], destination: "/t" }, { says: '"/out": not found' }],
  ["a source that climbs out", { sources: ["/climb/deep/*"], destination: "/t" }, { says: "not found" }],
  ["a source with ..", { sources: [`${climb}${canary.path}`], destination: "/t" }, { says: "not found" }],
  [
    "a source that is a link to itself",
    { sources: ["/loop"], destination: "/t" },
    { says: "too many links" },
  ],
  [
    "links out in a tree stay links",
    { sources: ["/s"], destination: "/t" },
    { shows: "readlink /t/y/file", as: `${canary.path}/deep/file` },
  ],
  [
    "a destination that is a link out",
    { sources: ["/s/file"], destination: "/file" },
    { shows: `cat ${canary.path}/empty`, as: "image" },
  ],
  [
    "a destination behind a link out",
    { sources: ["/s/file"], destination: "/lower/empty" },
    { shows: `cat ${canary.path}/empty`, as: "image" },
  ],
  [
    "a destination that climbs out",
    { sources: ["/s/x"], destination: "/climb/" },
    { shows: `cat ${canary.path}/empty`, as: "image" },
  ],
  [
    "a destination with ..",
    { sources: ["/s/x"], destination: `/d/${climb}${canary.path}` },
    { shows: `cat ${canary.path}/empty`, as: "image" },
  ],
  [
    "a missing directory behind a link out",
    { sources: ["/s/x"], destination: "/dangling/new" },
    { shows: `cat ${canary.path}/new/deep/new/empty`, as: "image" },
  ],
  [
    "a directory onto a link out",
    { sources: ["/s"], destination: "/d" },
    { says: "cannot copy to non-directory: /d/x" },
  ],
  [
    "a file onto a link out",
    { sources: ["/s/file"], destination: "/d/" },
    { shows: "cat /d/file; readlink /d/file", as: "image" },
  ],
  [
    "--parents through links out",
    { sources: ["/out/deep/*"], destination: "/t", parents: true },
    { shows: "ls /t 2>&1 | wc -l", as: "0" },
  ],
];

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  let engine: TestEngine;
  let source: string;
  let base: string;
  beforeAll(async () => {
    engine = await (who === "root" ? TestEngine.open() : openUserEngine());
    base = who === "root" ? await engine.importBase() : "tag:busybox:latest";
    source = (await engine.run(base, sourceTree)).image ?? "";
    for (const tree of baseTrees) base = (await engine.run(base, tree)).image ?? "";
  });
  afterAll(() => engine.close());

  test.each(attacks)("%s", async (_, request, expected) => {
    const before = canary.state();
    for (const command of ["", "true"]) {
      const copies = [{ image: source, ...request }];
      const { operation, image } = await engine.run(base, command, { copies });
      if ("says" in expected) expect(operation.error).toContain(expected.says);
      else expect((await engine.run(image ?? "", expected.shows)).stdout.trim()).toBe(expected.as);
    }
    expect(canary.state()).toBe(before);
  });

  test.each([
    [
      "a tree with paths that are too long",
      "mkdir /deep; cd /deep; i=0; while [ $i -lt 20 ]; do n=$(printf %0250d 0); mkdir $n && cd $n; i=$((i+1)); done",
      "/deep: a path in it is longer than Linux allows",
    ],
    ["a name of the maximum length", "mkdir /deep; touch /deep/$(printf %0255d 0)", ""],
  ])("%s", async (_, command, says) => {
    const made = await engine.run(source, command);
    const copies = [{ image: made.image ?? "", sources: ["/deep"], destination: "/t" }];
    const { operation } = await engine.run(base, "", { copies });
    expect(operation.error ?? says).toBe(says);
    // An operation's directory is removed just after its end is reported.
    while (who === "root" && readdirSync(join(engine.directory, "operations")).length > 0) await Bun.sleep(1);
  });
});

test("a copy of very many files can be cancelled and limited", async () => {
  const engine = await TestEngine.open();
  try {
    const base = await engine.importBase();
    const many = await engine.run(base, "mkdir /many; cd /many; seq 30000 | xargs touch");
    const copies = [{ image: many.image ?? "", sources: ["/many"], destination: "/copy", uid: 5 }];
    const started = await engine.start({ image: base, command: "", copies });
    const cancelled = await engine.fetch("DELETE", `/v1/operations/${started.uuid}`);
    expect(cancelled.status).toBe(202);
    expect((await engine.finish(started)).status).toBe("CANCELLED");
    const late = await engine.run(base, "", {
      copies,
      timeout: 1,
      resources_limits: { max_layer_bytes: 1 << 20 },
    });
    expect(late.operation.status).toBe("FAILED");
    expect(readdirSync(join(engine.directory, "operations"))).toEqual([]);
  } finally {
    await engine.close();
  }
});
