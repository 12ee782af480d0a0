/** Images whose layers are fetched when their files are needed: `POST /v1/images/remote`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { checkEngine } from "../../src/engine/check/check.ts";
import { NoRoomError } from "../../src/engine/import-limits.ts";
import { BoughError } from "../../src/errors.ts";
import { type BlobSource, MissingBlobError, verified } from "../../src/registry/blob-store.ts";
import { openBlobSource } from "../../src/registry/open-blob-store.ts";
import type { DeclaredImage, ImageLayer, ImageRecord } from "../../src/service/wire/image.ts";
import { TestEngine } from "../support/engine.ts";
import { readTar } from "../support/tar.ts";
import { tarOf } from "../support/tar-bytes.ts";

type Descriptor = NonNullable<ImageLayer["blob"]>;

const gzip = "application/vnd.oci.image.layer.v1.tar+gzip";
const digestOf = (bytes: Uint8Array) =>
  `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;

/** Blobs that were opened, by digest. */
const opened: string[] = [];
/** Changes what a store returns. */
let meddle: (store: BlobSource) => BlobSource = (store) => store;
/** Milliseconds by which the engine's clock is ahead. */
let ahead = 0;
const clock: Clock = {
  now: () => Date.now() + ahead,
  steady: () => (systemClock.steady?.() ?? Date.now()) + ahead,
  sleep: systemClock.sleep,
};

let work: string;
let blobs: string;
let source: string;
let engine: TestEngine;
/** The lowest layer of all images. */
let busybox: Descriptor;

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), "bough-remote-"));
  source = `dir:${work}/store`;
  blobs = join(work, "store/blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  engine = await TestEngine.open({
    clock,
    openBlobSource(address, dependencies) {
      const store = openBlobSource(address, dependencies);
      return meddle({
        ...store,
        openBlob(blob, signal, checks) {
          opened.push(blob.digest);
          return store.openBlob(blob, signal, checks);
        },
      });
    },
  });
  await using origin = await openOther();
  [busybox] = (await publish(origin, await origin.importBase())) as [Descriptor];
});
afterAll(async () => {
  await engine.close();
  rmSync(work, { recursive: true, force: true });
});

/** Opens an engine with a directory of its own. */
async function openOther() {
  const other = await TestEngine.open();
  return Object.assign(other, { [Symbol.asyncDispose]: () => other.close() });
}

/** Puts the layers of an image into the store. */
async function publish(from: TestEngine, image: string): Promise<Descriptor[]> {
  const { layers } = await from.json<{ layers: ImageLayer[] }>("GET", `/v1/images/${image}/layers`);
  const published: Descriptor[] = [];
  for (const { id, blob } of layers) {
    const archive = await (await from.fetch("GET", `/v1/images/${image}/layers/${id}`)).bytes();
    published.push(blob === undefined ? put(archive) : blob);
    if (blob !== undefined) writeFileSync(join(blobs, blob.digest.slice(7)), archive);
  }
  return published;
}

/** Puts an archive into the store, and returns its descriptor. */
function put(archive: Uint8Array): Descriptor {
  const bytes = Bun.gzipSync(Buffer.from(archive));
  writeFileSync(join(blobs, digestOf(bytes).slice(7)), bytes);
  return { media_type: gzip, digest: digestOf(bytes), size: bytes.byteLength, diff_id: digestOf(archive) };
}

let made = 0;
/** Makes a layer that no other image has. */
function newLayer(): Descriptor {
  return put(tarOf([{ name: "dir/own", content: `layer ${++made}` }]));
}

function declare(
  layers: readonly Descriptor[],
  more: Record<string, unknown> = {},
  to = engine,
): Promise<DeclaredImage> {
  const config = { Env: ["PATH=/bin"], Cmd: ["sh"] };
  return to.json("POST", "/v1/images/remote", { source, config, layers, ...more });
}

async function recordOf(image: string): Promise<ImageRecord | undefined> {
  const { images } = await engine.json<{ images: ImageRecord[] }>("GET", `/v1/images?uuid=${image}&sizes=1`);
  return images[0];
}

