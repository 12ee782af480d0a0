import type { Said, StandIn } from "./stand-in.ts";
import { apis, goingOn, unclear } from "./stand-in-apis.ts";

type Polls = StandIn["polls"];

/** The plainest record: running, then ended. */
const plain: Polls = ({ image, exitCode, output, hasFailed }) => [
  { json: { status: "running" } },
  {
    json: {
      status: hasFailed ? "failed" : "succeeded",
      exit_code: exitCode,
      stdout: output,
      ...(hasFailed ? {} : { image }),
    },
  },
];

/** Answers of services to requests that the specification does not name. */
const unknownRoutes: Readonly<Record<string, Said>> = {
  ...Object.fromEntries(
    [400, 401, 403, 404, 405, 406, 409, 410, 418, 422, 429, 451, 500, 501, 502, 503].map((status) => [
      `${status}`,
      [status, { error: "no" }],
    ]),
  ),
  "429 and an hour": [429, { error: "slow down" }, { "retry-after": "3600" }],
  "a page": { text: "<html><title>Welcome</title></html>", headers: { "content-type": "text/html" } },
  "an error of status 200": { json: { error: "no such route" } },
  "an object": { json: { ok: true } },
  "an empty object": { json: {} },
  "an empty list": { json: [] },
  null: { json: null },
  text: { text: "hello" },
  nothing: { status: 204 },
  "an empty body": { text: "" },
  "a login on another host": [302, undefined, { location: "https://login.invalid/" }],
  "a login of its own": [302, undefined, { location: "/login" }],
  "a circle": [302, undefined, { location: "?" }],
};

/** Lists that do not show what was imported. */
const lists: Readonly<Record<string, unknown>> = {
  "is empty": { images: [] },
  "shows the first page, with a cursor": { images: [{ id: "img-7", tag: "other:1" }], next_cursor: "abc" },
  "shows the first page, with untagged images": {
    images: [
      { id: "img-7", tag: null },
      { id: "img-8", tag: "a:1" },
    ],
    total: 30,
  },
  "shows the first page, with a token": { items: [{ id: "img-7", tags: ["other:1"] }], nextPageToken: "x" },
};

/** Services that work. */
export const working: Readonly<Record<string, StandIn>> = {
  "that is plain": { polls: plain },
  ...apis,
  ...Object.fromEntries(
    Object.entries(goingOn).map(([name, said]): [string, StandIn] => [
      `on which a command that goes on ${name}`,
      { polls: (operation) => [said, said, said, plain(operation)[1] ?? [404]] },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(unknownRoutes).map(([name, said]): [string, StandIn] => [
      `that answers unknown routes with ${name}`,
      { polls: plain, other: () => said },
    ]),
  ),
  "that drops unknown requests": {
    polls: plain,
    other: () => new Response(new ReadableStream({ start: (stream) => stream.error() })),
  },
  ...Object.fromEntries(
    Object.entries(lists).map(([name, json]): [string, StandIn] => [
      `whose list of images ${name}`,
      {
        polls: plain,
        other: ({ url }) =>
          new URL(url).pathname === "/v1/images" ? { json } : [404, { error: "not found" }],
      },
    ]),
  ),
  "that answers 202 without a body while a command runs": {
    polls: (operation) => [
      ...Array.from({ length: 40 }, (): Said => [202, undefined, { "retry-after": "2" }]),
      plain(operation)[1] ?? [404],
    ],
  },
  "that answers 204 while a command runs": {
    polls: (operation) => [[204], [204], plain(operation)[1] ?? [404]],
  },
  ...Object.fromEntries(
    [307, 308].map((status): [string, StandIn] => [
      `that redirects every request with ${status} to a path with a slash`,
      {
        polls: plain,
        before: ({ url }) =>
          new URL(url).search === "?moved"
            ? undefined
            : new Response(null, { status, headers: { location: `${new URL(url).pathname}?moved` } }),
      },
    ]),
  ),
  "whose ids are numbers beyond 2^53": {
    polls: plain,
    // As digits: JSON.stringify would round them.
    id: (number) => `1234567890123456789${number}`,
    started: ({ id }) => ({
      status: 201,
      text: `{"id": ${id}}`,
      headers: { "content-type": "application/json" },
    }),
  },
};

/** A service on which a build fails. `imports`: the number of its imports, if that is what fails. */
export type RefusingStandIn = StandIn & { shown: readonly string[]; imports?: number };

const refusals: Readonly<Record<string, Said>> = {
  "an object without an id": [201, { ok: true, note: "thanks 4711" }],
  "a text": { text: "accepted 4711" },
  "a page": { text: "<html>4711</html>", headers: { "content-type": "text/html" } },
  "half of its JSON": { status: 201, text: '{"id": 4711' },
  "500 and a reason": [500, { error: "worker 4711 has crashed" }],
  "400 and a reason": [400, { error: "quota 4711" }],
  "422 and a reason": [422, { error: "quota 4711" }],
};

export const refusing: Readonly<Record<string, RefusingStandIn>> = {
  ...Object.fromEntries(
    Object.entries(unclear).map(([name, table]): [string, RefusingStandIn] => [`that ends ${name}`, table]),
  ),
  ...Object.fromEntries(
    Object.entries(refusals).map(([name, said]): [string, RefusingStandIn] => [
      `that answers a command with ${name}`,
      { polls: plain, started: () => said, shown: ["/v1/instances responded with", "4711"] },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(refusals)
      .filter(([name]) => !/page|JSON|500/.test(name))
      .map(([name, said]): [string, RefusingStandIn] => [
        `that answers an import with ${name}`,
        {
          polls: plain,
          imported: () => said,
          imports: 0,
          shown: ["/v1/images/import responded with", "4711"],
        },
      ]),
  ),
};
