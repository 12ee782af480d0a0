/** Requests that every service refuses, and how. */
import type { CallParts } from "./client.ts";

const nobody = "00000000-0000-4000-8000-00000000dead";
const image = "IMAGE";
const instance = { image, command: "true" };

/** `IMAGE` stands for the image's id. */
export const refusals: readonly [name: string, call: string, parts: CallParts & { error: number }][] = [
  [
    "an image's tag that is none",
    "PATCH /images/{imageUUID}/tag",
    { ...of(image), json: { tag: "No Tag" }, error: 400 },
  ],
  ["no tag for an image", "PATCH /images/{imageUUID}/tag", { ...of(image), json: {}, error: 400 }],
  [
    "a tag for an unknown image",
    "PATCH /images/{imageUUID}/tag",
    { ...of(nobody), json: { tag: "a:1" }, error: 404 },
  ],
  ["an unknown image's tags away", "DELETE /images/{imageUUID}/tag", { ...of(nobody), error: 404 }],
  [
    "a tag that the image has not",
    "DELETE /images/{imageUUID}/tag",
    { ...of(image), query: { tag: "a:1" }, error: 404 },
  ],
  ["a page of none", "GET /images", { query: { limit: 0 }, error: 400 }],
  ["a page that is too long", "GET /images", { query: { limit: 1001 }, error: 400 }],
  ["an import of nothing", "POST /images/import", { json: {}, error: 400 }],
  [
    "an import with a tag that is none",
    "POST /images/import",
    { json: { registry: { url: "docker://a/b" }, tag: "A B" }, error: 400 },
  ],
  [
    "an import with an unknown field",
    "POST /images/import",
    { json: { registry: { url: "docker://a/b", mirror: "c" } }, error: 400 },
  ],
  ["a file that is not there", "GET /files/{sha256}", { path: { sha256: "0".repeat(64) }, error: 404 }],
  ["files in a page of none", "GET /files", { query: { limit: 0 }, error: 400 }],
  ["a tag that nobody has", "GET /inspect/", { query: { tag: "nobody:1" }, error: 404 }],
  ["an image that is not there", "GET /inspect/{image_uuid}/", { ...inside(nobody), error: 404 }],
  [
    "a list of an unknown image",
    "GET /inspect/{image_uuid}/list",
    { ...inside(nobody), query: { path: "/" }, error: 404 },
  ],
  [
    "a list of nothing",
    "GET /inspect/{image_uuid}/list",
    { ...inside(image), query: { path: "/nope" }, error: 404 },
  ],
  [
    "a download of nothing",
    "GET /inspect/{image_uuid}/download",
    { ...inside(image), query: { path: "/nope" }, error: 404 },
  ],
  [
    "a download of a directory",
    "GET /inspect/{image_uuid}/download",
    { ...inside(image), query: { path: "/etc" }, error: 404 },
  ],
  [
    "an archive of nothing",
    "GET /inspect/{image_uuid}/archive",
    { ...inside(image), query: { path: "/nope" }, error: 404 },
  ],
  [
    "a search for nothing",
    "GET /inspect/{image_uuid}/grep",
    { ...inside(image), query: { path: "/etc" }, error: 400 },
  ],
  [
    "a search in nothing",
    "GET /inspect/{image_uuid}/grep",
    { ...inside(image), query: { pattern: "a", path: "/nope" }, error: 404 },
  ],
  ["an instance of nothing", "POST /instances", { json: {}, error: 400 }],
  [
    "an instance of an unknown image",
    "POST /instances",
    { json: { ...instance, image: nobody }, error: 404 },
  ],
  [
    "an instance of an unknown tag",
    "POST /instances",
    { json: { ...instance, image: "tag:nobody:1" }, error: 404 },
  ],
  ["an instance without a command", "POST /instances", { json: { image }, error: 400 }],
  ["an instance at a relative path", "POST /instances", { json: { ...instance, cwd: "tmp" }, error: 400 }],
  [
    "an instance with an unknown file",
    "POST /instances",
    { json: { ...instance, files: { "/a": { uuid: nobody } } }, error: 404 },
  ],
  ["an instance with an unknown field", "POST /instances", { json: { ...instance, memory: 1 }, error: 400 }],
  [
    "an unknown field of a file",
    "POST /instances",
    { json: { ...instance, files: { "/a": { uuid: nobody, owner: 0 } } }, error: 400 },
  ],
  [
    "an unknown field of the input",
    "POST /instances",
    { json: { ...instance, stdin: { value: "", end: true } }, error: 400 },
  ],
  [
    "an unknown field of the network",
    "POST /instances",
    { json: { ...instance, networking: { ipv6: false } }, error: 400 },
  ],
  [
    "an unknown field of the limits",
    "POST /instances",
    { json: { ...instance, resources_limits: { gpus: 1 } }, error: 400 },
  ],
  ["an operation that is not there", "GET /operations/{operationId}", { ...operation(nobody), error: 404 }],
  ["its end", "DELETE /operations/{operationId}", { ...operation(nobody), error: 404 }],
  ["its events", "GET /operations/{operationId}/events", { ...operation(nobody), error: 404 }],
  [
    "its processes",
    "POST /operations/{operationId}/subprocesses",
    { ...operation(nobody), json: { command: "true" }, error: 404 },
  ],
  ["one of them", "GET /operations/{operationId}/subprocesses/{spid}", { ...process(nobody), error: 404 }],
  [
    "the end of one of them",
    "DELETE /operations/{operationId}/subprocesses/{spid}",
    { ...process(nobody), error: 404 },
  ],
  [
    "the input of one of them",
    "POST /operations/{operationId}/subprocesses/{spid}/stdin",
    { ...process(nobody), json: { value: "" }, error: 404 },
  ],
  ["operations of an unknown status", "GET /operations", { query: { status: "DONE" }, error: 400 }],
];

/** What is refused of an operation that runs, whose id `OPERATION` stands for. */
export const runningRefusals: typeof refusals = [
  [
    "an unknown process",
    "GET /operations/{operationId}/subprocesses/{spid}",
    { ...process("OPERATION"), error: 404 },
  ],
  [
    "the end of one",
    "DELETE /operations/{operationId}/subprocesses/{spid}",
    { ...process("OPERATION"), error: 404 },
  ],
  [
    "the input of one",
    "POST /operations/{operationId}/subprocesses/{spid}/stdin",
    { ...process("OPERATION"), json: { value: "" }, error: 404 },
  ],
  [
    "a process of no command",
    "POST /operations/{operationId}/subprocesses",
    { ...operation("OPERATION"), json: {}, error: 400 },
  ],
  [
    "an unknown field of a process",
    "POST /operations/{operationId}/subprocesses",
    { ...operation("OPERATION"), json: { command: "true", image }, error: 400 },
  ],
  [
    "events of a process that is none",
    "GET /operations/{operationId}/events",
    { ...operation("OPERATION"), query: { spid: "x" }, error: 400 },
  ],
];

function of(imageUUID: string) {
  return { path: { imageUUID } };
}

function inside(image_uuid: string) {
  return { path: { image_uuid } };
}

function operation(operationId: string) {
  return { path: { operationId } };
}

function process(operationId: string) {
  return { path: { operationId, spid: 77 } };
}
