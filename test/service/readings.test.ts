/** What answers of services mean: each of a plausible API of its own. */
import { describe, expect, test } from "bun:test";
import { endingOf } from "../../src/service/operations/ending.ts";
import { type OperationView, readOperation } from "../../src/service/operations/record.ts";
import { stageOf } from "../../src/service/wire/reader/status.ts";

type Meaning = "runs" | "unknown" | "succeeded" | "failed" | "cancelled" | number;

/** `base` is the image that the command starts from, `new` the one that it makes. */
const commands: readonly (readonly [body: unknown, meaning: Meaning])[] = [
  // Docker
  [
    { Id: "a", State: { Status: "running", Running: true, ExitCode: 0, FinishedAt: "0001-01-01T00:00:00Z" } },
    "runs",
  ],
  [{ State: { Status: "created", Running: false, ExitCode: 0, FinishedAt: "0001-01-01T00:00:00Z" } }, "runs"],
  [
    {
      State: { Status: "exited", Running: false, ExitCode: 0, Error: "", FinishedAt: "2026-03-01T10:00:00Z" },
      Image: "base",
    },
    "succeeded",
  ],
  [
    {
      State: {
        Status: "exited",
        Running: false,
        OOMKilled: false,
        Dead: false,
        ExitCode: 2,
        FinishedAt: "2026-03-01T10:00:00Z",
      },
    },
    2,
  ],
  [
    { State: { Status: "exited", OOMKilled: true, ExitCode: 0, FinishedAt: "2026-03-01T10:00:00Z" } },
    "failed",
  ],
  [{ Names: ["/a"], State: "exited", Status: "Exited (0) 3 seconds ago" }, "succeeded"],
  [{ Names: ["/a"], State: "exited", Status: "Exited (1) 3 seconds ago" }, 1],
  [{ Names: ["/a"], State: "running", Status: "Up 3 seconds" }, "runs"],
  // Kubernetes
  [{ status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "True" }] } }, "runs"],
  [
    {
      status: {
        containerStatuses: [
          { name: "main", ready: true, state: { running: { startedAt: "2026-03-01T10:00:00Z" } } },
        ],
      },
    },
    "runs",
  ],
  [
    {
      status: {
        phase: "Succeeded",
        containerStatuses: [{ name: "main", state: { terminated: { exitCode: 0, reason: "Completed" } } }],
      },
    },
    "succeeded",
  ],
  [
    {
      status: {
        phase: "Running",
        containerStatuses: [{ name: "main", state: { terminated: { exitCode: 1, reason: "Error" } } }],
      },
    },
    "runs",
  ],
  [
    {
      status: {
        phase: "Failed",
        containerStatuses: [{ name: "main", state: { terminated: { exitCode: 4, reason: "Error" } } }],
      },
    },
    4,
  ],
  [{ status: { active: 1, startTime: "2026-03-01T10:00:00Z" } }, "runs"],
  [
    { status: { conditions: [{ type: "Complete", status: "True" }], succeeded: 1, active: 0 }, image: "new" },
    "failed",
  ],
  [
    {
      status: {
        conditions: [
          { type: "Complete", status: "False" },
          { type: "Failed", status: "True" },
        ],
        failed: 1,
      },
    },
    "failed",
  ],
  // Google's long-running operations
  [{ name: "operations/7", done: false, metadata: { "@type": "x", progress: 40 } }, "runs"],
  [{ name: "operations/7", metadata: { createTime: "2026-03-01T10:00:00Z" } }, "unknown"],
  [{ name: "operations/7", done: true, response: { exitCode: 0, image: "new" } }, "succeeded"],
  [{ name: "operations/7", done: true, error: { code: 9, message: "command failed" } }, "failed"],
  [{ name: "operations/7", done: true, response: { exitCode: 5 } }, 5],
  [
    {
      name: "operations/7",
      done: true,
      error: { code: 0, message: "" },
      response: { exitCode: 0, image: "new" },
    },
    "succeeded",
  ],
  // GitHub, GitLab, Jenkins
  [{ id: 7, status: "in_progress", conclusion: null }, "runs"],
  [{ id: 7, status: "completed", conclusion: "success", image: "new" }, "succeeded"],
  [{ id: 7, status: "completed", conclusion: "failure" }, "failed"],
  [{ id: 7, status: "completed", conclusion: "neutral", image: "new" }, "failed"],
  [{ id: 7, status: "completed", conclusion: "timed_out" }, "failed"],
  [{ id: 7, status: "completed", conclusion: "cancelled" }, "cancelled"],
  [{ id: 7, status: "failed", allow_failure: true, exit_code: 3 }, 3],
  [
    { id: 7, status: "success", allow_failure: true, finished_at: "2026-03-01T10:00:00Z", image: "new" },
    "succeeded",
  ],
  [{ building: true, result: null }, "runs"],
  [{ building: false, result: "SUCCESS", image: "new" }, "succeeded"],
  [{ building: false, result: "FAILURE" }, "failed"],
  // Azure, AWS, Slurm, Mesos
  [{ id: "x", properties: { provisioningState: "Running" } }, "runs"],
  [{ id: "x", status: "Succeeded", properties: { exitCode: 0, imageId: "new" } }, "succeeded"],
  [{ id: "x", status: "Succeeded", properties: { exitCode: 1 } }, 1],
  [{ jobs: [{ jobId: "7", status: "RUNNING", container: { exitCode: 0 } }] }, "runs"],
  [
    {
      taskArn: "x",
      lastStatus: "STOPPED",
      desiredStatus: "STOPPED",
      containers: [
        { name: "main", exitCode: 0 },
        { name: "side", exitCode: 137 },
      ],
    },
    137,
  ],
  [
    {
      taskArn: "x",
      lastStatus: "RUNNING",
      desiredStatus: "STOPPED",
      containers: [{ name: "main", exitCode: 0 }],
    },
    "runs",
  ],
  [{ job_state: "COMPLETED", exit_code: { return_code: 0, signal: { id: 0, name: "" } } }, "succeeded"],
  [{ job_state: "OUT_OF_MEMORY", exit_code: { return_code: 0 } }, "failed"],
  [{ job_state: "COMPLETED", exit_code: { return_code: 0, signal: { signal_id: 9, name: "KILL" } } }, 137],
  [{ state: "TASK_FINISHED", exit_code: 0 }, "succeeded"],
  [{ state: "TASK_LOST", exit_code: 0 }, "failed"],
  [{ status: "JOB_STATE_SUCCEEDED", output_image: "new" }, "succeeded"],
  [{ status: "JOB_STATE_FAILED" }, "failed"],
  [{ status: "JOB_STATE_RUNNING", exit_code: 0 }, "runs"],
  [{ status: "JOB_STATE_TIMED_OUT" }, "failed"],
  // Enums with a payload, as Rust's libraries write them
  [{ status: { Running: { pid: 7 } } }, "runs"],
  [{ status: { Exited: { code: 0 } }, image: "new" }, "succeeded"],
  [{ status: { Exited: { code: 6 } } }, 6],
  [{ state: { kind: "Exited", code: 6 } }, 6],
  [{ state: { kind: "Exited", code: 0 } }, "succeeded"],
  [{ Failed: { reason: "no disk" } }, "failed"],
  // JSend, Slack and other envelopes
  [{ status: "success", data: { state: "running", exit_code: 0 } }, "runs"],
  [{ status: "success", data: { state: "finished", exit_code: 0, image: "new" } }, "succeeded"],
  [{ status: "success", data: { state: "finished", exit_code: 8 } }, 8],
  [{ status: "success", data: { exit_code: null, image: null } }, "unknown"],
  [{ status: "success", data: { id: "op-7" } }, "unknown"],
  [{ ok: true, operation: { state: "running" } }, "runs"],
  [{ ok: true, operation: { state: "done", exit: 0 }, image: { id: "new" } }, "succeeded"],
  [{ ok: true, operation: { state: "done", exit: 1 } }, 1],
  [{ code: 0, message: "ok", data: { status: "running" } }, "runs"],
  [{ code: 0, message: "ok", data: { status: "completed", exitCode: 2 } }, 2],
  [{ code: 0, message: "ok", data: { status: "failed" } }, "failed"],
  [{ code: 200, data: { status: "completed", exitCode: 0, imageId: "new" } }, "succeeded"],
  [{ data: { type: "operations", id: "7", attributes: { status: "running" } } }, "runs"],
  [{ data: { type: "operations", id: "7", attributes: { status: "completed", exit_code: 3 } } }, 3],
  [{ data: { operation: { status: "DONE", exitStatus: 0, image: { id: "new" } } }, errors: [] }, "succeeded"],
  [{ data: { operation: null }, errors: [{ message: "no such operation" }] }, "failed"],
  // Something else is taken for the end
  [{ exit_code: 0 }, "unknown"],
  [{ exit_code: 0, image: "base" }, "unknown"],
  [{ exit_code: 0, image: "new" }, "succeeded"],
  [{ exit_code: 0, image: "new", finished_at: null }, "unknown"],
  [{ exit_code: 0, image: "new", finished_at: "0001-01-01T00:00:00Z" }, "unknown"],
  [{ exit_code: 0, image: "new", ended: 0, end_time: 0 }, "unknown"],
  [{ exit_code: 0, image: "new", progress: 40 }, "unknown"],
  [{ exit_code: 0, image: "new", done: false }, "runs"],
  [{ exit_code: 0, image: "new", is_finished: false }, "runs"],
  [{ exit_code: 0, image: "new", running: true }, "runs"],
  [{ exit_code: 0, image: "new", pending: "true" }, "runs"],
  [{ exit_code: 0, image: "new", state: "saving" }, "runs"],
  [{ exit_code: 0, status: "completed", image: { id: "new", status: "uploading" } }, "runs"],
  [{ exit_code: 0, done: true, image: { id: "new", status: "active" } }, "succeeded"],
  [{ exit_code: -1, image: "new" }, "unknown"],
  [{ exit_code: 0, running: false, image: "new" }, "succeeded"],
  [{ status: "not finished", exit_code: 0 }, "runs"],
  [{ status: "about to finish", exit_code: 0 }, "unknown"],
  [{ status: "almost done", exit_code: 0 }, "unknown"],
  [{ status: "step 3 of 5 completed", exit_code: 0 }, "unknown"],
  [{ status: "zzz" }, "unknown"],
  [{ status: "simmering" }, "runs"],
  [{ status: "ready", exit_code: 0 }, "unknown"],
  [{ status: "ready", exit_code: 0, image: "new" }, "succeeded"],
  [{ status: 3, exit_code: 0 }, "unknown"],
  [{ status: "queued", history: [{ status: "completed", exit_code: 0 }] }, "runs"],
  // A failure beside a word for the end
  [{ status: "completed", success: false, image: "new" }, "failed"],
  [{ status: "completed", ok: false, image: "new" }, "failed"],
  [{ status: "completed", succeeded: "false", image: "new" }, "failed"],
  [{ status: "completed", failed: true, image: "new" }, "failed"],
  [{ status: "completed", outcome: "failed", image: "new" }, "failed"],
  [{ status: "completed", outcome: "error", exit_code: 0, image: "new" }, "failed"],
  [{ status: "completed", result: "failure", image: "new" }, "failed"],
  [{ status: "completed", error: "disk full", image: "new" }, "failed"],
  [{ status: "completed", error: { type: "Oops" }, image: "new" }, "failed"],
  [{ status: "completed", errors: ["disk full"], image: "new" }, "failed"],
  [{ status: "completed", failure_reason: "disk full", image: "new" }, "failed"],
  [{ status: "completed", error_code: 12, image: "new" }, "failed"],
  [{ status: "completed", timed_out: true, image: "new" }, "failed"],
  [{ status: "completed", exit: 3, image: "new" }, 3],
  [{ status: "completed", rc: 3, image: "new" }, 3],
  [{ status: "completed", code: 3, image: "new" }, 3],
  [{ status: "completed", retval: 3, image: "new" }, 3],
  [{ status: "completed", returnCode: "3", image: "new" }, 3],
  [{ status: "completed", exitcode: 3, image: "new" }, 3],
  [{ status: "completed", result: 3, image: "new" }, 3],
  [{ status: "completed", process: { status: 3 }, image: "new" }, 3],
  [{ status: "completed", wait_status: 3, image: "new" }, 3],
  [{ status: "completed", exit_code: 0, signal: "SIGKILL", image: "new" }, 137],
  [{ status: "completed", exit_code: 0, signal: 9, image: "new" }, 137],
  [{ status: "completed", exit_code: -1, image: "new" }, "failed"],
  [{ status: "completed", steps: [{ exit_code: 0 }, { exit_code: 3 }], image: "new" }, 3],
  [
    {
      status: "completed",
      steps: [
        { name: "a", status: "completed" },
        { name: "b", status: "failed" },
      ],
      image: "new",
    },
    "failed",
  ],
  [
    {
      status: "completed",
      steps: [
        { name: "a", status: "completed" },
        { name: "b", status: "running" },
      ],
      image: "new",
    },
    "runs",
  ],
  [{ status: "completed", containers: [{ state: { exitCode: 0 } }, { state: { exitCode: 3 } }] }, 3],
  [{ status: "completed", outputs: [{ name: "exit_code", value: 3 }], image: "new" }, 3],
  [{ status: "completed", attempts: [{ exit_code: 1 }, { exit_code: 0 }], image: "new" }, "succeeded"],
  [{ status: "completed", exit_code: null, image: "new" }, "failed"],
  [{ status: "completed_with_errors", image: "new" }, "failed"],
  [{ status: "partially_succeeded", image: "new" }, "failed"],
  [{ status: "exited with code 3", image: "new" }, 3],
  [{ status: "finished", finished: false, exit_code: 0 }, "runs"],
  [{ done: true, image: "new" }, "failed"],
  [{ done: true, success: true, image: "new" }, "succeeded"],
  [{ done: true, success: false, image: "new" }, "failed"],
  [{ ok: true, operation: { done: true }, image: "new" }, "failed"],
  [{ finished_at: "2026-03-01T10:00:00Z", image: "new" }, "failed"],
  [{ finished_at: 1772359200, exit_code: 0, image: "new" }, "succeeded"],
  [{ finished_at: 1772359200000, exit_code: 1 }, 1],
  // Nothing speaks against it
  [
    {
      status: "completed",
      networking: {},
      logging: { level: "x" },
      caching: true,
      exit_code: 0,
      image: "new",
    },
    "succeeded",
  ],
  [{ status: "completed", image: "new" }, "succeeded"],
  [{ status: "completed", error: null, errors: [], failure: "", image: "new" }, "succeeded"],
  [{ status: "completed", error: false, error_code: 0, error_message: "none", image: "new" }, "succeeded"],
  [{ status: "completed", failed: 0, succeeded: 1, image: "new" }, "succeeded"],
  [{ status: "completed", signal: null, timed_out: false, exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "completed", message: "1 error was ignored", exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "completed", stderr: "error: failed", exit_code: 0, image: "new" }, "succeeded"],
  [
    { status: "completed", logs: [{ level: "error", message: "failed" }], exit_code: 0, image: "new" },
    "succeeded",
  ],
  [
    { status: "completed", command: "failed", env: { STATUS: "running" }, exit_code: 0, image: "new" },
    "succeeded",
  ],
  [
    { status: "completed", request: { status: "running", timeout: 600 }, exit_code: 0, image: "new" },
    "succeeded",
  ],
  [{ status: "completed", labels: { state: "pending" }, exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "completed", previous_status: "running", exit_code: 0, image: "new" }, "succeeded"],
  [
    {
      status: "completed",
      history: [{ status: "queued" }, { status: "running" }],
      exit_code: 0,
      image: "new",
    },
    "succeeded",
  ],
  [{ status: "completed", worker: { state: "busy" }, exit_code: 0, image: "new" }, "succeeded"],
  [
    { status: "completed", base_image: { id: "base", status: "active" }, exit_code: 0, image: "new" },
    "succeeded",
  ],
  [{ status: "completed", accepted: true, started: true, exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "completed", resources: { signals: 3, status: 4 }, exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "succeeded", finished_at: null, exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "terminated", exit_code: 0, image: "new" }, "succeeded"],
  [{ status: "terminated" }, "cancelled"],
  [{ status: "CANCELLED" }, "cancelled"],
  ["finished", "succeeded"],
  ["running", "runs"],
];

