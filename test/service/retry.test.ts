import { describe, expect, test } from "bun:test";
import {
  type Attempt,
  type AttemptFailure,
  decide,
  isOutcomeUnknown,
  parseRetryAfter,
  retryAfterIn,
} from "../../src/service/http/retry.ts";

const now = Date.UTC(2026, 0, 1, 12, 0, 0);

const status = (code: number, retryAfter: string | null = null): AttemptFailure => ({
  kind: "status",
  status: code,
  retryAfter,
});
const refused: AttemptFailure = { kind: "connection", received: false, permanent: false };
const reset: AttemptFailure = { kind: "connection", received: true, permanent: false };
const badCertificate: AttemptFailure = { kind: "connection", received: false, permanent: true };
const malformed: AttemptFailure = { kind: "malformed" };
const incomplete: AttemptFailure = { kind: "incomplete" };
const excessive: AttemptFailure = { kind: "excessive" };
const moved: AttemptFailure = { kind: "moved", url: "http://x/" };

/** Without jitter (`random` 0) the waits are 200 ms, doubling. */
const table: [
  what: string,
  failure: AttemptFailure,
  attempt: Partial<Attempt>,
  expected: number | "give up",
][] = [
  ["429 waits as long as the service asks", status(429, "7"), {}, 7000],
  ["429 with a date", status(429, "Thu, 01 Jan 2026 12:00:03 GMT"), {}, 3000],
  ["429 with a date in the past still waits a moment", status(429, "Thu, 01 Jan 2026 11:00:00 GMT"), {}, 200],
  ["429 with an invalid Retry-After backs off", status(429, "soon"), {}, 200],
  ["429 without Retry-After backs off", status(429), { number: 3 }, 800],
  ["429 is repeated even for a call that must not run twice", status(429, "1"), { repeatable: false }, 1000],
  ["425 is repeated even for a call that must not run twice", status(425), { repeatable: false }, 200],
  ["429 with a wait of an hour", status(429, "3600"), {}, "give up"],
  ["429 is repeated for longer than a fault", status(429, "1"), { elapsedMilliseconds: 200_000 }, 1000],
  ["429 after five minutes", status(429, "1"), { elapsedMilliseconds: 300_000 }, "give up"],

  ["503 of a repeatable call", status(503), {}, 200],
  ["503, second time", status(503), { number: 2 }, 400],
  ["503, many times, waits ten seconds at most", status(503), { number: 9 }, 10_000],
  ["503 with Retry-After", status(503, "2"), {}, 2000],
  [
    "503 of a call that must not run twice is repeated: the call was refused",
    status(503),
    { repeatable: false },
    200,
  ],
  ["503 of a call that must not run twice, with Retry-After", status(503, "2"), { repeatable: false }, 2000],
  ["502", status(502), {}, 200],
  ["504", status(504), {}, 200],
  ["503 after half a minute", status(503), { elapsedMilliseconds: 29_900 }, "give up"],
  ["503 with a long Retry-After", status(503, "120"), {}, 120_000],
  ["503 with a Retry-After, again and again", status(503, "3"), { elapsedMilliseconds: 28_000 }, "give up"],
  ["503 with a wait of an hour", status(503, "3600"), {}, "give up"],
  [
    "500 within 15 s, which is less because it is often a defect",
    status(500),
    { elapsedMilliseconds: 14_000 },
    200,
  ],
  ["500 after 15 s", status(500), { elapsedMilliseconds: 15_000 }, "give up"],
  ["501 will never work", status(501), {}, "give up"],
  ["507, because a full disk stays full", status(507), {}, "give up"],
  ["408", status(408), {}, 200],
  ["400", status(400), {}, "give up"],
  ["401", status(401), {}, "give up"],
  ["404", status(404), {}, "give up"],
  ["409", status(409), {}, "give up"],

  ["refused connection", refused, {}, 200],
  [
    "refused connection of a call that must not run twice is repeated: it was not received",
    refused,
    { repeatable: false },
    200,
  ],
  [
    "refused connection of an address that was never reached",
    refused,
    { answeredBefore: false, elapsedMilliseconds: 5000 },
    "give up",
  ],
  ["refused connection of an address that was reached before", refused, { elapsedMilliseconds: 29_000 }, 200],
  ["reset connection after half a minute", reset, { number: 2, elapsedMilliseconds: 29_900 }, "give up"],
  ["reset connection", reset, {}, 200],
  ["reset connection of a call that must not run twice", reset, { repeatable: false }, "give up"],
  ["certificate", badCertificate, {}, "give up"],

  ["malformed answer", malformed, {}, 200],
  ["too large an answer", excessive, {}, "give up"],
  ["malformed answer, third time", malformed, { number: 3 }, "give up"],
  ["malformed answer of a call that must not run twice", malformed, { repeatable: false }, "give up"],
  ["answer without what the call needs", incomplete, {}, 200],
  [
    "answer without what the call needs, of one that starts something",
    incomplete,
    { isStart: true },
    "give up",
  ],
  ["redirected body", moved, { repeatable: false }, 0],
  ["redirected body, again and again", moved, { number: 6 }, "give up"],
  ["500 of an optional call, third time", status(500), { number: 3, isOptional: true }, "give up"],
  ["503 of an optional call, third time", status(503), { number: 3, isOptional: true }, 800],
  ["503 of an optional call, fourth time", status(503), { number: 4, isOptional: true }, "give up"],
  ["429 of an optional call with a wait of a minute", status(429, "60"), { isOptional: true }, "give up"],
];

