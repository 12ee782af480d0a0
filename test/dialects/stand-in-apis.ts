/** Plausible APIs for the six calls, each in the manner of one that exists. */
import type { Said, StandIn, StoodIn } from "./stand-in.ts";

const never = "0001-01-01T00:00:00Z";
const then = "2026-03-01T10:00:00Z";

/** One answer while the command runs, and one when it has ended. */
function twice(
  running: (operation: StoodIn) => unknown,
  ended: (operation: StoodIn) => unknown,
): StandIn["polls"] {
  return (operation) => [
    { json: running(operation) },
    { json: running(operation) },
    { json: ended(operation) },
  ];
}

/** A record with nothing but what is needed. */
const plainPolls = twice(
  () => ({ state: "running" }),
  ({ exitCode, image, output }) => ({ state: "succeeded", exit_code: exitCode, image, stdout: output }),
);

/** The image that a command has made, if it has not failed. */
function made<T>({ hasFailed, image }: StoodIn, field: (image: string) => T): T | Record<string, never> {
  return hasFailed ? {} : field(image);
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

export const apis: Readonly<Record<string, StandIn>> = {
  "in the manner of Docker": {
    started: ({ id }) => [201, { Id: id, Warnings: [] }],
    record: (id) => `/v1/instances/${id}`,
    polls: twice(
      ({ id, base }) => ({
        Id: id,
        Image: base,
        State: { Status: "running", Running: true, ExitCode: 0, Error: "", FinishedAt: never },
      }),
      (operation) => ({
        Id: operation.id,
        Image: operation.base,
        State: {
          Status: "exited",
          Running: false,
          OOMKilled: false,
          ExitCode: operation.exitCode,
          Error: "",
          FinishedAt: then,
        },
        ...made(operation, (image) => ({ Commit: { ImageId: image } })),
        Logs: operation.output,
      }),
    ),
  },
  "in the manner of Kubernetes": {
    started: ({ id }) => [201, { metadata: { uid: "x", name: id }, kind: "Job", status: {} }],
    polls: twice(
      ({ id }) => ({ kind: "Job", metadata: { name: id }, status: { active: 1, startTime: then } }),
      (operation) => ({
        kind: "Job",
        metadata: { name: operation.id },
        status: {
          ...(operation.hasFailed ? { failed: 1 } : { succeeded: 1 }),
          containerStatuses: [
            { name: "main", state: { terminated: { exitCode: operation.exitCode, finishedAt: then } } },
          ],
          ...made(operation, (image) => ({ outputImage: image })),
          log: operation.output,
        },
      }),
    ),
  },
  "in the manner of Google": {
    id: (number) => `operations/${number}`,
    record: (id) => `/v1/${id}`,
    started: ({ id }) => [200, { name: id, metadata: { "@type": "run", startTime: then }, done: false }],
    polls: twice(
      ({ id }) => ({ name: id, metadata: { startTime: then }, done: false }),
      (operation) => ({
        name: operation.id,
        done: true,
        response: {
          exitCode: operation.exitCode,
          output: operation.output,
          ...made(operation, (image) => ({ image })),
        },
      }),
    ),
  },
  "in the manner of GitHub": {
    id: (number) => 3_000_000_000 + number,
    record: (id) => `/v1/runs/${id}`,
    started: ({ id }) => [
      201,
      {
        id,
        url: `/v1/runs/${id}`,
        html_url: "https://example.invalid/runs",
        status: "queued",
        conclusion: null,
      },
    ],
    polls: twice(
      ({ id }) => ({ id, status: "in_progress", conclusion: null, completed_at: null }),
      (operation) => ({
        id: operation.id,
        status: "completed",
        conclusion: operation.hasFailed ? "failure" : "success",
        completed_at: then,
        steps: [
          { name: "set up", conclusion: "success" },
          { name: "run", conclusion: operation.hasFailed ? "failure" : "success" },
        ],
        snapshot: operation.hasFailed ? null : operation.image,
        output: operation.output,
      }),
    ),
    showsNoExitCode: true,
  },
  "in the manner of Azure": {
    record: (id) => `/v1/status/${id}`,
    started: ({ id }) => ({
      status: 202,
      headers: { "azure-asyncoperation": `/v1/status/${id}`, "retry-after": "1" },
    }),
    polls: twice(
      ({ id }) => ({
        id,
        status: "Running",
        properties: { provisioningState: "Running", percentComplete: 40 },
      }),
      (operation) => ({
        id: operation.id,
        status: operation.hasFailed ? "Failed" : "Succeeded",
        properties: {
          exitCode: operation.exitCode,
          imageId: operation.hasFailed ? null : operation.image,
          stdout: operation.output,
        },
      }),
    ),
  },
  "in the manner of JSON:API": {
    started: ({ id }) => [
      202,
      {
        data: {
          type: "operations",
          id,
          attributes: { status: "queued" },
          links: { self: `/v1/operations/${id}` },
        },
      },
    ],
    polls: twice(
      ({ id }) => ({ data: { type: "operations", id, attributes: { status: "running", exit_code: null } } }),
      (operation) => ({
        data: {
          type: "operations",
          id: operation.id,
          attributes: { status: "finished", exit_code: operation.exitCode, stdout: operation.output },
          relationships: made(operation, (image) => ({ image: { data: { type: "images", id: image } } })),
        },
      }),
    ),
  },
  "in the manner of JSend": {
    started: ({ id }) => [200, { status: "success", data: { instance_id: id } }],
    record: (id) => `/v1/instances/${id}`,
    polls: twice(
      ({ id }) => ({ status: "success", data: { instance_id: id, exit_code: null, image_id: null } }),
      (operation) => ({
        status: "success",
        data: {
          instance_id: operation.id,
          exit_code: operation.exitCode,
          image_id: operation.hasFailed ? null : operation.image,
          output: operation.output,
        },
      }),
    ),
  },
  "with an envelope of codes": {
    started: ({ id }) => [200, { code: 0, message: "ok", data: { taskId: id } }],
    record: (id) => `/v1/tasks/${id}`,
    polls: twice(
      ({ id }) => ({ code: 0, message: "ok", data: { taskId: id, state: "RUNNING" } }),
      (operation) => ({
        code: 0,
        message: "ok",
        data: {
          taskId: operation.id,
          state: "FINISHED",
          exitCode: operation.exitCode,
          resultImage: { uuid: operation.image },
          stdout: [operation.output],
        },
      }),
    ),
  },
  "in the manner of Rust's enums": {
    started: ({ id }) => [201, { Ok: { operation: id } }],
    polls: twice(
      () => ({ state: { Running: { pid: 7 } } }),
      (operation) => ({
        state: { Exited: { code: operation.exitCode } },
        ...made(operation, (image) => ({ snapshot: { id: image } })),
        output: { stdout: operation.output, stderr: "" },
      }),
    ),
  },
  "in the manner of Jenkins": {
    started: ({ id }) => ({ status: 201, headers: { location: `/v1/queue/${id}/` } }),
    record: (id) => `/v1/queue/${id}/`,
    polls: twice(
      () => ({ building: true, result: null }),
      (operation) => ({
        building: false,
        result: operation.hasFailed ? "FAILURE" : "SUCCESS",
        ...made(operation, (image) => ({ artifacts: [{ type: "image", id: image }] })),
        consoleLog: operation.output,
      }),
    ),
    showsNoExitCode: true,
  },
  "with booleans": {
    started: ({ id }) => [200, { operation: { id, started: true } }],
    polls: twice(
      () => ({ started: true, done: false, failed: false, exit: 0 }),
      (operation) => ({
        started: true,
        done: true,
        failed: operation.hasFailed,
        exit: operation.exitCode,
        new_image: operation.hasFailed ? "" : operation.image,
        out: [],
        stdout: operation.output,
      }),
    ),
  },
  "with times alone": {
    started: ({ id }) => [201, { uuid: id, created_at: then, finished_at: null, exit_code: 0 }],
    polls: twice(
      ({ id, base }) => ({
        uuid: id,
        image: base,
        created_at: then,
        started_at: then,
        finished_at: null,
        exit_code: 0,
      }),
      (operation) => ({
        uuid: operation.id,
        image: operation.base,
        result_image: operation.hasFailed ? null : operation.image,
        started_at: then,
        finished_at: then,
        exit_code: operation.exitCode,
        logs: operation.output,
      }),
    ),
  },
  "with times of the year 1": {
    polls: twice(
      ({ base }) => ({ image: base, startedAt: then, finishedAt: never, exitCode: 0 }),
      (operation) => ({
        image: operation.base,
        outputImage: operation.hasFailed ? null : operation.image,
        finishedAt: then,
        exitCode: operation.exitCode,
        stdout: operation.output,
      }),
    ),
  },
  "that puts the status into a path": {
    started: ({ id }) => [201, { id }],
    record: (id) => `/v1/instances/${id}/status`,
    polls: twice(
      () => ({ phase: "executing" }),
      (operation) => ({
        phase: "terminated",
        exit: { code: operation.exitCode, signal: null },
        ...made(operation, (image) => ({ result: { image: { id: image } } })),
        stdout: { encoding: "base64", data: base64(operation.output) },
      }),
    ),
  },
  "that answers a list of one": {
    started: ({ id }) => [200, [{ job_id: id, state: "PENDING" }]],
    record: (id) => `/v1/jobs/${id}`,
    polls: twice(
      ({ id }) => [{ job_id: id, state: "JOB_STATE_RUNNING" }],
      (operation) => [
        {
          job_id: operation.id,
          state: operation.hasFailed ? "JOB_STATE_FAILED" : "JOB_STATE_SUCCEEDED",
          return_code: operation.exitCode,
          output_image: operation.hasFailed ? null : operation.image,
          stdout: operation.output,
        },
      ],
    ),
  },
  "that sends output in chunks": {
    polls: twice(
      () => ({ status: "running" }),
      (operation) => ({
        status: "done",
        exit_code: operation.exitCode,
        image: operation.hasFailed ? null : operation.image,
        output: [
          { stream: "stdout", data: operation.output.slice(0, 6) },
          { stream: "stderr", data: "warn" },
          { stream: "stdout", data: operation.output.slice(6) },
        ],
      }),
    ),
  },
  "that sends output in pieces of text": {
    polls: twice(
      () => ({ status: "running" }),
      (operation) => ({
        status: "done",
        exit_code: operation.exitCode,
        image: operation.hasFailed ? null : operation.image,
        stdout: [operation.output.slice(0, 6), operation.output.slice(6)],
      }),
    ),
  },
  "that sends output in encoded pieces": {
    polls: twice(
      () => ({ status: "running" }),
      (operation) => ({
        status: "done",
        exit_code: operation.exitCode,
        image: operation.hasFailed ? null : operation.image,
        stdout: [base64(operation.output.slice(0, 6)), base64(operation.output.slice(6))].map((data) => ({
          data,
          encoding: "base64",
        })),
      }),
    ),
  },
  "with an exit code for each container": {
    polls: twice(
      () => ({ status: "running", containers: [{ name: "main", exit_code: 0 }] }),
      (operation) => ({
        status: "completed",
        containers: [
          { name: "init", exit_code: 0 },
          { name: "main", exit_code: operation.exitCode },
        ],
        image: operation.image,
        stdout: operation.output,
      }),
    ),
  },
  "with an error in place of an exit code": {
    polls: twice(
      () => ({ status: "running", error: null }),
      (operation) => ({
        status: "completed",
        error: operation.hasFailed ? "command exited with a status other than 0" : null,
        image: operation.image,
        stdout: operation.output,
      }),
    ),
    showsNoExitCode: true,
  },
  "with success: false": {
    polls: twice(
      () => ({ status: "running", success: null }),
      (operation) => ({
        status: "completed",
        success: !operation.hasFailed,
        image: operation.image,
        stdout: operation.output,
      }),
    ),
    showsNoExitCode: true,
  },
  "that saves the image after the command": {
    polls: (operation) => [
      { json: { status: "running" } },
      {
        json: {
          status: "exited",
          exit_code: operation.exitCode,
          image: { id: operation.image, status: "saving" },
        },
      },
      {
        json: {
          status: "exited",
          exit_code: operation.exitCode,
          image: { id: operation.image, status: "ready" },
          stdout: operation.output,
        },
      },
    ],
  },
  "that answers other paths with an error of status 200": {
    started: ({ id }) => [200, { op: id }],
    record: (id) => `/v1/instances/${id}`,
    other: () => [200, { error: "unknown endpoint" }],
    polls: twice(
      ({ id }) => ({ op: id, state: "running" }),
      (operation) => ({
        op: operation.id,
        state: "succeeded",
        exit_code: operation.exitCode,
        image: operation.image,
        stdout: operation.output,
      }),
    ),
  },
  ...Object.fromEntries(
    [400, 401, 403, 405, 500, 501].map((status): [string, StandIn] => [
      `that answers other paths with ${status}, with its records in an own place`,
      {
        started: ({ id }) => [200, { id }],
        record: (id) => `/v1/instances/${id}/status`,
        other: () => [status, { error: "no" }],
        polls: plainPolls,
      },
    ]),
  ),
  "that names the address in its own header": {
    record: (id) => `/v1/poll/${id}`,
    started: ({ id }) => [202, { ticket: `t-${id}` }, { "operation-location": `/v1/poll/${id}` }],
    polls: plainPolls,
  },
  "that sees other": {
    record: (id) => `/v1/operations/${id}`,
    started: ({ id }) => [303, undefined, { location: `/v1/operations/${id}` }],
    polls: plainPolls,
  },
};

/** The answer that a command has ended, without anything that says how. */
const mute = (fields: object): StandIn["polls"] =>
  twice(
    () => ({ status: "running" }),
    ({ image }) => ({ image, ...fields }),
  );

/** APIs whose answers say that a command has failed, or leave open whether it has. */
export const unclear: Readonly<Record<string, { polls: StandIn["polls"]; shown: readonly string[] }>> = {
  "with a time of the end alone": { polls: mute({ finished_at: then }), shown: ["finished_at"] },
  "with done alone": { polls: mute({ done: true }), shown: ['"done":true'] },
  "with a conclusion of its own": {
    polls: mute({ status: "completed", conclusion: "plaid" }),
    shown: ['conclusion is "plaid"'],
  },
  "with ok: false": {
    polls: mute({ status: "completed", ok: false }),
    shown: ["ok is false", '"status":"completed"'],
  },
  "with an outcome": {
    polls: mute({ status: "completed", outcome: "failed" }),
    shown: ['outcome is "failed"'],
  },
  "with a failed step": {
    polls: mute({ status: "completed", steps: [{ state: "completed" }, { state: "failed" }] }),
    shown: ['steps.state is "failed"'],
  },
  "with an error": { polls: mute({ status: "completed", error: "disk 4711" }), shown: ["disk 4711"] },
  "with an exit code of -1": {
    polls: mute({ status: "completed", exit_code: -1 }),
    shown: ["the exit code is -1"],
  },
  "with an exit code of null": {
    polls: mute({ status: "completed", exit_code: null }),
    shown: ['"exit_code":null'],
  },
};

/** Answers of a command that goes on, some of which another answer may take for the end. */
export const goingOn: Readonly<Record<string, Said>> = {
  "says nothing but an exit code": { json: { exit_code: 0 } },
  "says done: false": { json: { status: "completed", done: false, exit_code: 0 } },
  "runs by another word": { json: { State: { Status: "running", Running: true, ExitCode: 0 } } },
  "has no word that is known": { json: { status: "4711", exit_code: 0 } },
};
