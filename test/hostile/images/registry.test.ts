/** Registries that send something other than the image they name. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import {
  digestOf,
  ociFiles,
  type RawDescriptor,
  type RawImage,
  type RawManifest,
} from "../../support/image-bytes.ts";
import { tarOf } from "../../support/tar-bytes.ts";
import { type ImportingEngine, openImportingEngine } from "../importing.ts";

let importing: ImportingEngine;
let server: Bun.Server<undefined> | undefined;
let count = 0;

beforeAll(async () => {
  importing = await openImportingEngine({ hasSkopeo: true });
});
afterEach(() => server?.stop(true));
afterAll(() => importing.engine.close());

const numbered = (): Uint8Array<ArrayBuffer> => tarOf([{ name: "number", content: `registry ${count++}` }]);

/** Serves one image as `app:1`; `send` may replace the response for a digest. Returns the address to import from. */
function serve(raw: RawImage, send: (digest: string) => Response | undefined = () => undefined): string {
  const files = ociFiles(raw);
  const index = JSON.parse(new TextDecoder().decode(files.get("index.json")));
  const manifest = index.manifests[0] as RawDescriptor;
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v2/") return new Response("{}");
      const [, kind, name = ""] = /^\/v2\/app\/(manifests|blobs)\/(.+)$/.exec(pathname) ?? [];
      const digest = name === "1" ? manifest.digest : name;
      const content = files.get(`blobs/sha256/${digest.slice("sha256:".length)}`);
      if (kind === undefined || content === undefined) return new Response("", { status: 404 });
      const headers = {
        "content-type": kind === "manifests" ? manifest.mediaType : "application/octet-stream",
      };
      return send(digest) ?? new Response(new Uint8Array(content), { headers });
    },
  });
  return `docker://127.0.0.1:${server.port}/app:1`;
}

const layered = (change: (layers: RawDescriptor[]) => RawDescriptor[]): RawImage => ({
  layers: [numbered(), numbered()],
  manifest: (manifest: RawManifest) => ({ ...manifest, layers: change(manifest.layers) }),
});
const zeros = () => Bun.gzipSync(tarOf([{ name: "x", content: new Uint8Array(64 * 1024 ** 2) }]));
const endless = () =>
  new Response(
    new ReadableStream<Uint8Array>({
      async pull(controller) {
        await Bun.sleep(1);
        controller.enqueue(crypto.getRandomValues(new Uint8Array(64 * 1024)));
      },
    }),
  );

test.each<[string, () => string, string]>([
  [
    "a manifest without its last layer",
    () => serve(layered((layers) => layers.slice(0, 1))),
    "1 layer, its configuration has 2",
  ],
  ["a manifest without any layer", () => serve(layered(() => [])), "0 layers, its configuration has 2"],
  [
    "a manifest with a layer twice",
    () => serve(layered((layers) => [...layers, ...layers.slice(0, 1)])),
    "3 layers, its configuration has 2",
  ],
  ["layers in reverse order", () => serve(layered((layers) => layers.toReversed())), "damaged or forged"],
  [
    "another layer than the configuration's",
    () => serve({ layers: [numbered()], diffIds: [digestOf(Buffer.from("the genuine one"))] }),
    "damaged or forged",
  ],
  [
    "a digest that is a path",
    () =>
      serve(
        layered(([first, ...rest]) => [
          { ...first, digest: "sha256:../../../etc/passwd" } as RawDescriptor,
          ...rest,
        ]),
      ),
    "skopeo: ",
  ],
  [
    "another layer under the same digest",
    () => {
      const raw = { layers: [numbered()] };
      return serve(raw, (digest) =>
        digest === digestOf(raw.layers[0] as Uint8Array) ? new Response(numbered()) : undefined,
      );
    },
    "skopeo: ",
  ],
  [
    "another manifest under the same name, without layers",
    () =>
      serve({
        layers: [numbered()],
        manifest: ({ config }) => ({
          schemaVersion: 2,
          mediaType: "application/vnd.oci.image.manifest.v1+json",
          config,
          layers: [],
        }),
      }),
    "0 layers, its configuration has 1",
  ],
  [
    "a gzip bomb",
    () => {
      const bomb = zeros();
      return serve({ layers: [bomb] });
    },
    "unpacks to more than 33 MB",
  ],
  [
    "an endless layer",
    () => {
      const raw = { layers: [numbered()] };
      return serve(raw, (digest) =>
        digest === digestOf(raw.layers[0] as Uint8Array) ? endless() : undefined,
      );
    },
    "unpacks to more than 33 MB",
  ],
])(
  "%s is not stored",
  async (_, address, message) => {
    await importing.expectRefused(address(), message);
  },
  180_000,
);

test("a forged image does not block the genuine one", async () => {
  const layers = [numbered(), tarOf([{ name: "etc/login", content: "asks for a password" }])];
  const forged = serve({
    layers,
    manifest: (manifest) => ({ ...manifest, layers: manifest.layers.slice(0, 1) }),
  });
  await importing.expectRefused(forged, "damaged or forged");
  await server?.stop(true);
  const genuine = await importing.importFrom(serve({ layers }));
  expect(await importing.textIn(genuine, "/etc/login")).toBe("asks for a password");
});

test("a layer compressed with zstd is imported", async () => {
  const layer = tarOf([{ name: "packed", content: "with zstd" }]);
  const operation = await importing.importFrom(
    serve({ layers: [Bun.zstdCompressSync(layer)], diffIds: [digestOf(layer)] }),
  );
  expect(await importing.textIn(operation, "/packed")).toBe("with zstd");
});

test("the bytes of a layer that comes slowly are reported before it is complete", async () => {
  const layer = tarOf([{ name: "x", content: crypto.getRandomValues(new Uint8Array(60_000)) }]);
  const rest = Promise.withResolvers<undefined>();
  const slowly = () =>
    new Response(
      new ReadableStream<Uint8Array>({
        async start(controller) {
          controller.enqueue(layer.subarray(0, layer.length - 1));
          await rest.promise;
          controller.enqueue(layer.subarray(-1));
          controller.close();
        },
      }),
    );
  const url = serve({ layers: [layer] }, (digest) => (digest === digestOf(layer) ? slowly() : undefined));
  const { engine } = importing;
  const operation = await engine.json<{ uuid: string }>("POST", "/v1/images/import", { registry: { url } });
  const eventsSoFar = async () =>
    (await engine.fetch("GET", `/v1/operations/${operation.uuid}/events`)).text();
  while (!(await eventsSoFar()).includes("Downloaded 0.1 MB")) await Bun.sleep(50);
  rest.resolve(undefined);
  expect((await engine.finish(operation)).status).toBe("SUCCESS");
}, 180_000);