/** Records of the public API: the status alone says how it ended, whatever else is in them. */
const ownRecords: typeof commands = [
  [
    { status: "EXECUTING", metadata: { result: { state: { exit_code: 0 } } }, result_image_uuid: "new" },
    "runs",
  ],
  [
    {
      status: "SUCCESS",
      metadata: { networking: { enabled: true }, command: "failed", env: { state: "running" } },
    },
    "succeeded",
  ],
  [{ status: "SUCCESS", metadata: { result: { state: { exit_code: 3, stopped: true } } } }, 3],
  [{ status: "SUCCESS", error: "no space left for the log" }, "succeeded"],
  [{ status: "FAILED", error: "no such image", metadata: { result: { state: { exit_code: 0 } } } }, "failed"],
  [{ status: "FAILED", error: null, metadata: { result: { state: { exit_code: 3 } } } }, 3],
  [{ status: "CANCELLED", metadata: { result: { state: { exit_code: 137, signal: 9 } } } }, "cancelled"],
].map(([body, meaning]) => [{ uuid: "op-7", kind: "instance", ...(body as object) }, meaning as Meaning]);

const shown = (body: unknown) => JSON.stringify(body);

function meaningOf(view: OperationView): Meaning {
  const { ended, exitCode } = view;
  if (ended === undefined) return view.unknownStatus === undefined ? "runs" : "unknown";
  const { status, error } = endingOf({ ...view, ended }, { kind: "instance", named: ["base"], exitCode });
  if (status === "CANCELLED") return "cancelled";
  if (status === "FAILED" || view.timedOut)
    return error === undefined && !view.timedOut ? "unknown" : "failed";
  return (exitCode ?? 0) === 0 ? "succeeded" : (exitCode ?? 0);
}

