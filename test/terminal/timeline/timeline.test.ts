/** The timeline of a build: the critical path, rows of the trace, bars of the timings. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  createRequestRecorder,
  createServedTimes,
  readServerTiming,
} from "../../../src/terminal/timeline/requests.ts";
import {
  findChain,
  findCriticalPath,
  findWaits,
  type RecordedBuild,
  type Span,
  type StepSpan,
} from "../../../src/terminal/timeline/spans.ts";
import { renderTimings, timingsOf } from "../../../src/terminal/timeline/timings.ts";
import { assignLanes, renderTrace } from "../../../src/terminal/timeline/trace-json.ts";
import { readTrace } from "../../support/trace-format.ts";

function step(
  stage: number,
  number: number,
  [start, end]: [number, number],
  needs: readonly number[] = [],
): StepSpan {
  const place = { stage: { index: stage, name: `s${stage}` }, step: number, line: number, steps: 9 };
  return { ...place, inStage: undefined, needs, name: `RUN ${number}`, start, end, details: {} };
}

function recorded(steps: StepSpan[], spans: Partial<RecordedBuild> = {}): RecordedBuild {
  const end = Math.max(0, ...steps.map((span) => span.end));
  return { start: 0, end, seconds: undefined, steps, activities: [], requests: [], served: [], ...spans };
}

describe("the critical path", () => {
  test.each<[string, StepSpan[], number[]]>([
    ["of no step is empty", [], []],
    ["of one stage has all of its steps", [step(0, 1, [0, 10]), step(0, 2, [10, 90])], [1, 2]],
    [
      "goes through the needed stage that ended last",
      [step(0, 1, [0, 500]), step(1, 2, [0, 900]), step(2, 3, [900, 950], [0, 1])],
      [2, 3],
    ],
    [
      "leaves out a stage that the last one does not need, even if it is longer",
      [step(0, 1, [0, 880]), step(1, 2, [0, 100]), step(2, 3, [100, 890], [1])],
      [2, 3],
    ],
    [
      "goes through the step for whose end another step had to wait",
      [step(0, 1, [0, 500]), step(1, 2, [0, 50]), step(1, 3, [501, 900])],
      [1, 3],
    ],
    [
      "goes through the stage's previous step after a pause in which nothing ended",
      [step(0, 1, [0, 90]), step(1, 2, [0, 100]), step(0, 3, [300, 900])],
      [1, 3],
    ],
    [
      "has steps without duration once",
      [step(0, 1, [0, 0]), step(0, 2, [0, 0]), step(0, 3, [0, 5])],
      [1, 2, 3],
    ],
    [
      "goes on before steps without duration at the end",
      [step(0, 1, [0, 5]), step(0, 2, [5, 5]), step(0, 3, [5, 5])],
      [1, 2, 3],
    ],
    [
      "leads to the step that failed, not to one that was stopped by that",
      [step(0, 1, [0, 80]), { ...step(0, 2, [80, 90]), details: { failed: true } }, step(1, 3, [0, 95])],
      [1, 2],
    ],
  ])("%s", (_, steps, expected) => {
    expect(findCriticalPath(steps).map((span) => span.step)).toEqual(expected);
  });
});

const spans = fc.array(
  fc.tuple(fc.nat(60), fc.nat(20)).map(([start, length]) => ({ start, end: start + length })),
);

describe("requests that wait for others", () => {
  const span = (name: string, start: number, end: number): Span => ({ name, start, end, details: {} });
  const at = { stage: null, step: 1, line: 1 };
  const requests = [
    ...[span("look", 0, 100), span("other look", 0, 90), span("file", 5, 160), span("spawn", 101, 200)],
    ...[span("events", 201, 300), span("next spawn", 2301, 2400), span("after a pause", 9000, 9100)],
  ];
  const activities = [{ ...at, ...span("operation", 200, 2300) }];

  test("name what ended last before them, unless that was long before", () => {
    const waits = [...findWaits({ requests, activities })].map(([one, other]) => [one.name, other.name]);
    expect(waits).toEqual([
      ["spawn", "look"],
      ["events", "spawn"],
      ["next spawn", "operation"],
    ]);
  });

  test("are a chain with what bough waited for in between", () => {
    const chain = findChain({ requests, activities }).map(({ name }) => name);
    expect(chain).toEqual(["look", "spawn", "operation", "next spawn", "after a pause"]);
  });

  test("are counted in the timings", () => {
    const build = { ...recorded([], { requests, activities }), end: 9100 };
    expect(timingsOf(build).requests).toEqual({ count: 7, inSequence: 4, seconds: 0.398 });
    expect(renderTimings(timingsOf(build), build, 80)).toContain(
      "7 requests, 4 of them one after the other, in 0.40 s\n",
    );
  });
});

describe("rows", () => {
  test("every span is in one row, and a viewer can draw all rows", () => {
    fc.assert(
      fc.property(spans, fc.boolean(), (all, nests) => {
        const lanes = assignLanes(all, { nests });
        expect(lanes.flat().length).toBe(all.length);
        if (!nests)
          for (const lane of lanes)
            for (const [index, span] of lane.entries())
              expect(span.start).toBeGreaterThanOrEqual(lane[index - 1]?.end ?? 0);
        const steps = all.map(({ start, end }, index) =>
          step(index % 3, index + 1, [start, end], [(index + 1) % 3]),
        );
        const others: Span[] = all.map((span) => ({ ...span, name: "GET /", details: {} }));
        const trace = readTrace(
          renderTrace(recorded(steps, { requests: others, served: structuredClone(others) }), {
            command: "c",
            service: "s",
          }),
        );
        const chain = trace.slices.filter(({ category }) => category === "chain");
        expect(trace.slices.length - chain.length).toBe(3 * all.length);
      }),
    );
  });

  test.each<[string, [number, number][], boolean, number]>([
    [
      "spans one after the other",
      [
        [0, 1],
        [1, 2],
      ],
      false,
      1,
    ],
    [
      "a span within another one",
      [
        [0, 9],
        [1, 2],
      ],
      true,
      1,
    ],
    [
      "a span within another one, without nesting",
      [
        [0, 9],
        [1, 2],
      ],
      false,
      2,
    ],
    [
      "a span across the end of another one",
      [
        [0, 5],
        [4, 9],
      ],
      true,
      2,
    ],
  ])("%s", (_, given, nests, rows) => {
    expect(
      assignLanes(
        given.map(([start, end]) => ({ start, end })),
        { nests },
      ).length,
    ).toBe(rows);
  });
});

test.each<[string, Record<string, number>]>([
  ["db;dur=53, app;dur=47.2", { db: 53, app: 47.2 }],
  ['cache;desc="hit, or miss;dur=1";dur=23.2', { cache: 23.2 }],
  ["miss", { miss: 0 }],
  ['total ; dur="5"', { total: 5 }],
  ["", {}],
  [";;;,,,", {}],
])("Server-Timing %j", (header, expected) => {
  expect(readServerTiming(header)).toEqual(expected);
});

test("a request is named by its kind, without secrets", async () => {
  let time = 0;
  const recorder = createRequestRecorder(() => time++);
  const fetch = recorder.watch(async (input) => {
    if (input instanceof Request) throw new Error("no");
    return new Response("", { status: 201, headers: { "Server-Timing": "db;dur=2" } });
  });
  const id = "3df1cf50-cc1d-4392-88fa-a5a501465788";
  await fetch(`https://user:pass@host/v1/operations/${id}?x=1`, {
    method: "DELETE",
    headers: { authorization: "t0ken" },
  });
  await fetch(new Request("https://host/broken", { method: "POST" })).catch(() => undefined);
  void recorder.watch(() => new Promise(() => {}))("https://host/never");
  expect(recorder.end(9)).toEqual([
    {
      ...{ name: "DELETE /v1/operations/{id}", start: 0, end: 1 },
      details: { path: `/v1/operations/${id}?x=1`, status: 201, serverTiming: { db: 2 } },
    },
    { name: "POST /broken", start: 2, end: 3, details: { path: "/broken", failed: true } },
    { name: "GET /never", start: 4, end: 9, details: { path: "/never", unfinished: true } },
  ]);
});

describe("the time on the service", () => {
  const start = Date.parse("2026-01-02T03:04:05Z");
  test.each<["spawned" | "resumed", string, number, object]>([
    ["spawned", "is shown as reported", 40, { start: start + 40, end: start + 140 }],
    [
      "spawned",
      "of another clock is moved between the request and its response",
      7_200_000,
      { start: start + 30, end: start + 130 },
    ],
    ["resumed", "starts with the build if it began before", -50, { start, end: start + 50 }],
    [
      "resumed",
      "of another clock ends when the response arrives",
      -7_200_000,
      { start: start + 200, end: start + 300 },
    ],
  ])("%s: %s", (type, _, since, expected) => {
    const times = createServedTimes(start, { lastOf: () => start + 10 });
    times.note({ type, operation: "op", title: "RUN make" }, start + 50);
    times.add({ operation: "op", kind: "instance", since: start + since, seconds: 0.1 }, start + 300);
    expect(times.spans()).toMatchObject([{ name: "RUN make", ...expected }]);
  });

  test("includes an import, which belongs to no step", () => {
    const times = createServedTimes(start, { lastOf: () => undefined });
    times.add({ operation: "op", kind: "image_import", since: start + 10, seconds: 0.1 }, start + 120);
    expect(times.spans()).toMatchObject([{ name: "import", start: start + 10, end: start + 110 }]);
  });
});

describe("timings are bars", () => {
  const build = recorded([
    step(0, 1, [0, 3]),
    {
      ...step(0, 2, [3, 500]),
      name: "RUN \u001b[31mred and rather long, longer than there is room for it in a line",
    },
    step(1, 3, [0, 900]),
    step(2, 4, [900, 1000], [0, 1]),
  ]);
  test("in 80 columns, and in fewer", () => {
    const rendered = (columns: number) => `\n${renderTimings(timingsOf(build), build, columns)}`;
    expect(rendered(80)).toMatchInlineSnapshot(`
      "
      critical path: 2 steps, 1.0 s of 1.0 s
        [3/9] RUN 3                                  0.90 s  ██████████████████████
        [4/9] RUN 4                                  0.10 s                        ██
      slowest steps:
        [3/9] RUN 3                                  0.90 s  ████████████████████████
        [2/9] RUN \\x1b[31mred and rather long, l…    0.50 s  █████████████
        [4/9] RUN 4                                  0.10 s  ███
      "
    `);
    expect(rendered(40)).toMatchInlineSnapshot(`
      "
      critical path: 2 steps, 1.0 s of 1.0 s
        [3/9] RUN 3      0.90 s  ███████████
        [4/9] RUN 4      0.10 s             █
      slowest steps:
        [3/9] RUN 3      0.90 s  ████████████
        [2/9] RUN \\x…    0.50 s  ███████
        [4/9] RUN 4      0.10 s  █
      "
    `);
    for (const line of rendered(40).split("\n")) expect(Bun.stringWidth(line)).toBeLessThan(40);
  });
  test("of a build without a step", () => {
    const none = recorded([]);
    expect(renderTimings(timingsOf(none), none, 80)).toBe("critical path: 0 steps, 0.00 s of 0.00 s\n");
  });
});
