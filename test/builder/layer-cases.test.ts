/**
 * Golden cases of chain hashes: a home that an earlier version has filled keeps its layers, so these never change. `test/cases/layers/`
 * has a Dockerfile each, with options of `bough build` in its lines that begin with `#$`, and beside it the hashes of its steps in both
 * dialects, on a service without extensions and on one with all that count. `UPDATE_GOLDEN=1 ./scripts/test` writes these.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";
import { tarOf } from "../support/tar-bytes.ts";

/** The service's address, which is part of chain hashes: the same in every run, whatever its port is. */
const address = "http://service.test";

/** What changes how layers are made, and how they are named. */
const extensions = [
  ...["config", "identity", "entries", "copies", "mounts", "scratch", "platforms", "image-list"],
  ...["file-times", "hard-links", "entry-attributes", "devices", "host-network", "extra-hosts", "home"],
];

const services: Record<string, readonly string[] | undefined> = {
  "a service without extensions": undefined,
  "a service with extensions": extensions,
};

const cases = join(import.meta.dir, "../cases/layers");
/** A clock a minute ahead of the files: the state of files that were just written is not recorded. */
const later: Clock = { ...systemClock, now: () => Date.now() + 60_000 };

describe("the layers of", () => {
  const dockerfiles = readdirSync(cases).filter((name) => name.endsWith(".Dockerfile"));
  test.each(dockerfiles.sort())("%s", async (name) => {
    const path = join(cases, name);
    const shown: string[] = [];
    for (const [service, extensions] of Object.entries(services))
      for (const dialect of [[], ["--docker"]]) {
        const what = ["bough build", ...dialect, ...optionsIn(path)].join(" ");
        shown.push(`$ ${what}, on ${service}`, ...(await layersOf(path, dialect, extensions)), "");
      }
    expectGolden(path.replace(/Dockerfile$/, "txt"), `${shown.join("\n").trimEnd()}\n`);
  });
});

function optionsIn(path: string): string[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.flatMap((line) => (line.startsWith("#$ ") ? line.slice(3).split(" ") : []));
}

/** Builds twice: a second build finds each layer of the first. */
async function layersOf(
  path: string,
  dialect: readonly string[],
  extensions: readonly string[] | undefined,
): Promise<string[]> {
  const service = await startService(extensions);
  const context = makeContext(path);
  const metadata = join(temporaryDirectory(), "built.json");
  const environment = { BOUGH_HOME: temporaryDirectory(), TOKEN: "token" };
  const build = async (): Promise<BuiltStep[] | string> => {
    const words = [
      "--url",
      address,
      "--token",
      "t",
      "build",
      ".",
      "--metadata-file",
      metadata,
      ...dialect,
      ...optionsIn(path),
    ];
    const { exitCode, stderr } = await runBough(words, {
      workingDirectory: context,
      environment,
      clock: later,
      fetch: (input, init) =>
        String(input).startsWith("http://files.test/")
          ? Promise.resolve(new Response("content"))
          : fetch(typeof input === "string" ? input.replace(address, service.url) : input, init),
    });
    if (exitCode !== 0) return stderr.split("\n").find((line) => line.includes("ERROR")) ?? stderr;
    return JSON.parse(readFileSync(metadata, "utf8")).steps;
  };
  try {
    const first = await build();
    const second = await build();
    if (typeof first === "string" || typeof second === "string") return [String(first)];
    const layers = ({ layer, instruction }: BuiltStep) => `${layer ?? "-"} ${instruction}`;
    expect(second.map(layers)).toEqual(first.map(layers));
    // The service makes an image for each FROM scratch.
    const again = second.filter(
      ({ cached, instruction }) => cached === false && !instruction.startsWith("FROM"),
    );
    expect(again).toEqual([]);
    return first.map(layers);
  } finally {
    await service.close();
  }
}

interface BuiltStep {
  layer: string | null;
  cached: boolean | null;
  instruction: string;
}

async function startService(extensions: readonly string[] | undefined): Promise<FakeService> {
  const service = await startFakeService(extensions === undefined ? {} : { extensions });
  const { state } = service;
  if (extensions !== undefined) {
    const { addImage } = state;
    state.addImage = function (tag) {
      const image = addImage.call(this, tag);
      const record = state.images.get(image);
      if (record === undefined) throw new Error("an image that was added is there");
      const oci_config = { Env: ["PATH=/usr/bin:/bin", "INHERITED=yes"] };
      const identity = `linux/amd64 ${tag ?? "scratch"}`;
      state.images.set(image, { ...record, identity, oci_config });
      return image;
    };
  }
  for (const tag of ["base:1", "other:1"]) state.addImage(tag);
  const files = {
    "/etc/passwd": "root:x:0:0::/root:/bin/sh\napp:x:1001:1002::/home/app:/bin/sh\n",
    "/etc/group": "root:x:0:\nstaff:x:50:\napp:x:1002:\n",
    "/etc/os-release": "ID=test\n",
    "/src/a.txt": "a",
    "/src/b.txt": "b",
    "/usr/bin/tool": "tool",
    "/t": "t",
    "/y": "y",
    "/bin/sh": "",
  };
  for (const directory of ["/bin", "/etc", "/src", "/usr", "/usr/bin", "/var", "/tmp"])
    state.tree.set(directory, { type: "directory" });
  for (const [path, content] of Object.entries(files)) state.tree.set(path, { type: "file", content });
  return service;
}

function makeContext(dockerfile: string): string {
  const context = temporaryDirectory();
  const archive = tarOf([
    { name: "unpacked/", flag: "5", mode: 0o750, uid: 7, gid: 8 },
    { name: "unpacked/file", mode: 0o600, uid: 7, gid: 8, content: "in the archive" },
    { name: "unpacked/link", flag: "2", target: "file" },
  ]);
  writeFiles(context, {
    "a.txt": { text: "a\n", mode: 0o644 },
    "dir/x.txt": { text: "x\n", mode: 0o644 },
    "dir/x.md": { text: "# x\n", mode: 0o600 },
    "dir/sub/y.txt": { text: "y\n", mode: 0o755 },
    link: { link: "a.txt" },
    "link-to-directory": { link: "dir" },
    "one-name": { text: "names\n", mode: 0o644 },
    "other-name": { hardLink: "one-name" },
    empty: { mode: 0o755 },
    "dir/sub": { mode: 0o700 },
    dir: { mode: 0o755 },
    ".": { mode: 0o755 },
  });
  writeFileSync(join(context, "archive.tar"), archive);
  chmodSync(join(context, "archive.tar"), 0o644);
  copyFileSync(dockerfile, join(context, "Dockerfile"));
  chmodSync(join(context, "Dockerfile"), 0o644);
  return context;
}
