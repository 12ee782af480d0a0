import type { Fault } from "../fake-service/faults.ts";
import type { Dialect } from "./dialect.ts";

/** By what each is like. */
export const dialects: Readonly<Record<string, Dialect>> = {
  "that knows the six calls": {},
  "that says id for uuid": { idKey: "id" },
  "that names the operation in Location alone": { namesOperation: "location alone" },
  "that has no body where Location says it": { namesOperation: "location alone", emptyBodies: true },
  "that names the operation in the body alone": { namesOperation: "body alone" },
  "whose operations are elsewhere": { operationPath: "/v1/tasks/" },
  "whose operations are elsewhere, by a whole address": {
    operationPath: "/v1/tasks/",
    namesOperation: "location alone",
  },
  "whose Location is relative": { location: (operation) => `operations/${operation}` },
  "that imports at once": { importAnswers: "image" },
  "that imports at once, and says id": { importAnswers: "image", idKey: "id" },
  "that ends as COMPLETED": { endedStatus: "COMPLETED" },
  "that ends as succeeded": { endedStatus: "succeeded" },
  "that ends as Done": { endedStatus: "Done" },
  "that runs as RUNNING": { runningStatus: "RUNNING" },
  "that is queued for long": { runningStatus: "QUEUED", looksUntilEnd: 8 },
  "whose exit codes are text": { exitCode: "0" },
  "whose output is text": { plainOutput: true },
  "that tells the new image in result_image_uuid": { resultIn: "result_image_uuid" },
  "that tells the new image as an object": { resultIn: "image object" },
  "that lists no more than 100": { maxLimit: 100 },
  "that lists no more than 10": { maxLimit: 10 },
  "that knows no query but tag": { knowsQueries: "tag alone" },
  "that passes over filters": { ignoresFilters: true },
  "that lists by themselves": { bareLists: true },
  "that wants to know every length": { requiresLength: true },
  "that answers files by their id": { idsAlone: true, idKey: "id" },
  "with empty bodies": { emptyBodies: true },
  ...Object.fromEntries(
    [401, 403, 405, 501].map((status): [string, Dialect] => [
      `that says ${status} to what it does not know`,
      { unknownRoutes: { status } },
    ]),
  ),
  "that has a page for what it does not know": { unknownRoutes: { body: "<html>not found</html>" } },
  ...Object.fromEntries(
    [425, 429, 503].flatMap((status): [string, Dialect][] => [
      [`that says ${status} to every first request`, { faults: everyFirst(answer(status)) }],
      [
        `that says ${status} to every first request, and when to come again`,
        { faults: everyFirst(answer(status, { "retry-after": "3" })) },
      ],
    ]),
  ),
  ...Object.fromEntries(
    [500, 502, 504].flatMap((status): [string, Dialect][] => [
      [
        `whose proxy says ${status} to a command that was not received`,
        { faults: firstInstance(answer(status)) },
      ],
      [
        `whose proxy says ${status} to a command that was received`,
        { faults: firstInstance({ ...answer(status), processed: true }), mayRunTwice: true },
      ],
      [
        `with a list of operations, whose proxy says ${status} to a command that was not received`,
        { faults: firstInstance(answer(status)), hasOperationList: true },
      ],
    ]),
  ),
  "that loses an answer": {
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