describe("a failed call is sent again or given up:", () => {
  test.each(table)("%s", (_, failure, attempt, expected) => {
    const facts = {
      number: 1,
      repeatable: true,
      answeredBefore: true,
      elapsedMilliseconds: 0,
      ...attempt,
      failure,
    };
    const decision = decide(facts, now, 0);
    expect(decision).toEqual(
      expected === "give up" ? { action: "give up" } : { action: "wait", milliseconds: expected },
    );
  });

  test("jitter shortens a wait by up to half, but not a wait that the service asked for", () => {
    const facts = { number: 4, repeatable: true, answeredBefore: true, elapsedMilliseconds: 0 };
    expect(decide({ ...facts, failure: status(503) }, now, 0.999)).toEqual({
      action: "wait",
      milliseconds: 801,
    });
    expect(decide({ ...facts, failure: status(503, "3") }, now, 0.999)).toEqual({
      action: "wait",
      milliseconds: 3000,
    });
  });
});

test.each([
  [status(500), true],
  [status(502), true],
  [status(503), false],
  [status(507), false],
  [status(400), false],
  [status(429), false],
  [refused, false],
  [reset, true],
  [malformed, true],
  [incomplete, true],
  [excessive, true],
  [moved, false],
] as const)("after %o, is it unknown what the service did? %p", (failure, expected) => {
  expect(isOutcomeUnknown(failure)).toBe(expected);
});

test.each([
  [null, undefined],
  ["0", 0],
  [" 12 ", 12_000],
  ["1.5", 1500],
  ["-3", undefined],
  ["Thu, 01 Jan 2026 12:01:00 GMT", 60_000],
  ["", undefined],
] as const)("Retry-After: %p is %p ms", (value, expected) => {
  expect(parseRetryAfter(value, now)).toBe(expected);
});

test.each<[Record<string, string>, string | null]>([
  [{ "retry-after": "Thu, 01 Jan 2026 06:00:05 GMT", date: "Thu, 01 Jan 2026 06:00:00 GMT" }, "5"],
  [{ "retry-after": "Thu, 01 Jan 2026 05:00:00 GMT", date: "Thu, 01 Jan 2026 06:00:00 GMT" }, "0"],
  [{ "retry-after": "Thu, 01 Jan 2026 06:00:05 GMT" }, "Thu, 01 Jan 2026 06:00:05 GMT"],
  [{ "retry-after": "7", date: "Thu, 01 Jan 2026 06:00:00 GMT" }, "7"],
  [{ "retry-after": "-3", date: "Thu, 01 Jan 2026 06:00:00 GMT" }, "-3"],
  [{ date: "Thu, 01 Jan 2026 06:00:00 GMT" }, null],
])("Retry-After of the headers %j is %p, whatever this machine's clock says", (headers, expected) => {
  expect(retryAfterIn(new Headers(headers))).toBe(expected);
});