describe("the record of a command", () => {
  test.each([...commands, ...ownRecords].map(([body, meaning]) => [shown(body), meaning, body] as const))(
    "%s: %p",
    (_, meaning, body) => {
      const view = readOperation(body, { id: "op-7", kind: "instance", named: ["base"] });
      expect(meaningOf(view)).toBe(meaning);
    },
  );
});

const outputs: readonly (readonly [body: object, stdout: string | undefined, stderr?: string])[] = [
  [{ stdout: "a\n", stderr: "b\n" }, "a\n", "b\n"],
  [{ StdOut: "a\n", "std-err": "b\n" }, "a\n", "b\n"],
  [{ result: { process: { stdout_base64: btoa("a\n") } } }, "a\n"],
  [{ output: { text: btoa("a\n"), encoding: "base64" } }, "a\n"],
  // Lines without ends, and chunks, which have the ends that were printed.
  [{ logs: ["a", "b"] }, "a\nb\n"],
  [{ chunks: ["a", "b\n", "c"] }, "ab\nc"],
  [
    {
      output: [
        { seq: 1, data: "a" },
        { seq: 2, data: "b" },
      ],
    },
    "ab",
  ],
  [
    {
      log: [
        { stream: "stdout", text: "a" },
        { stream: "stderr", text: "b" },
      ],
    },
    "a\n",
    "b\n",
  ],
  [
    {
      output: [
        { fd: 1, text: "a" },
        { fd: 2, text: "b" },
      ],
    },
    "a\n",
    "b\n",
  ],
  [{ command: "echo", env: { OUTPUT: "a\n" }, logs: "https://storage.invalid/logs/7" }, undefined],
];
test.each(outputs.map(([body, stdout, stderr]) => [shown(body), { body, stdout, stderr }] as const))(
  "the output in %s",
  (_, { body, stdout, stderr }) => {
    const view = readOperation({ status: "completed", ...body });
    expect([view.stdout?.text, view.stderr?.text]).toEqual([stdout, stderr]);
  },
);

test.each([
  ["JOB_STATE_SUCCEEDED", "succeeded"],
  ["TaskRunning", "running"],
  ["OperationStatus.IN_PROGRESS", "running"],
  ["OPERATION_STATE_UNSPECIFIED", undefined],
  ["build::done", "ended"],
  ["Timed out", "timed out"],
  ["out of memory", "failed"],
  ["completed successfully", "succeeded"],
  ["completed with errors", "failed"],
  ["no error", undefined],
  ["SNAPSHOTTING", "running"],
  ["not started", "queued"],
  ["zzz", undefined],
])("the status %s is %s", (status, stage) => {
  expect(stageOf(status)).toBe(stage as ReturnType<typeof stageOf>);
});