const countLayers = () => readdirSync(join(engine.directory, "layers")).length;

describe("a declared image", () => {
  test("is there at once, and nothing is fetched for what needs no files", async () => {
    const layers = [busybox, newLayer(), newLayer()];
    const before = { opened: opened.length, layers: countLayers() };
    const origin = { author: "ann", history: [{ created_by: "RUN x" }] };
    const { image, missing } = await declare(layers, { origin, tag: "remote:1" });
    expect(missing).toBe(3);
    // The same request, and the same image with another tag.
    expect(await declare(layers, { origin, tag: "remote:2" })).toEqual({ image, missing: 3 });
    expect((await declare(layers)).image).not.toBe(image);
    const bytes = layers.reduce((sum, { size }) => sum + size, 0);
    expect(await recordOf(image)).toMatchObject({ size: 0, missing_layers: 3, missing_bytes: bytes });
    const { images } = await engine.json<{ images: ImageRecord[] }>("GET", "/v1/images?tag=remote:2");
    expect(images).toMatchObject([{ uuid: image, oci_config: { Cmd: ["sh"] }, oci_author: "ann" }]);
    const listed = await engine.json<{ layers: ImageLayer[] }>("GET", `/v1/images/${image}/layers`);
    expect(listed.layers).toMatchObject(
      layers.map((blob) => ({ id: blob.digest.slice(7), is_remote: true, source, blob })),
    );
    const configured = await engine.json<{ uuid: string }>("POST", `/v1/images/${image}/config`, {
      config: { Cmd: ["other"] },
    });
    expect(await recordOf(configured.uuid)).toMatchObject({ missing_layers: 3 });
    const report = await checkEngine(engine.directory, {
      signal: new AbortController().signal,
      onProgress: () => undefined,
    });
    expect(report.damage).toEqual([]);
    expect({ opened: opened.length, layers: countLayers() }).toEqual(before);
  });

  test("is passed on as its blobs, which stay away", async () => {
    const layer = newLayer();
    const { image } = await declare([layer]);
    const archive = await engine.fetch("GET", `/v1/images/${image}/layers/${layer.digest.slice(7)}`);
    expect(archive.headers.get("content-type")).toBe(gzip);
    expect(digestOf(await archive.bytes())).toBe(layer.digest);
    expect(await recordOf(image)).toMatchObject({ missing_layers: 1 });
  });

  test("uses the layers that the engine has, and an image without layers needs none", async () => {
    const upper = newLayer();
    const { image } = await declare([busybox, upper]);
    await engine.run(image, "true");
    expect((await declare([busybox, upper], { config: { Cmd: ["x"] } })).missing).toBe(0);
    expect((await declare([busybox, upper, newLayer()])).missing).toBe(1);
    const scratch = await declare([]);
    expect(scratch.missing).toBe(0);
    expect((await declare([])).image).toBe(scratch.image);
    const list = await engine.json("GET", `/v1/inspect/${scratch.image}/list?path=/`);
    expect(list).toMatchObject({ files: [] });
  });

  test("is the same image as the imported one, if its configuration is sent", async () => {
    await using other = await openOther();
    const [architecture, layers] = [process.arch === "arm64" ? "arm64" : "amd64", [busybox]];
    const configuration = JSON.stringify({
      ...{ os: "linux", architecture, config: { Cmd: ["sh"] } },
      rootfs: { type: "layers", diff_ids: [busybox.diff_id] },
    });
    const { image } = await other.json<DeclaredImage>("POST", "/v1/images/remote", {
      ...{ source, configuration, layers },
    });
    const config = Buffer.from(configuration);
    writeFileSync(join(blobs, digestOf(config).slice(7)), config);
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        config: { mediaType: "application/json", digest: digestOf(config), size: config.length },
        layers: [{ mediaType: gzip, digest: busybox.digest, size: busybox.size }],
      }),
    );
    writeFileSync(join(blobs, digestOf(manifest).slice(7)), manifest);
    const described = { mediaType: "x", digest: digestOf(manifest), size: manifest.length };
    writeFileSync(join(work, "store/index.json"), JSON.stringify({ manifests: [described] }));
    expect(await other.importBase("same:1", `oci:${work}/store`)).toBe(image);
    expect((await other.run(image, "echo here")).stdout).toBe("here\n");
    const again = await other.json("POST", "/v1/images/remote", { source, configuration, layers });
    expect(again).toEqual({ image, missing: 0 });
    const identity = `linux/${architecture} ${digestOf(config)}`;
    const { images } = await other.json<{ images: ImageRecord[] }>("GET", `/v1/images?uuid=${image}`);
    expect(images).toMatchObject([{ identity }]);
  });
});

