import type { Fault } from "../fake-service/faults.ts";
import type { Dialect } from "./dialect.ts";

/** Dialects by a description of the service. */
export const dialects: Readonly<Record<string, Dialect>> = {
  "that has only the six calls": {},
  "that uses id for uuid": { idKey: "id" },
  "that names the operation only in Location": { namesOperation: "location alone" },
  "that names the operation only in Location, without a body": {
    namesOperation: "location alone",
    emptyBodies: true,
  },
  "that names the operation only in the body": { namesOperation: "body alone" },
  "whose operations have another path": { operationPath: "/v1/tasks/" },
  "whose operations have another path, named only in Location": {
    operationPath: "/v1/tasks/",
    namesOperation: "location alone",
  },
  "whose Location is relative": { location: (operation) => `operations/${operation}` },
  "that imports at once": { importAnswers: "image" },
  "that imports at once, and uses id": { importAnswers: "image", idKey: "id" },
  "that ends as COMPLETED": { endedStatus: "COMPLETED" },
  "that ends as succeeded": { endedStatus: "succeeded" },
  "that ends as Done": { endedStatus: "Done" },
  "that runs as RUNNING": { runningStatus: "RUNNING" },
  "whose operations are queued for long": { runningStatus: "QUEUED", looksUntilEnd: 8 },
  "whose exit codes are text": { exitCode: "0" },
  "whose output is text": { plainOutput: true },
  "that names the new image in result_image_uuid": { resultIn: "result_image_uuid" },
  "that names the new image as an object": { resultIn: "image object" },
  "that lists at most 100 images": { maxLimit: 100 },
  "that lists at most 10 images": { maxLimit: 10 },
  "that supports only the query tag": { knowsQueries: "tag alone" },
  "that ignores filters": { ignoresFilters: true },
  "that returns lists without an object around them": { bareLists: true },
  "that requires a Content-Length": { requiresLength: true },
  "that returns only the id of a file": { idsAlone: true, idKey: "id" },
  "with empty bodies": { emptyBodies: true },
  ...Object.fromEntries(
    [401, 403, 405, 501].map((status): [string, Dialect] => [
      `that responds with ${status} to unknown routes`,
      { unknownRoutes: { status } },
    ]),
  ),
  "that responds with a page to unknown routes": { unknownRoutes: { body: "<html>not found</html>" } },
  ...Object.fromEntries(
    [425, 429, 503].flatMap((status): [string, Dialect][] => [
      [`that responds with ${status} to every first request`, { faults: everyFirst(answer(status)) }],
      [
        `that responds with ${status} and Retry-After to every first request`,
        { faults: everyFirst(answer(status, { "retry-after": "3" })) },
      ],
    ]),
  ),
  ...Object.fromEntries(
    [500, 502, 504].flatMap((status): [string, Dialect][] => [
      [
        `whose proxy responds with ${status} to a command that was not received`,
        { faults: firstInstance(answer(status)) },
      ],
      [
        `whose proxy responds with ${status} to a command that was received`,
        { faults: firstInstance({ ...answer(status), processed: true }), mayRunTwice: true },
      ],
      [
        `with a list of operations, whose proxy responds with ${status} to a command that was not received`,
        { faults: firstInstance(answer(status)), hasOperationList: true },
      ],
    ]),
  ),
  "that refuses every second upload": {
    faults: (call, count) => (call === "POST /v1/files" && count % 2 === 1 ? answer(503) : undefined),
  },
  "that loses a response": {
    faults: firstInstance({ kind: "cut", at: "processed", how: "reset" }),
    mayRunTwice: true,
  },
  "that loses a request": { faults: firstInstance({ kind: "cut", at: "unread", how: "reset" }) },
  "with a list of operations, that loses a request": {
    faults: firstInstance({ kind: "cut", at: "unread", how: "reset" }),
    hasOperationList: true,
  },
};

type Answer = Extract<Fault, { kind: "answer" }>;

function answer(status: number, headers: Record<string, string> = {}): Answer {
  return { kind: "answer", processed: false, status, headers, body: "" };
}

function everyFirst(fault: Fault): NonNullable<Dialect["faults"]> {
  return (_, count) => (count === 0 ? fault : undefined);
}

function firstInstance(fault: Fault): NonNullable<Dialect["faults"]> {
  return (call, count) => (call === "POST /v1/instances" && count === 0 ? fault : undefined);
}
