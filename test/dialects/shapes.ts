import type { OutputForm, Shape, TagForm } from "./shape.ts";

/** The values of each part of a shape. A shape of the table or of the fuzzer has one of each. */
export const parts: { readonly [Part in keyof Shape]-?: readonly Shape[Part][] } = {
  operation: [
    ...[
      ...["uuid", "id", "operation_id", "operationId", "op_id", "op", "instance_id", "instanceId", "task_id"],
      ...["job_id", "operation", "task", "job", "operation.id", "operation.uuid", "instance.id", "data.id"],
      ...["data.uuid", "result.id", "result.operation_id", "task.id", "job.id", "data.operation.id"],
    ].map((path) => ({ paths: [path] })),
    { paths: [] },
    { paths: ["operation_id"], also: { id: "instance-7", status: "queued" } },
    { paths: ["operation.id"], also: { id: "request-7" } },
  ],
  record: [
    ...[
      "/v1/operations/{id}",
      "/v1/instances/{id}",
      "/v1/operations/{id}/status",
      "/v1/instances/{id}/status",
    ],
  ],
  address: [
    undefined,
    "location",
    ...["href", "url", "self", "links.self", "status_url", "links.self.href"].map((path) => ({ path })),
  ],
  wrapper: [undefined, "data", "operation", undefined, "result", "instance", "task"],
  status: [
    ...["status", "state", "phase", "status.state", "state.status", "status.phase"].flatMap((path) =>
      (
        [
          ["PENDING", "SUCCESS", "FAILED"],
          ["running", "succeeded", "failed"],
          ["In Progress", "Completed", "Error"],
          ["inProgress", "done", "failure"],
          ["queued", "finished", "errored"],
          ["processing", "exited", "crashed"],
        ] as const
      ).map(([running, ended, failed]) => ({ path, running, ended, failed })),
    ),
    { path: "status", running: "simmering", ended: "simmered", failed: "simmered" },
    { path: "state", running: "executing", ended: "terminated", failed: "terminated" },
    "none",
  ],
  image: [
    ...[
      ...["image", "image_uuid", "image_id", "imageId", "result_image", "result_image_uuid", "resultImage"],
      ...["result_image_id", "output_image", "new_image", "snapshot"],
    ].flatMap((name) =>
      ["", "result.", "metadata.result.", "data.", "output."].flatMap((place) =>
        (["text", "uuid", "id"] as const).map((as) => ({ path: `${place}${name}`, as })),
      ),
    ),
  ],
  echoes: [undefined, "image", undefined, "metadata.image", "base_image"],
  exitCode: [
    ...["exit_code", "exitCode", "exit_status", "returncode", "return_code", "code", "status_code"].flatMap(
      (name) =>
        ["", "result.", "metadata.result.state.", "exit.", "process.", "result.process.", "data."].map(
          (place) => `${place}${name}`,
        ),
    ),
    undefined,
  ],
  output: [
    ...["stdout", "result.stdout", "metadata.result.stdout", "output", "logs", "log"].flatMap((path) =>
      (
        [
          "text",
          "lines",
          "line objects",
          "base64 value",
          "base64 data",
          "content",
          "nothing",
        ] satisfies OutputForm[]
      ).map((form) => ({ path, form })),
    ),
  ],
  file: [
    ...[
      ...["uuid", "id", "file_id", "fileId", "file_uuid", "sha256", "hash", "digest", "file.id", "data.uuid"],
      ...["result.file_id", "file.sha256", "data.digest"],
    ].flatMap((path) => [
      { paths: [path] },
      { paths: [path], isArray: true },
      { paths: [path], conflicts: true },
    ]),
    { paths: ["id", "sha256"] },
  ],
  imports: [
    ...(["operation", "operation 202", "pending", "created"] as const),
    ...[
      "image",
      "image_uuid",
      "image_id",
      "imageId",
      "image.id",
      "image.uuid",
      "result.image",
      "data.image_id",
    ].map((path) => ({ path })),
  ],
  wantsForms: [undefined, undefined, 415, 422, 400],
  refusesFields: [undefined, undefined, undefined, 400, 422],
  list: [
    ...["", "images", "items", "data", "results", "data.images"].flatMap((path) =>
      (["tag", "tags", "name:tag", "name and tag", "repo_tags", "objects"] satisfies TagForm[]).map(
        (tags) => ({
          path,
          tags,
        }),
      ),
    ),
    ...[400, 403, 404, 405, 500].map((status) => ({ status })),
    "dropped",
    "page",
  ],
};

const names = Object.keys(parts) as (keyof Shape)[];

/** Makes a shape of the parts that `choose` picks from numbers of choices. */
export function shapeOf(choose: (count: number, part: number) => number): Shape {
  const entries = names.map((name, part) => [name, parts[name][choose(parts[name].length, part)]]);
  return fitting(Object.fromEntries(entries) as Shape);
}

/** Keeps what a service can mean: parts that say nothing together, or write into the same place, are changed. */
function fitting(shape: Shape): Shape {
  const { operation, image, exitCode, status, output, wrapper, echoes } = shape;
  // Without an id in the body only the address has it.
  const address = operation.paths.length === 0 ? "location" : shape.address;
  // Only one of both can say how a command has ended.
  const saysHow = typeof status === "object" && status.ended !== status.failed;
  const top = image.path.split(".")[0];
  const isTaken = output.path === top || (exitCode ?? "").split(".")[0] === output.path;
  const taken = [image.path, image.path.split(".")[0]];
  return {
    ...shape,
    ...(address && { address }),
    exitCode: exitCode ?? (saysHow ? undefined : "exit_code"),
    output: isTaken ? { ...output, path: "stdout" } : output,
    ...(echoes !== undefined && taken.includes(echoes) ? { echoes: "base_image" } : {}),
    // A result inside of a wrapper of the same name is one with it.
    ...(wrapper !== undefined && (status === "none" || image.path.startsWith(wrapper))
      ? { wrapper: undefined }
      : {}),
  } as Shape;
}

/** Every value of every part, in changing company. */
export const table: readonly Shape[] = Array.from(
  { length: Math.max(160, ...names.map((name) => parts[name].length)) },
  (_, row) => shapeOf((count, part) => (row + Math.floor(row / count) * part) % count),
);
