/** `GET /v1/images/{uuid}/changes`: the files that each layer adds, changes and deletes. */
import { expect, test } from "bun:test";
import type { ImageLayerChanges, LayerChange } from "../../src/service/wire/image.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

/** Commands, each making a layer on the one before, and the layer's changes. */
const steps: [command: string, changes: string[]][] = [
  [
    "mkdir -p /d/e; echo 1234 > /d/e/f; echo 123 > /d/g; ln /d/g /d/h; ln -s g /d/l; mkfifo -m 640 /d/p",
    [
      "added directory 0755 /d 0",
      "added directory 0755 /d/e 0",
      "added file 0644 /d/e/f 5",
      "added file 0644 /d/g 4",
      // Another name of the same file.
      "added file 0644 /d/h 0",
      "added other 0640 /d/p 0",
      "added symlink 0777 /d/l 0",
    ],
  ],
  [
    "rm -rf /d/e; chmod 600 /d/h",
    ["changed file 0600 /d/h 4 hides 1 of 4", "deleted directory 0755 /d/e 0 hides 1 of 5"],
  ],
  ["chmod 700 /d; true > /d/h", ["changed directory 0700 /d 0", "changed file 0600 /d/h 0 hides 1 of 4"]],
  [
    "rm -rf /d; mkdir -m 700 /d; echo 12 > /d/g; echo 1 > /d/n",
    [
      "added file 0644 /d/n 2",
      "changed file 0644 /d/g 3 hides 1 of 4",
      "deleted file 0600 /d/h 0 hides 1 of 0",
      "deleted other 0640 /d/p 0 hides 1 of 0",
      "deleted symlink 0777 /d/l 0 hides 1 of 0",
    ],
  ],
  ["rm -rf /d; echo 12345 > /d", ["changed file 0644 /d 6 hides 2 of 5"]],
  ["rm /d; mkdir /d; echo > /d/g", ["added file 0644 /d/g 1", "changed directory 0755 /d 0 hides 1 of 6"]],
];

const { engine, base } = await openSharedEngine();
/** An image with a layer that `image` does not have. */
const other = (await engine.run(base, "touch /other")).image ?? "";
let image = base;
for (const [command] of steps) image = (await engine.run(image, command)).image ?? "";

const summaries = async (of = image) =>
  (await engine.json<{ layers: ImageLayerChanges[] }>("GET", `/v1/images/${of}/changes`)).layers;

const changesOf = (layer: string, query = "") =>
  engine.json<{ changes: LayerChange[]; total: number }>(
    "GET",
    `/v1/images/${image}/changes/${layer}${query}`,
  );

function show({ kind, type, mode, path, size, hidden }: LayerChange): string {
  const hides = hidden.files === 0 ? "" : ` hides ${hidden.files} of ${hidden.bytes}`;
  return `${kind} ${type} ${mode.toString(8).padStart(4, "0")} ${path} ${size}${hides}`;
}

test.each(steps.map(([command, changes], index) => [command, index + 1, changes] as const))(
  "%s",
  async (_, index, expected) => {
    const layer = (await summaries())[index];
    const { changes, total } = await changesOf(layer?.id ?? "");
    expect(changes.map(show).sort()).toEqual([...expected].sort());
    expect(total).toBe(expected.length);
  },
);

test("the summary has the files and bytes of each layer, and those that later layers hide", async () => {
  const [base, ...layers] = await summaries();
  expect(base).toMatchObject({
    is_imported: true,
    deleted: { files: 0, bytes: 0 },
    hidden: { files: 0, bytes: 0 },
  });
  const text = ({ files, bytes }: { files: number; bytes: number }) => `${files}/${bytes}`;
  expect(
    layers.map(({ added, changed, deleted, hidden }) =>
      [added, changed, deleted, hidden].map(text).join(" "),
    ),
  ).toEqual([
    "5/9 0/0 0/0 5/9",
    "0/0 1/4 1/5 1/4",
    "0/0 1/0 0/0 1/0",
    "1/2 1/3 3/0 2/5",
    "0/0 1/6 0/0 1/6",
    "1/1 0/0 0/0 0/0",
  ]);
});

test("the largest changes come first, up to the limit", async () => {
  const [base] = await summaries();
  const { changes, total } = await changesOf(base?.id ?? "", "?limit=2");
  expect(changes.map(({ path }) => path)).toContain("/bin/busybox");
  expect(changes).toHaveLength(2);
  expect(total).toBeGreaterThan(200);
});

test.each<[what: string, status: number, path: () => string | Promise<string>]>([
  ["another image's layer", 404, async () => `${image}/changes/${(await summaries(other)).at(-1)?.id}`],
  ["an unknown layer", 404, () => `${image}/changes/1-1`],
  ["a missing image", 404, () => `${crypto.randomUUID()}/changes`],
  ["a limit of 0", 400, async () => `${image}/changes/${(await summaries()).at(-1)?.id}?limit=0`],
])("%s is %d", async (_, status, path) => {
  expect((await engine.fetch("GET", `/v1/images/${await path()}`)).status).toBe(status);
});
