/** Malicious archives on the command line, as root and as an ordinary user, for whom bough works in a user namespace. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  archiveOf,
  dockerFiles,
  ociFiles,
  type RawFiles,
  type RawImage,
  writeRawFiles,
} from "../../support/image-bytes.ts";
import { type RawEntry, tarOf } from "../../support/tar-bytes.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "../state/builder.ts";

const image = (entries: readonly RawEntry[]): RawImage => ({ layers: [tarOf(entries)] });
const harmless = image([{ name: "attacker", content: "was here" }]);
const throughLink = (canary: string): RawEntry[] => [
  { name: "x", flag: "2", target: canary },
  { name: "x/deep/er/file", content: "the attacker's", mode: 0o4777 },
];

interface Attack {
  /** The build context. */
  files: (canary: string) => RawFiles;
  command: readonly string[];
  /** Part of the error; undefined if the image is imported, but reaches no file outside of it. */
  refusal?: string;
}

const attacks: [string, Attack][] = [
  [
    "a Dockerfile that names an archive with a link out of it",
    {
      files: (canary) =>
        new Map([
          ["Dockerfile", Buffer.from("FROM oci-archive:./base.tar\n")],
          ["base.tar", archiveOf(ociFiles(harmless), throughLink(canary))],
        ]),
      command: ["build", "."],
      refusal: "names files of this machine",
    },
  ],
  [
    "a Dockerfile that names such an archive, with --allow-local-from",
    {
      files: (canary) =>
        new Map([
          ["Dockerfile", Buffer.from("FROM oci-archive:./base.tar\n")],
          ["base.tar", archiveOf(ociFiles(harmless), throughLink(canary))],
        ]),
      command: ["build", ".", "--allow-local-from"],
    },
  ],
  [
    "an archive of docker save with a link out of it",
    {
      files: (canary) => new Map([["base.tar", archiveOf(dockerFiles(harmless), throughLink(canary))]]),
      command: ["images", "import", "docker-archive:BASE"],
    },
  ],
  [
    "an archive whose index is a link to a file of the machine",
    {
      files: (canary) =>
        new Map([["base.tar", tarOf([{ name: "index.json", flag: "2", target: `${canary}/secret` }])]]),
      command: ["images", "import", "oci-archive:BASE"],
      refusal: "whose target is not in the archive",
    },
  ],
  [
    "an image without its last layer",
    {
      files: () =>
        new Map([
          [
            "base.tar",
            archiveOf(ociFiles({ ...harmless, manifest: (manifest) => ({ ...manifest, layers: [] }) })),
          ],
        ]),
      command: ["images", "import", "oci-archive:BASE"],
      refusal: "0 layers, its configuration has 1",
    },
  ],
  [
    "an image with an extra layer",
    {
      files: () =>
        new Map([
          [
            "base.tar",
            archiveOf(
              dockerFiles(harmless, (same) => ({ ...same, Layers: Array(2).fill("layer-0/layer.tar") })),
            ),
          ],
        ]),
      command: ["images", "import", "docker-archive:BASE"],
      refusal: "2 layers, its configuration has 1",
    },
  ],
  [
    "a layer that writes through a link",
    {
      files: (canary) => new Map([["base.tar", archiveOf(ociFiles(image(throughLink(canary))))]]),
      command: ["images", "import", "oci-archive:BASE"],
    },
  ],
];

describe.each(builders)("as %s", (_, make) => {
  let builder: Builder;
  let canary: Canary;

  beforeAll(async () => {
    builder = await make();
    canary = makeCanary(builder.home);
    builder.own(canary.path);
  }, 180_000);
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  test.each(attacks)("%s", async (_, { files, command, refusal }) => {
    writeRawFiles(builder.context, files(canary.path));
    builder.own(builder.context);
    const before = canary.state();
    const words = command.map((word) => word.replace("BASE", join(builder.context, "base.tar")));
    const target = words[1] === "." ? ["build", builder.context, ...words.slice(2)] : words;
    const { exitCode, stderr } = await builder.bough(target);
    expect(canary.state()).toBe(before);
    expect(readdirSync(join(builder.engine, "operations"))).toEqual([]);
    expect(stderr).not.toContain("goroutine");
    if (refusal === undefined)
      expect({ exitCode, errors: /\[ERROR\].*/.exec(stderr)?.[0] }).toEqual({
        exitCode: 0,
        errors: undefined,
      });
    else expect([exitCode === 0, stderr]).toEqual([false, expect.stringContaining(refusal)]);
  });
});