describe("is fetched for", () => {
  const inspect = (route: string) => async (image: string) => {
    const response = await engine.fetch("GET", `/v1/inspect/${image}/${route}`);
    expect(response.status).toBe(200);
    return response.text();
  };
  const content = async (image: string) => (await inspect("download?path=/dir/own")(image)).slice(0, 5);
  test.each<[string, (image: string, base: string) => Promise<unknown>, unknown]>([
    ["a command", async (image) => (await engine.run(image, "cat /dir/own")).stdout.slice(0, 5), "layer"],
    ["files", async (image) => content((await engine.run(image, "", { entries: {} })).image ?? ""), "layer"],
    [
      "a copy from it",
      async (image, base) => {
        const copies = [{ image, sources: ["/dir/own"], destination: "/dir/own" }];
        return content((await engine.run(base, "", { copies })).image ?? "");
      },
      "layer",
    ],
    [
      "a mount of it",
      async (image, base) => {
        const mounts = [{ type: "bind" as const, image, source: "/dir", target: "/mnt", readonly: true }];
        return (await engine.run(base, "cut -c1-5 /mnt/own", { mounts })).stdout;
      },
      "layer\n",
    ],
    ["a list", async (image) => JSON.parse(await inspect("list?path=/dir")(image)).files.length, 1],
    ["a file", content, "layer"],
    ["an archive", async (image) => (await inspect("archive?path=/dir")(image)).includes("layer "), true],
    ["a search", async (image) => (await inspect("grep?pattern=layer&path=/dir")(image)).length > 0, true],
    [
      "its changes",
      async (image) => {
        const { layers } = await engine.json<{ layers: { added: object }[] }>(
          "GET",
          `/v1/images/${image}/changes`,
        );
        return layers.at(-1)?.added;
      },
      { files: 1, bytes: expect.any(Number) },
    ],
    [
      "a digest",
      async (image) => {
        const selection = { sources: ["/dir"] };
        return typeof (await engine.json("POST", `/v1/inspect/${image}/digest`, selection)).digest;
      },
      "string",
    ],
  ])("%s", async (_name, use, result) => {
    const { image: base } = await declare([busybox]);
    const layer = newLayer();
    const { image } = await declare([busybox, layer]);
    expect(await use(image, base)).toEqual(result);
    expect(await recordOf(image)).not.toHaveProperty("missing_layers");
    // A later push has the same blob.
    const listed = await engine.json<{ layers: ImageLayer[] }>("GET", `/v1/images/${image}/layers`);
    expect(listed.layers[1]).toMatchObject({ blob: layer, source });
    expect(listed.layers[1]).not.toHaveProperty("is_remote");
    expect(opened.filter((digest) => digest === layer.digest)).toHaveLength(1);
  });
});

test("a fetched image has the files that the original has", async () => {
  await using origin = await openOther();
  let image = await origin.importBase();
  for (const command of [
    "mkdir -p /a/b; echo 1 > /a/b/f; ln /a/b/f /a/l; ln -s /a /s; chown 7:8 /a/b; chmod 4711 /a/b/f",
    "rm /a/l /bin/wc; rm -r /home; mkdir /home; touch /home/new; ln /a/b/f /a/m",
    "mkfifo /p; mv /usr /moved; setfattr -n user.x -v y /a 2>/dev/null; touch -d @5 /a",
  ])
    image = (await origin.run(image, command)).image ?? "";
  const declared = await declare(await publish(origin, image));
  const files = async (of: TestEngine, uuid: string) => {
    const { body } = await of.fetch("GET", `/v1/inspect/${uuid}/archive?path=/`);
    return body === null ? [] : await Array.fromAsync(readTar(body));
  };
  expect(await files(engine, declared.image)).toEqual(await files(origin, image));
});

