/** Requests that every service refuses, with the status of the error. */
import type { CallParts } from "./client.ts";

const unknownId = "00000000-0000-4000-8000-00000000dead";
const image = "IMAGE";
const instance = { image, command: "true" };

/** `IMAGE` is replaced by the image's id. */
export const refusals: readonly [name: string, call: string, parts: CallParts & { error: number }][] = [
  [
    "an invalid tag for an image",
    "PATCH /images/{imageUUID}/tag",
    { ...of(image), json: { tag: "No Tag" }, error: 400 },
  ],
  ["tagging an image without a tag", "PATCH /images/{imageUUID}/tag", { ...of(image), json: {}, error: 400 }],
  [
    "a tag for an unknown image",
    "PATCH /images/{imageUUID}/tag",
    { ...of(unknownId), json: { tag: "a:1" }, error: 404 },
  ],
  ["untagging an unknown image", "DELETE /images/{imageUUID}/tag", { ...of(unknownId), error: 404 }],
  [
    "untagging a tag that the image does not have",
    "DELETE /images/{imageUUID}/tag",
    { ...of(image), query: { tag: "a:1" }, error: 404 },
  ],
  ["a page of 0 images", "GET /images", { query: { limit: 0 }, error: 400 }],
  ["a page of too many images", "GET /images", { query: { limit: 1001 }, error: 400 }],
  ["an import without a source", "POST /images/import", { json: {}, error: 400 }],
  [
    "an import with an invalid tag",
    "POST /images/import",
    { json: { registry: { url: "docker://a/b" }, tag: "A B" }, error: 400 },
  ],
  [
    "an import with an unknown field",
    "POST /images/import",
    { json: { registry: { url: "docker://a/b", mirror: "c" } }, error: 400 },
  ],
  ["an unknown file", "GET /files/{sha256}", { path: { sha256: "0".repeat(64) }, error: 404 }],
  ["a page of 0 files", "GET /files", { query: { limit: 0 }, error: 400 }],
  ["an unknown tag", "GET /inspect/", { query: { tag: "nobody:1" }, error: 404 }],
  ["an unknown image", "GET /inspect/{image_uuid}/", { ...inside(unknownId), error: 404 }],
  [
    "a list of an unknown image",
    "GET /inspect/{image_uuid}/list",
    { ...inside(unknownId), query: { path: "/" }, error: 404 },
  ],
  [
    "a list of a missing path",
    "GET /inspect/{image_uuid}/list",
    { ...inside(image), query: { path: "/nope" }, error: 404 },
  ],
  [
    "a download of a missing path",
    "GET /inspect/{image_uuid}/download",
    { ...inside(image), query: { path: "/nope" }, error: 404 },
  ],
  [
    "a download of a directory",
    "GET /inspect/{image_uuid}/download",
    { ...inside(image), query: { path: "/etc" }, error: 404 },
  ],
  [
    "an archive of a missing path",
    "GET /inspect/{image_uuid}/archive",
    { ...inside(image), query: { path: "/nope" }, error: 404 },
  ],
  [
    "a search without a pattern",
    "GET /inspect/{image_uuid}/grep",
    { ...inside(image), query: { path: "/etc" }, error: 400 },
  ],
  [
    "a search in a missing path",
    "GET /inspect/{image_uuid}/grep",
    { ...inside(image), query: { pattern: "a", path: "/nope" }, error: 404 },
  ],
  ["an instance without an image and a command", "POST /instances", { json: {}, error: 400 }],
  [
    "an instance of an unknown image",
    "POST /instances",
    { json: { ...instance, image: unknownId }, error: 404 },
  ],
  [
    "an instance of an unknown tag",
    "POST /instances",
    { json: { ...instance, image: "tag:nobody:1" }, error: 404 },
  ],
  ["an instance without a command", "POST /instances", { json: { image }, error: 400 }],
  [
    "an instance with a relative working directory",
    "POST /instances",
    { json: { ...instance, cwd: "tmp" }, error: 400 },
  ],
  [
    "an instance with an unknown file",
    "POST /instances",
    { json: { ...instance, files: { "/a": { uuid: unknownId } } }, error: 404 },
  ],
  ["an instance with an unknown field", "POST /instances", { json: { ...instance, memory: 1 }, error: 400 }],
  [
    "an unknown field of a file",
    "POST /instances",
    { json: { ...instance, files: { "/a": { uuid: unknownId, owner: 0 } } }, error: 400 },
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
  ["an unknown operation", "GET /operations/{operationId}", { ...operation(unknownId), error: 404 }],
  [
    "cancelling an unknown operation",
    "DELETE /operations/{operationId}",
    { ...operation(unknownId), error: 404 },
  ],
  [
    "events of an unknown operation",
    "GET /operations/{operationId}/events",
    { ...operation(unknownId), error: 404 },
  ],
  [
    "a new process of an unknown operation",
    "POST /operations/{operationId}/subprocesses",
    { ...operation(unknownId), json: { command: "true" }, error: 404 },
  ],
  [
    "a process of an unknown operation",
    "GET /operations/{operationId}/subprocesses/{spid}",
    { ...process(unknownId), error: 404 },
  ],
  [
    "a signal to a process of an unknown operation",
    "DELETE /operations/{operationId}/subprocesses/{spid}",
    { ...process(unknownId), error: 404 },
  ],
  [
    "input for a process of an unknown operation",
    "POST /operations/{operationId}/subprocesses/{spid}/stdin",
    { ...process(unknownId), json: { value: "" }, error: 404 },
  ],
  [
    "a list of operations with an unknown status",
    "GET /operations",
    { query: { status: "DONE" }, error: 400 },
  ],
];

/** Refused requests about a running operation; `OPERATION` is replaced by its id. */
export const runningRefusals: typeof refusals = [
  [
    "an unknown process",
    "GET /operations/{operationId}/subprocesses/{spid}",
    { ...process("OPERATION"), error: 404 },
  ],
  [
    "a signal to an unknown process",
    "DELETE /operations/{operationId}/subprocesses/{spid}",
    { ...process("OPERATION"), error: 404 },
  ],
  [
    "input for an unknown process",
    "POST /operations/{operationId}/subprocesses/{spid}/stdin",
    { ...process("OPERATION"), json: { value: "" }, error: 404 },
  ],
  [
    "a process without a command",
    "POST /operations/{operationId}/subprocesses",
    { ...operation("OPERATION"), json: {}, error: 400 },
  ],
  [
    "an unknown field of a process",
    "POST /operations/{operationId}/subprocesses",
    { ...operation("OPERATION"), json: { command: "true", image }, error: 400 },
  ],
  [
    "events of an invalid process",
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
