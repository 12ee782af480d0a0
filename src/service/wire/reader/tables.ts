/**
 * The keys under which services may return a value, and the objects that it may be in, in an order of preference: the public API's
 * own form first. A key stands for all of its spellings (`exit_code`, `exitCode`).
 */
import { nested, type Sought } from "./fields.ts";

/** Objects that a service may put its response into. */
const envelopes = ["data", "result", "response"];
/** Objects named after what was started. */
const started = ["operation", "instance", "task", "job"];

export const imageIdKeys = ["uuid", "id", "image_uuid", "image_id", "image"];

/** An operation that has just been started. */
export const newOperation: readonly Sought[] = [
  { places: [""], names: ["uuid", "operation_uuid", "operation_id", "op_id", "op", "operation"] },
  { places: nested(["", ...envelopes], ["operation"]), names: ["uuid", "id", "operation_id"] },
  { places: [""], names: ["id"] },
  {
    places: [...envelopes, ...started, ...nested(envelopes, started)],
    names: ["uuid", "operation_id", "op_id", "op", "operation", "id"],
  },
  {
    places: ["", ...envelopes],
    names: ["task_id", "job_id", "instance_uuid", "instance_id", "task", "job", "instance"],
  },
  { places: [""], names: envelopes },
];

/** The address of an operation's record. */
export const operationLink: readonly Sought[] = [
  {
    places: nested(["", ...envelopes, ...started], ["", "links", "_links", "links.self", "_links.self"]),
    names: ["href", "status_url", "poll_url", "operation_url", "location", "url", "self"],
  },
];

/** Objects that a whole record may be in, if they have a status. */
export const recordWrappers = [...started, ...envelopes];

export const statusKeys = ["status", "state", "phase"];

/** Keys that say that an operation is over: with a time, or with `true`. */
export const endKeys = [
  ...["ended_at", "finished_at", "completed_at", "end_time", "finish_time", "completion_time", "ended"],
  ...["finished", "completed", "done", "is_done"],
];

/** Objects with what came of an operation. */
const results = ["metadata.result", "result", "", "data", "output", "data.result", "result.data"];
/** Objects with what came of its process. */
const processes = ["state", "exit", "process", ""];

export const processPlaces = nested(results, processes);

export const exitCodeKeys = ["exit_code", "exit_status", "return_code", "exit", "rc"];
/** Keys that may also be a status of HTTP. */
export const looseExitCodeKeys = ["code", "status_code"];

/** Keys that can only mean the image that an operation has made. */
export const resultImage: Sought = {
  places: ["", ...results.filter((path) => path !== "")],
  names: [
    ...["result_image_uuid", "result_image", "result_image_id", "output_image", "output_image_id"],
    ...["new_image", "new_image_id", "new_image_uuid"],
  ],
};

const imageKeys = ["image", "image_uuid", "image_id", "snapshot", "snapshot_id"];

/** An image among the results. */
export const imageOfResult: Sought = {
  places: ["result", "metadata.result", "data", "output", "data.result", "result.data"],
  names: imageKeys,
};

/** An image beside the status: it may be the one that the operation started from. */
export const imageOfRecord: Sought = {
  places: [""],
  names: ["snapshot", "snapshot_id", ...imageKeys],
};

/** A result that is nothing but the image. */
export const bareImage: Sought = { places: ["result", "output", "data"], names: ["uuid", "id"] };

/** The image in the response to an import. */
export const importedImage: readonly Sought[] = [
  { places: ["", ...envelopes], names: [...resultImage.names, ...imageKeys] },
];

export const outputPlaces = [
  ...["metadata.result", "result", "", "data", "output", "process", "logs", "log"],
  ...["data.result", "result.data", "result.output", "data.output", "result.process"],
];
/** Both streams in one: shown as standard output. */
export const mixedOutputKeys = ["output", "logs", "log"];

/** A stored file. */
export const storedFile: readonly Sought[] = [
  {
    places: ["", "file", "data", "result", "files", "data.file", "result.file"],
    names: ["uuid", "id", "file_uuid", "file_id", "file", "sha256", "hash", "digest"],
  },
];

export const fileHashKeys = ["sha256", "hash", "digest"];

/** Objects and arrays in which a list may be, besides under its own name. */
export const listWrappers = ["items", "data", "results", "result", "records"];

export const tagKeys = ["tag", "tags", "name", "reference", "ref", "repo_tags"];

export const errorKeys = ["error", "error_message", "failure", "reason", "message", "detail"];