test("each layer is fetched once, although several want it at once", async () => {
  const layers = [busybox, newLayer(), newLayer(), newLayer()];
  const images = await Promise.all([2, 3, 4, 4].map((count) => declare(layers.slice(0, count))));
  const before = opened.length;
  const done = await Promise.all(images.map(({ image }) => engine.run(image, "cat /dir/own")));
  expect(done.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0]);
  const fetched = opened.slice(before).filter((digest) => digest !== busybox.digest);
  expect(fetched.sort()).toEqual(
    layers
      .slice(1)
      .map(({ digest }) => digest)
      .sort(),
  );
});

test("the command's events tell what is fetched", async () => {
  const layer = newLayer();
  const { image } = await declare([busybox, layer]);
  const { uuid } = await engine.start({ image, command: "true" });
  const messages = (await engine.events(uuid)).flatMap(({ type, data }) =>
    type === "progress" ? [data.message] : [],
  );
  expect(messages[0]).toBe(`Fetching 1 layer (0.0 MB) from ${source}`);
  expect(messages.at(-1)).toBe("Unpacked layer 1 of 1");
});

describe("a layer that can't be fetched:", () => {
  const blobFile = ({ digest }: Descriptor) => join(blobs, digest.slice(7));
  const failing = (openBlob: BlobSource["openBlob"]) => () => {
    meddle = (store) => ({ ...store, openBlob });
  };
  test.each<[string, (layer: Descriptor) => void, string]>([
    ["forgotten", (layer) => rmSync(blobFile(layer)), "has no blob"],
    ["damaged", (layer) => writeFileSync(blobFile(layer), Buffer.alloc(layer.size, 1)), "digest"],
    ["too short", (layer) => writeFileSync(blobFile(layer), ""), "bytes"],
    [
      "damaged in a way that its store does not notice",
      (layer) =>
        failing(async () =>
          (async function* () {
            yield Buffer.alloc(layer.size, 1);
          })(),
        )(),
      ": layer sha256:",
    ],
    [
      "endless",
      failing(async (blob) =>
        verified(
          (async function* () {
            for (;;) yield new Uint8Array(1000);
          })(),
          blob,
          "what came",
        ),
      ),
      "more than",
    ],
    [
      "from a registry that is gone",
      failing(async () => {
        throw new Error("connection refused");
      }),
      "connection refused",
    ],
  ])("%s", async (_name, harm, reason) => {
    const layers = [busybox, newLayer(), newLayer()];
    const { image } = await declare(layers);
    const [, below, layer] = layers as [Descriptor, Descriptor, Descriptor];
    const saved = await Bun.file(blobFile(layer)).bytes();
    await engine.run((await declare(layers.slice(0, 2))).image, "true");
    harm(layer);
    try {
      const { operation } = await engine.run(image, "true");
      expect(operation.status).toBe("FAILED");
      expect(operation.error).toStartWith(
        `image ${image} can no longer be used: its layer ${layer.digest} cannot be fetched from ${source}: `,
      );
      expect(operation.error).toContain(reason);
      // Until it is tried again, the image does not exist.
      expect(await recordOf(image)).toBeUndefined();
      const refused = await engine.fetch("GET", `/v1/inspect/${image}/list?path=/`);
      expect([refused.status, await refused.text()]).toEqual([424, expect.stringContaining(reason)]);
      const again = await engine.fetch("POST", "/v1/images/remote", { source, config: {}, layers });
      expect(again.status).toBe(424);
      expect((await declare([busybox, below])).missing).toBe(0);
    } finally {
      meddle = (store) => store;
      writeFileSync(blobFile(layer), saved);
      ahead += 61_000;
    }
    expect(await recordOf(image)).toMatchObject({ missing_layers: 1 });
    expect((await engine.run(image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
  });

  test("forged: its content is not what the image is declared to have, now or later", async () => {
    const forged = { ...newLayer(), diff_id: digestOf(Buffer.from("other")) };
    const { image } = await declare([busybox, forged]);
    const { operation } = await engine.run(image, "true");
    const reason = `its layer ${forged.digest} in ${source} is forged: its content is not ${forged.diff_id}`;
    expect(operation.error).toBe(`image ${image} can no longer be used: ${reason}`);
    ahead += 61_000;
    expect(await recordOf(image)).toBeUndefined();
    const layers = [busybox, forged];
    const again = await engine.fetch("POST", "/v1/images/remote", { source, config: {}, layers });
    expect([again.status, await again.text()]).toEqual([424, expect.stringContaining(reason)]);
  });

  describe("is fetched from another place that has it if it is", () => {
    const second = () => `dir:${work}/second`;
    const inSecond = ({ digest }: Descriptor) => join(work, "second/blobs/sha256", digest.slice(7));
    const harms: [string, (layer: Descriptor) => Descriptor][] = [
      [
        "missing",
        (layer) => {
          rmSync(inSecond(layer));
          return layer;
        },
      ],
      [
        "damaged",
        (layer) => {
          writeFileSync(inSecond(layer), Buffer.alloc(layer.size, 1));
          return layer;
        },
      ],
      [
        "forged",
        (layer) => {
          const forged = put(tarOf([{ name: "dir/own", content: "forged" }]));
          cpSync(blobFile(forged), inSecond(forged));
          return { ...forged, diff_id: layer.diff_id };
        },
      ],
      [
        "in a store that does not respond",
        (layer) => {
          meddle = (store) => ({
            ...store,
            openBlob: (...of) =>
              store.address === second()
                ? Promise.reject(new Error("connection refused"))
                : store.openBlob(...of),
          });
          return layer;
        },
      ],
    ];
    test.each(harms)("%s", async (_, harm) => {
      const layer = newLayer();
      mkdirSync(join(work, "second/blobs/sha256"), { recursive: true });
      cpSync(blobFile(layer), inSecond(layer));
      try {
        const harmed = harm(layer);
        const { image } = await declare([busybox, layer]);
        const latest = { source: second() };
        expect((await declare([busybox, harmed], latest)).image).toBe(image);
        const { uuid } = await engine.start({ image, command: "cat /dir/own" });
        const events = await engine.events(uuid);
        const messages = events.flatMap(({ type, data }) => (type === "progress" ? [data.message] : []));
        const begin = `its layer ${harmed.digest} cannot be fetched from ${second()}: `;
        expect(messages).toContainEqual(
          expect.stringMatching(new RegExp(`^${begin}.*: trying another source$`)),
        );
        expect((await engine.run(image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
      } finally {
        meddle = (store) => store;
        ahead += 61_000;
      }
    });

    test.each(harms.filter(([what]) => what !== "forged"))(
      "%s, and passed on from there",
      async (_, harm) => {
        const layer = newLayer();
        mkdirSync(join(work, "second/blobs/sha256"), { recursive: true });
        cpSync(blobFile(layer), inSecond(layer));
        try {
          const { image } = await declare([layer]);
          await declare([layer], { source: second() });
          const id = layer.digest.slice(7);
          harm(layer);
          const read = async () => {
            const response = await engine.fetch("GET", `/v1/images/${image}/layers/${id}`);
            return digestOf(await response.bytes());
          };
          // What is damaged is seen at its end.
          const first = await read().catch(() => "damaged");
          expect(first === "damaged" ? await read() : first).toBe(layer.digest);
        } finally {
          meddle = (store) => store;
          ahead += 61_000;
        }
      },
    );
  });

  test("an image that was declared with another source meanwhile is fetched from there", async () => {
    const layer = newLayer();
    const { image } = await declare([busybox, layer], { source: `dir:${work}/none` });
    expect((await engine.run(image, "true")).operation.error).toContain(`from dir:${work}/none: `);
    expect((await declare([busybox, layer])).image).toBe(image);
    expect((await engine.run(image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
  });

  test.each([
    ["a full disk", () => Object.assign(new Error("ENOSPC"), { code: "ENOSPC" })],
    ["too little space", () => new NoRoomError(`no space left on the disk that holds ${work}: x`)],
  ])("%s is no fault of the layer, which stays to be fetched", async (_name, error) => {
    meddle = (store) => ({ ...store, openBlob: () => Promise.reject(error()) });
    const { image } = await declare([busybox, newLayer()]);
    const { operation } = await engine.run(image, "true");
    meddle = (store) => store;
    expect(operation.error).toStartWith("no space left on the disk that holds ");
    expect((await engine.run(image, "cat /dir/own")).exitCode).toBe(0);
  });

  test.each<[string, (layer: Descriptor) => void]>([
    ["is missing", (layer) => rmSync(blobFile(layer))],
    ["has another digest", (layer) => writeFileSync(blobFile(layer), Buffer.alloc(layer.size, 1))],
    ["is too short", (layer) => writeFileSync(blobFile(layer), "")],
  ])("other layers of its source can be used if one %s", async (_, harm) => {
    const [layer, other] = [newLayer(), newLayer()];
    const images = [await declare([busybox, layer]), await declare([busybox, other])] as const;
    const saved = await Bun.file(blobFile(layer)).bytes();
    harm(layer);
    expect((await engine.run(images[0].image, "true")).operation.status).toBe("FAILED");
    expect((await engine.run(images[1].image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
    writeFileSync(blobFile(layer), saved);
    ahead += 61_000;
  });

  test("a command that needs several images ends with the first that fails, and nothing else is fetched for it", async () => {
    const [lost, slow] = [newLayer(), newLayer()];
    const { promise: asked, resolve: begin } = Promise.withResolvers<void>();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    meddle = (store) => ({
      ...store,
      async openBlob(blob, signal) {
        if (blob.digest === lost.digest) {
          await asked;
          throw new MissingBlobError("it is lost");
        }
        signal.addEventListener("abort", () => leave());
        begin();
        return new Promise<never>((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        );
      },
    });
    const [{ image }, other] = [await declare([lost]), await declare([slow])];
    const copies = [{ image: other.image, sources: ["/dir"], destination: "/" }];
    const { operation } = await engine.run(image, "", { copies });
    expect(operation.error).toContain("it is lost");
    await left;
    meddle = (store) => store;
    ahead += 61_000;
  });

  test("a fetch that nobody waits for any more ends, and what has come of it goes", async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    failing(async (_blob, signal) => {
      resolve();
      return (async function* () {
        yield new Uint8Array(1);
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      })();
    })();
    const { image } = await declare([busybox, newLayer()]);
    const { uuid } = await engine.start({ image, command: "true" });
    await asked;
    meddle = (store) => store;
    await engine.json("DELETE", `/v1/operations/${uuid}`);
    expect((await engine.finish({ uuid })).status).toBe("CANCELLED");
    expect((await engine.run(image, "cat /dir/own")).exitCode).toBe(0);
    await isEmpty(join(engine.directory, "operations"));
  });
});

describe("on a server", () => {
  /** What the store of a source connects with. */
  let connect: (input: string) => Promise<Response>;
  let served: TestEngine;
  beforeAll(async () => {
    served = await TestEngine.open({
      isServer: true,
      clock,
      openBlobSource(address, dependencies) {
        connect = dependencies.fetch;
        if (address.startsWith("docker://wrong")) throw new BoughError("no such repository");
        return openBlobSource(source, dependencies);
      },
    });
  });
  afterAll(() => served.close());
  const declareFrom = (host: string, layers: readonly Descriptor[]) =>
    declare(layers, { source: `docker://${host}.test/x` }, served);

  test("no client replaces the source of another's layer, unless it has failed", async () => {
    const layers = [busybox, newLayer()];
    const { image } = await declareFrom("right", layers);
    await declareFrom("wrong", layers);
    expect((await served.run(image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
    const others = [busybox, newLayer()];
    const second = await declareFrom("wrong", others);
    expect((await served.run(second.image, "true")).operation.error).toContain("no such repository");
    expect((await declareFrom("right", others)).image).toBe(second.image);
    expect((await served.run(second.image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
  });

  test("a layer that is passed on to nobody leaves no connection open", async () => {
    const layer = newLayer();
    const { image } = await declareFrom("right", [layer]);
    const { body } = await served.fetch("GET", `/v1/images/${image}/layers/${layer.digest.slice(7)}`);
    await body?.cancel();
    // The proxy that stands between them has gone.
    await expect(connect("http://192.0.2.1/")).rejects.toThrow();
  });
});

describe("with several processes", () => {
  let home: string;
  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), "bough-shared-"));
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  test("a killed one leaves the image as it was", async () => {
    const layers = [busybox, newLayer(), newLayer()];
    await using before = await openIn(home);
    const { image } = await declare(layers, {}, before);
    const script = join(import.meta.dir, "../support/fetching-process.ts");
    const child = Bun.spawn([process.execPath, script, home, image, layers[2]?.digest ?? ""], {
      stdout: "pipe",
    });
    for await (const _ of child.stdout) break;
    child.kill("SIGKILL");
    await child.exited;
    await using after = await openIn(home);
    const { images } = await after.json<{ images: object[] }>("GET", `/v1/images?uuid=${image}&sizes=1`);
    expect(images).toMatchObject([{ missing_layers: 3 }]);
    expect((await after.run(image, "cat /dir/own")).stdout).toBe(`layer ${made}`);
    await isEmpty(join(home, "operations"));
    expect(readdirSync(join(home, "layers"))).toHaveLength(3);
  });

  test("two that fetch the same layers at once do no harm", async () => {
    const layers = [busybox, newLayer(), newLayer()];
    await using one = await openIn(home);
    await using other = await openIn(home);
    const { image } = await declare(layers, {}, one);
    const ran = await Promise.all([one, other].map((each) => each.run(image, "cat /dir/own")));
    expect(ran.map(({ stdout }) => stdout)).toEqual([`layer ${made}`, `layer ${made}`]);
    const signal = new AbortController().signal;
    expect((await checkEngine(home, { signal, onProgress: () => undefined })).damage).toEqual([]);
  });
});

/** An operation's directory goes a moment after its last event. */
async function isEmpty(directory: string): Promise<void> {
  while (readdirSync(directory).length > 0) await Bun.sleep(5);
}

async function openIn(directory: string) {
  const opened = await TestEngine.open({ directory });
  return Object.assign(opened, { [Symbol.asyncDispose]: () => opened.engine.close() });
}

test.each<[string, Record<string, unknown>, string]>([
  ["a source of an unknown kind", { source: "oci:/x" }, "source must be"],
  ["a source with a query", { source: "docker://host/name?x" }, "source must be"],
  [
    "a layer that is no archive",
    { layers: [{ media_type: "text/plain", size: 1 }] },
    "layers[0].media_type is not",
  ],
  [
    "a digest of another kind",
    { layers: [{ media_type: gzip, size: 1, digest: "md5:1" }] },
    "layers[0].digest",
  ],
  [
    "a layer larger than any image",
    { layers: [{ media_type: gzip, size: 2 ** 50 }] },
    "layers[0].size is more than",
  ],
  ["an unknown field", { layer: [] }, "layer is not a known field"],
  ["no platform", { platform: "linux/riscv64/x/y" }, "invalid platform"],
  ["an invalid tag", { tag: "A B" }, "is not a valid tag"],
  [
    "a configuration of other layers",
    { config: undefined, configuration: `{"rootfs": {"diff_ids": ["sha256:${"0".repeat(64)}"]}}` },
    "the configuration names other layers",
  ],
])("refuses %s", async (_name, request, problem) => {
  const body = { source, config: {}, layers: [busybox], ...request };
  const response = await engine.fetch("POST", "/v1/images/remote", body);
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(problem)]);
});

test("images that are not here are removed, alone and by a prune", async () => {
  const { image } = await declare([newLayer(), newLayer()]);
  await engine.json("DELETE", `/v1/images/${image}`);
  expect(await recordOf(image)).toBeUndefined();
});
