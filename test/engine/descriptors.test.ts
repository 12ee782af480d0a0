/** Every operation and request closes its descriptors however it ends, since a server runs for months. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { readdirSync, renameSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { entriesOf } from "../../src/builder/archives/read-archive.ts";
import { listen } from "../../src/cli/engine/serve.ts";
import { withGzip } from "../../src/engine/http/gzip.ts";
import { readTar } from "../../src/image/tar-reader.ts";
import { leftOpen } from "../support/descriptors.ts";
import { openInput } from "../support/engine.ts";
import { archiveOf, dockerFiles, ociFiles, type RawImage } from "../support/image-bytes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";
import { tarOf } from "../support/tar-bytes.ts";

const { engine, base } = await openSharedEngine();
let count = 0;
await engine.run(base, "true");
// The content is larger than all buffers, and cannot be compressed.
const large = (await engine.run(base, "head -c 30000000 /dev/urandom > /large")).image ?? "";

describe("no descriptor stays open after an import of", () => {
  const image = (more: Partial<RawImage> = {}): RawImage => ({
    layers: [tarOf([{ name: `number-${count++}`, content: crypto.getRandomValues(new Uint8Array(60_000)) }])],
    ...more,
  });
  const importFrom = async (kind: string, bytes: Uint8Array, cancels = false): Promise<string> => {
    const path = join(engine.directory, `base-${count++}.tar`);
    writeFileSync(path, bytes);
    const body = { registry: { url: `${kind}:${path}` } };
    const operation = await engine.json<{ uuid: string }>("POST", "/v1/images/import", body);
    if (cancels) await engine.fetch("DELETE", `/v1/operations/${operation.uuid}`);
    return (await engine.finish(operation)).status;
  };
  const large = (): Uint8Array =>
    archiveOf(ociFiles(image()), [{ name: "beside", content: new Uint8Array(40_000_000) }]);
  const forged = (): RawImage => image({ diffIds: [`sha256:${"0".repeat(64)}`] });

  test.each<[string, string, () => Uint8Array, string]>([
    ["an archive of a layout", "oci-archive", () => archiveOf(ociFiles(image())), "SUCCESS"],
    ["an archive of docker save", "docker-archive", () => archiveOf(dockerFiles(image())), "SUCCESS"],
    ["a gzip archive", "oci-archive", () => gzipSync(archiveOf(ociFiles(image()))), "SUCCESS"],
    ["a forged layer", "oci-archive", () => archiveOf(ociFiles(forged())), "FAILED"],
    [
      "a layer in an unsupported compression",
      "oci-archive",
      () => archiveOf(ociFiles(image({ layers: [Buffer.from("BZh91AY&SY")] }))),
      "FAILED",
    ],
    ["an archive that is cut off", "oci-archive", () => large().subarray(0, 20_000_000), "FAILED"],
    ["a gzip archive that is cut off", "oci-archive", () => gzipSync(large()).subarray(0, 20_000), "FAILED"],
    ["an archive without a layout", "oci-archive", () => archiveOf(dockerFiles(image())), "FAILED"],
  ])("%s", async (_, kind, bytes, status) => {
    expect(await leftOpen(async () => expect(await importFrom(kind, bytes())).toBe(status))).toEqual([]);
  });

  test.each(["plain", "gzip"])("a %s archive that is cancelled", async (packing) => {
    const bytes = packing === "gzip" ? gzipSync(large()) : large();
    expect(await leftOpen(() => importFrom("oci-archive", bytes, true))).toEqual([]);
  });
});

describe("no descriptor stays open after a command", () => {
  test.each<[string, string]>([
    ["that succeeds", "echo x > /x"],
    ["that fails", "echo x; exit 3"],
    ["that can't be started", "exec /missing"],
  ])("%s", async (_, command) => {
    expect(await leftOpen(() => engine.run(base, command))).toEqual([]);
  });

  test("that is cancelled", async () => {
    const cancel = async () => {
      const running = await engine.start({ image: base, command: "cat", stdin: openInput });
      await engine.fetch("DELETE", `/v1/operations/${running.uuid}`);
      await engine.finish(running);
    };
    expect(await leftOpen(cancel)).toEqual([]);
  });

  test("whose sandbox can't be set up once its layers are mounted", async () => {
    const fail = async () => {
      const running = await engine.start({ image: base, command: "cat", cwd: "/proc/self" });
      expect((await engine.finish(running)).status).toBe("FAILED");
    };
    expect(await leftOpen(fail)).toEqual([]);
  });
});

test("no descriptor stays open after a look into an image whose layers can't be mounted", async () => {
  const [name = ""] = readdirSync(join(engine.directory, "scratch"));
  // Without its lowest directory, bough can't mount the layers itself. Nor can it write the instructions for mount(8).
  const needed = ["empty", `scratch/${name}`].map((path) => join(engine.directory, path));
  for (const path of needed) renameSync(path, `${path}.away`);
  try {
    const look = async () =>
      expect((await engine.fetch("GET", `/v1/inspect/${large}/archive`)).status).toBe(500);
    expect(await leftOpen(look)).toEqual([]);
  } finally {
    for (const path of needed) renameSync(`${path}.away`, path);
  }
});

describe("no descriptor stays open after a client breaks off", () => {
  let server: ReturnType<typeof listen>;
  beforeAll(() => {
    const handler = withGzip((request) => engine.engine.fetch(request));
    server = listen({ kind: "tcp", hostname: "127.0.0.1", port: 0 }, handler, () => {});
  });
  afterAll(() => server.stop(true));

  const connect = async () => {
    const socket = createConnection(Number(server.port), "127.0.0.1");
    socket.on("error", () => {});
    await once(socket, "connect");
    return socket;
  };
  /** Sends a request, reads `pieces` of the response and breaks the connection off. */
  const leave = async (request: string, pieces: number) => {
    const socket = await connect();
    socket.write(`${request}\r\n\r\n`);
    for (let piece = 0; piece < pieces; piece++) await once(socket, "data");
    socket.destroy();
  };
  /** Does the same as a client in the engine's own process. */
  const leaveBody = async (path: string, pieces: number) => {
    const reader = (await engine.fetch("GET", path)).body?.getReader();
    for (let piece = 0; piece < pieces; piece++) await reader?.read();
    await reader?.cancel();
  };
  const leaveOften = async (request: string, pieces: number) => {
    for (let time = 0; time < 3; time++) await leave(request, pieces);
  };
  const get = (path: string, header = "") => `GET ${path} HTTP/1.1\r\nHost: x${header}`;

  test.each<[string, string]>([
    ["uncompressed", ""],
    ["gzip", "\r\nAccept-Encoding: gzip"],
  ])("a download, an archive and a layer: %s", async (_, header) => {
    const layers = (await engine.json<{ layers: { id: string }[] }>("GET", `/v1/images/${large}/layers`))
      .layers;
    const paths = [
      `/v1/inspect/${large}/download?path=/large`,
      `/v1/inspect/${base}/download?path=/bin/busybox`,
      `/v1/inspect/${large}/archive?path=/`,
      `/v1/inspect/${base}/archive?path=/`,
      `/v1/images/${large}/layers/${layers.at(-1)?.id}`,
    ];
    for (const path of paths) {
      for (const pieces of [0, 1, 3]) {
        expect(await leftOpen(() => leaveOften(get(path, header), pieces))).toEqual([]);
        expect(await leftOpen(() => leaveBody(path, pieces))).toEqual([]);
      }
    }
  });

  test.each([1, 10_000])("the archive of a COPY --from after %d entries", async (wanted) => {
    const body = async () => {
      const { body } = await engine.fetch("GET", `/v1/inspect/${large}/archive?path=/`);
      if (body === null) throw new Error("an archive is expected");
      return body;
    };
    const read = async (entries: AsyncIterable<unknown>) => {
      let count = 0;
      for await (const _ of entries) if (++count === wanted) break;
    };
    expect(await leftOpen(async () => read(readTar(await body())))).toEqual([]);
    expect(await leftOpen(async () => read(entriesOf(await body(), readTar)))).toEqual([]);
  });

  test("events of a running or finished command", async () => {
    const running = await engine.start({
      image: base,
      command: "yes | head -c 3000000; cat",
      stdin: openInput,
    });
    const over = await engine.run(base, "yes | head -c 3000000");
    for (const uuid of [running.uuid, over.operation.uuid])
      for (const follow of [true, false]) {
        const path = `/v1/operations/${uuid}/events?follow=${follow}`;
        for (const pieces of [0, 1, 2]) {
          expect(await leftOpen(() => leaveOften(get(path), Math.min(pieces, 1)))).toEqual([]);
          expect(await leftOpen(() => leaveBody(path, pieces))).toEqual([]);
        }
      }
    await engine.closeInput(running);
    await engine.finish(running);
  });

  test.each([
    ["Content-Length: 1000000", ""],
    ["Transfer-Encoding: chunked", "186a0\r\n"],
  ])("an upload with %s", async (header, size) => {
    const stored = () => readdirSync(join(engine.directory, "scratch"), { recursive: true }).length;
    const before = stored();
    const upload = async () => {
      const socket = await connect();
      socket.write(`POST /v1/files HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n${size}${"x".repeat(100_000)}`);
      while (stored() === before) await Bun.sleep(1);
      socket.destroy();
      while (stored() > before) await Bun.sleep(1);
    };
    expect(await leftOpen(upload)).toEqual([]);
  });
});
