/** Faults of one request on its way to a service and back, as data. */
import { gzipSync } from "node:zlib";

/** `processed`: the service has handled the request, and only the response is lost or damaged. */
export type Fault =
  /** Nothing listens at the address. The client's `fetch` does this, without a connection to the proxy. */
  | { kind: "refused" }
  /** A proxy or the service responds with an error. */
  | {
      kind: "answer";
      processed: boolean;
      status: number;
      body: string;
      headers?: Record<string, string>;
    }
  /** The connection is cut before the request is read, after it was processed, or within the response. */
  | { kind: "cut"; at: Place; how: "reset" | "end" }
  /** The connection stays open, but no more data comes. */
  | { kind: "stall"; at: Place }
  /** The response comes with other bytes. */
  | { kind: "spoil"; spoil: (answer: WholeAnswer) => WholeAnswer };

export type Place = "unread" | "processed" | "in the head" | "in the body";

export interface WholeAnswer {
  status: string;
  headers: Map<string, string>;
  body: Buffer;
}

const page = "<html><head><title>Gateway lost</title></head><body><h1>Sorry</h1></body></html>";
const html = { "content-type": "text/html" };
const answer = (status: number, headers: Record<string, string> = {}): Fault => ({
  kind: "answer",
  processed: false,
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify({ error: "not today", status }),
});
const redirect = (location: string): Fault =>
  ({ ...answer(307, { location }), kind: "answer", body: "" }) as Fault;

/** The faults by their names in test titles. */
export const faults: Readonly<Record<string, Fault>> = {
  "429": answer(429),
  "429, Retry-After: 7": answer(429, { "retry-after": "7" }),
  "425": answer(425),
  "425, Retry-After: a date": answer(425, { "retry-after": "Thu, 01 Jan 2026 00:00:09 GMT" }),
  "500": answer(500),
  "502": answer(502),
  "502, a proxy's page": { kind: "answer", processed: false, status: 502, body: page, headers: html },
  "503": answer(503),
  "503, Retry-After: 7": answer(503, { "retry-after": "7" }),
  "504 of a proxy, all the same done": {
    kind: "answer",
    processed: true,
    status: 504,
    body: page,
    headers: html,
  },
  "401, an expired token": answer(401),
  "403, a proxy's page": { kind: "answer", processed: false, status: 403, body: page, headers: html },
  "connection refused": { kind: "refused" },
  "reset, the request unread": { kind: "cut", at: "unread", how: "reset" },
  "closed, the request unread": { kind: "cut", at: "unread", how: "end" },
  "reset once the request is done": { kind: "cut", at: "processed", how: "reset" },
  "reset within the answer's head": { kind: "cut", at: "in the head", how: "reset" },
  "reset within the answer's body": { kind: "cut", at: "in the body", how: "reset" },
  "closed within the answer's body": { kind: "cut", at: "in the body", how: "end" },
  "silence, the request unread": { kind: "stall", at: "unread" },
  "silence once the request is done": { kind: "stall", at: "processed" },
  "silence within the answer's body": { kind: "stall", at: "in the body" },
  "JSON cut short": spoilBody((body) => body.subarray(0, Math.max(1, body.length - 3))),
  "malformed JSON": spoilBody(() => Buffer.from('{"uuid": oops]')),
  "JSON of another shape": spoilBody(() => Buffer.from("[[null]]")),
  "an empty answer": spoilBody(() => Buffer.alloc(0)),
  "JSON called text/plain": { kind: "spoil", spoil: withHeader("content-type", "text/plain") },
  "200 with a proxy's page": { kind: "answer", processed: false, status: 200, body: page, headers: html },
  "gzip cut short": compressed((body) => body.subarray(0, body.length - 6)),
  "gzip that is none": compressed(() => Buffer.from("not compressed at all")),
  "a redirect on the same host": redirect("?redirected=1"),
  "a redirect to another host": redirect("http://elsewhere.invalid/v1/login"),
};

function spoilBody(change: (body: Buffer) => Buffer): Fault {
  return {
    kind: "spoil",
    spoil: (whole) => ({ ...whole, headers: withoutLocation(whole), body: change(whole.body) }),
  };
}

function compressed(change: (body: Buffer) => Buffer): Fault {
  return {
    kind: "spoil",
    spoil: (whole) => ({
      ...withHeader("content-encoding", "gzip")(whole),
      body: change(gzipSync(whole.body.length === 0 ? "null" : whole.body)),
    }),
  };
}

function withHeader(name: string, value: string): (whole: WholeAnswer) => WholeAnswer {
  return (whole) => ({ ...whole, headers: new Map(whole.headers).set(name, value) });
}

/** Removes Location, from which the client could take an operation's id without the body. */
function withoutLocation({ headers }: WholeAnswer): Map<string, string> {
  const rest = new Map(headers);
  rest.delete("location");
  return rest;
}
