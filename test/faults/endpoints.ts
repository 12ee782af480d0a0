/** Every call of the client to a service, with the smallest piece of work that makes it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Service } from "../../src/service/client.ts";
import type { LocalFile } from "../../src/service/files/upload.ts";
import type { FakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";

export interface Endpoint {
  /** The call as in the API's documentation; also the name of its golden file. */
  name: string;
  /** The calls that meet with the fault: `METHOD /path`. */
  calls: RegExp;
  /** Does everything that precedes the calls, and returns the function that makes them. */
  prepare(service: Service, fake: FakeService): Promise<() => Promise<unknown>>;
}

const request = { command: "make", shell: true, cwd: "/", disposable: false, timeout: 600 };
const spawn = async (service: Service, fake: FakeService) =>
  await service.spawn({ ...request, image: fake.state.addImage() });

export const endpoints: readonly Endpoint[] = [
  {
    name: "GET /v1/whoami",
    calls: /^GET \/v1\/whoami$/,
    prepare: async (service) => () => service.whoami(),
  },
  {
    name: "GET /v1/images",
    calls: /^GET \/v1\/images$/,
    prepare: async (service, fake) => {
      fake.state.addImage("app:1");
      return () => service.findImage("app:1");
    },
  },
  {
    name: "POST /v1/images/import",
    calls: /^POST \/v1\/images\/import$/,
    prepare: async (service) => () =>
      service.importImage({
        url: "docker://docker.io/library/alpine:3.20",
        tag: "alpine:3.20",
        timeoutSeconds: 60,
      }),
  },
  {
    name: "PATCH /v1/images/{uuid}/tag",
    calls: /^PATCH .*\/tag$/,
    prepare: async (service, fake) => {
      const image = fake.state.addImage();
      return () => service.tagImage(image, "app:1");
    },
  },
  {
    name: "DELETE /v1/images/{uuid}/tag",
    calls: /^DELETE .*\/tag$/,
    prepare: async (service, fake) => {
      const image = fake.state.addImage("app:1");
      return () => service.untagImage(image);
    },
  },
  {
    name: "GET /v1/files/{sha256}",
    calls: /^GET \/v1\/files\//,
    prepare: async (service) => {
      const file = localFile(1_500_000);
      return () => service.uploadFiles([file]);
    },
  },
  {
    name: "POST /v1/files (a small file)",
    calls: /^POST \/v1\/files$/,
    prepare: async (service) => {
      const file = localFile(1000);
      return () => service.uploadFiles([file]);
    },
  },
  {
    name: "POST /v1/files (a large file)",
    calls: /^POST \/v1\/files$/,
    prepare: async (service) => {
      const file = localFile(1_500_000);
      return () => service.uploadFiles([file]);
    },
  },
  {
    name: "POST /v1/files (a stream)",
    calls: /^POST \/v1\/files$/,
    prepare: async (service) => () => service.uploadStream(new Blob(["streamed"]).stream()),
  },
  {
    name: "POST /v1/instances",
    calls: /^POST \/v1\/instances$/,
    prepare: async (service, fake) => {
      const image = fake.state.addImage();
      return () => service.spawn({ ...request, image });
    },
  },
  {
    name: "GET /v1/operations",
    calls: /^GET \/v1\/operations$/,
    prepare: async (service) => () => service.listOperations({ limit: 10 }),
  },
  {
    name: "GET /v1/operations/{uuid}",
    calls: /^GET \/v1\/operations\/[^/]+$/,
    prepare: async (service, fake) => {
      const operation = await spawn(service, fake);
      fake.intercept = ({ url }) => (url.includes("/events") ? new Response("", { status: 404 }) : undefined);
      return () => service.follow(operation);
    },
  },
  {
    name: "GET /v1/operations/{uuid}/events",
    calls: /\/events$/,
    prepare: async (service, fake) => {
      const operation = await spawn(service, fake);
      return () => service.follow(operation);
    },
  },
  {
    name: "DELETE /v1/operations/{uuid}",
    calls: /^DELETE \/v1\/operations\//,
    prepare: async (service, fake) => {
      const operation = await spawn(service, fake);
      return () => service.cancel(operation);
    },
  },
  {
    name: "GET /v1/inspect/{uuid}/list",
    calls: /^GET \/v1\/inspect\/.*\/list$/,
    prepare: async (service, fake) => {
      const image = fake.state.addImage();
      return () => service.listFiles(image, "/");
    },
  },
  {
    name: "GET /v1/inspect/{uuid}/download (whole)",
    calls: /^GET \/v1\/inspect\/.*\/download$/,
    prepare: async (service, fake) => {
      const image = imageWithFile(fake);
      return () => service.readFile(image, "/etc/passwd");
    },
  },
  {
    name: "GET /v1/inspect/{uuid}/download (a stream)",
    calls: /^GET \/v1\/inspect\/.*\/download$/,
    prepare: async (service, fake) => {
      const image = imageWithFile(fake);
      return async () => new Response(await service.openFile(image, "/etc/passwd")).text();
    },
  },
  {
    name: "GET /v1/inspect/{uuid}/archive",
    calls: /^GET \/v1\/inspect\/.*\/archive$/,
    prepare: async (service, fake) => {
      const image = fake.state.addImage();
      return async () => new Response(await service.openArchive(image, "/")).bytes();
    },
  },
];

function imageWithFile({ state }: FakeService): string {
  state.tree.set("/etc/passwd", { type: "file", content: "root:x:0:0:root:/root:/bin/sh\n" });
  return state.addImage();
}

function localFile(size: number): LocalFile {
  const absolutePath = join(temporaryDirectory(), "file");
  const bytes = new Uint8Array(size).fill(7);
  writeFileSync(absolutePath, bytes);
  return { absolutePath, size, sha256: new Bun.CryptoHasher("sha256").update(bytes).digest("hex") };
}
