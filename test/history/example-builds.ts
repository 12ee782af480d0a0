/** Builds as the history has them, for pages that look the same each time. */
import type { BuildStep } from "../../src/history/build-record.ts";
import {
  directorySizes,
  type ImageSizes,
  type ReportData,
  type SizedFile,
} from "../../src/history/report/report-data.ts";
import { originOf, recordOf, stepOf } from "./builds.ts";

type Row = [title: string, start: number, end: number, given?: Partial<BuildStep>];

/** Makes the steps of a stage. Times are milliseconds. */
function stage(index: number, name: string | null, first: number, rows: readonly Row[]): BuildStep[] {
  return rows.map(([title, start, end, given], at) =>
    stepOf(first + at, title, {
      ...{ stage: { index, name }, inStage: { step: at + 1, steps: rows.length }, start, end },
      ...{ layer: `layer:${first + at}a`, outcome: title.startsWith("FROM") ? "cached" : "made" },
      ...given,
    }),
  );
}

const done: Partial<BuildStep> = { outcome: "done", layer: null };
const cached: Partial<BuildStep> = { outcome: "cached" };
const prints = (length: number): Partial<BuildStep> => ({ output: { length, kept: length } });
const after = (step: number, title: string): Partial<BuildStep> => ({
  reason: { reason: "parent", before: "0a1b2c3d4e5f", now: `${step}a`, title },
});

const npm = "RUN npm ci --no-audit --prefer-offline";
const lockfile: Partial<BuildStep> = {
  reason: {
    reason: "file",
    path: "/app/package-lock.json",
    source: "package-lock.json",
    before: "file 0644 0:0 1f3870be274f",
    now: "file 0644 0:0 6dcd4ce23d88",
    others: 0,
  },
  addedBytes: 812_000,
};

const steps = [
  ...stage(0, "deps", 1, [
    ["FROM node:22-slim AS deps", 0, 30],
    ["WORKDIR /app", 30, 40, cached],
    ["COPY package.json package-lock.json ./", 40, 210, lockfile],
    [npm, 210, 14_050, { ...after(3, "COPY package.json ./"), ...prints(900), addedBytes: 341_000_000 }],
  ]),
  ...stage(1, "api", 5, [
    ["FROM golang:1.24 AS api", 0, 30],
    ["WORKDIR /src", 30, 40, cached],
    ["ARG VERSION", 40, 40, done],
    [
      "RUN go build -ldflags=-X=main.version=$VERSION -o /api ./cmd/api",
      ...([40, 8700] as const),
      {
        ...prints(300),
        reason: { reason: "ARG", name: "VERSION", before: { text: "1.4.1" }, now: { text: "1.4.2" } },
        addedBytes: 18_400_000,
      },
    ],
  ]),
  ...stage(2, null, 9, [
    ["FROM node:22-slim", 0, 30],
    ["WORKDIR /app", 30, 40, cached],
    [
      "COPY --from=deps /app/node_modules ./node_modules",
      ...([14_050, 17_300] as const),
      {
        needs: [0],
        reason: { reason: "source", from: "deps", path: "/app/node_modules" },
        addedBytes: 341_000_000,
      },
    ],
    [
      "COPY --from=api /api /usr/local/bin/api",
      ...([17_300, 17_420] as const),
      {
        ...after(11, "COPY --from=deps /app/node_modules ./node_modules"),
        needs: [1],
        addedBytes: 18_400_000,
      },
    ],
    [
      "COPY . .",
      17_420,
      17_800,
      { ...after(12, "COPY --from=api /api /usr/local/bin/api"), addedBytes: 2_100_000 },
    ],
    [
      "RUN npm run build && npm prune --omit=dev",
      17_800,
      26_200,
      { ...after(13, "COPY . ."), ...prints(200), addedBytes: 64_000_000 },
    ],
    ["USER node", 26_200, 26_200, done],
    ['CMD ["node", "server.js"]', 26_200, 26_200, done],
  ]),
];

/** Of the build before, only two steps were made. */
const earlierSteps = steps.map((step): BuildStep => {
  if (step.outcome !== "made") return step;
  const isBuilt = step.step === 8 || step.step === 14;
  const times = isBuilt ? { start: 50, end: step.step === 8 ? 8600 : 13_000 } : { start: 40, end: 50 };
  return { ...step, ...times, outcome: isBuilt ? "made" : "cached", reason: null };
});

/** Bytes by path, in megabytes, of each layer above the base. */
const files: [layer: number, megabytes: number, path: string][] = [
  [0, 74, "/usr/lib/x86_64-linux-gnu/libs"],
  [0, 21, "/usr/bin/tools"],
  [1, 97, "/usr/local/bin/node"],
  [1, 19, "/usr/local/lib/node_modules/npm/all"],
  [3, 138, "/app/node_modules/next/dist/all.js"],
  [3, 61, "/app/node_modules/@swc/core/binding.node"],
  [3, 44, "/app/node_modules/typescript/lib/all.js"],
  [3, 39, "/app/node_modules/date-fns/all.js"],
  [3, 24, "/app/node_modules/react-dom/all.js"],
  [3, 35, "/app/node_modules/lodash/all.js"],
  [4, 18, "/usr/local/bin/api"],
  [5, 2, "/app/src/all.ts"],
  [6, 64, "/app/.next/cache/all"],
];

const sizes: ImageSizes = {
  ...{ bytes: 636_000_000, hiddenBytes: 44_000_000 },
  layers: [
    { instruction: "", isBase: true, bytes: 95_000_000, hiddenBytes: 0 },
    { instruction: "", isBase: true, bytes: 116_000_000, hiddenBytes: 0 },
    { instruction: "WORKDIR /app", isBase: false, bytes: 0, hiddenBytes: 0 },
    { instruction: steps[10]?.title ?? "", isBase: false, bytes: 341_000_000, hiddenBytes: 44_000_000 },
    { instruction: steps[11]?.title ?? "", isBase: false, bytes: 18_000_000, hiddenBytes: 0 },
    { instruction: "COPY . .", isBase: false, bytes: 2_000_000, hiddenBytes: 0 },
    { instruction: steps[13]?.title ?? "", isBase: false, bytes: 64_000_000, hiddenBytes: 0 },
  ],
  root: directorySizes(
    files.map(([layer, megabytes, path]): SizedFile => ({ layer, bytes: megabytes * 1_000_000, path })),
  ),
};

const origin = originOf("shop/web:1.4.2", {
  ...{ isCi: true, context: "/builds/shop/web", tags: ["shop/web:1.4.2"], version: "1.0.0" },
  buildArgs: [
    { name: "VERSION", value: "1.4.2" },
    { name: "NPM_TOKEN", value: null },
  ],
});

const npmOutput = `npm warn deprecated inflight@1.0.6: This module is not supported\n\nadded 812 packages in 13s\n`;

/** Three stages, of which one waits for the two others; seven layers were not in the cache. */
export const shop: ReportData = {
  record: recordOf("3kx9m2p7q1ab", steps, {
    ...{ seconds: 26.6, origin },
    inputs: [
      { kind: "image", name: "node:22-slim", image: "base-1", digest: `sha256:${"4f5e".repeat(16)}` },
      { kind: "image", name: "golang:1.24", image: "base-2", digest: `sha256:${"90ab".repeat(16)}` },
    ],
    warnings: [{ message: "JSONArgsRecommended: JSON arguments recommended for CMD", line: 23 }],
    result: {
      image: "6f1c2a34-8a51-4a4e-9d7e-0c1f5e2b7a90",
      platforms: [],
      tags: ["shop/web:1.4.2"],
      exported: [],
    },
  }),
  outputs: new Map([
    [4, npmOutput],
    [8, "go: downloading golang.org/x/net v0.38.0\n"],
    [14, "\u001b[32m✓\u001b[0m Compiled successfully\n"],
  ]),
  earlier: recordOf("9q1ab7m2p3kx", earlierSteps, {
    seconds: 13.1,
    origin,
    startedAt: shopStart() - 3_600_000,
  }),
  sizes,
};

function shopStart(): number {
  return Date.parse("2026-03-01T10:00:00Z");
}

const compiler = `src/main.c: In function 'main':
src/main.c:12:3: error: implicit declaration of function 'prnitf'; did you mean 'printf'?
   12 |   prnitf("hello\\n");
      |   ^~~~~~
make: *** [Makefile:4: main.o] Error 1
`;

/** The compiler ends it; a step of another stage is stopped by that. */
export const failed: ReportData = {
  record: recordOf(
    "f4k2m8d1s7qz",
    [
      ...stage(0, "tool", 1, [
        ["FROM debian:12 AS tool", 0, 40],
        ["RUN apt-get update && apt-get install --yes gcc make", 40, 120, cached],
        ["COPY src src", 120, 300, lockfile],
        [
          "RUN make -j8",
          ...([300, 4200] as const),
          { ...after(3, "COPY src src"), ...prints(compiler.length), outcome: "failed", layer: null },
        ],
      ]),
      ...stage(1, null, 5, [
        ["FROM debian:12", 0, 40],
        [
          "RUN apt-get update && apt-get install --yes ca-certificates",
          40,
          4210,
          { ...prints(40), outcome: "stopped", layer: null },
        ],
      ]),
    ],
    {
      ...{ seconds: 4.3, status: "failed", origin: originOf("tool:dev") },
      error: {
        message: "Dockerfile:4: the command failed with exit code 2: RUN make -j8",
        hint: "To look into it: bough run --failed-step",
      },
    },
  ),
  outputs: new Map([
    [4, compiler],
    [6, "Get:1 http://mirror.test bookworm\n"],
  ]),
  ...{ earlier: undefined, sizes: undefined },
};

/** Five hundred steps that print a lot. */
export function manySteps(count = 500): ReportData {
  const many = Array.from({ length: count }, (_, at) =>
    stepOf(at + 1, `RUN make module-${at} ${"with some words ".repeat(at % 20)}`, {
      ...{ steps: count, start: at * 100, end: at * 100 + 50 + at },
      outcome: at === count - 1 ? "failed" : at < count / 5 ? "cached" : "made",
      ...{ output: { length: 40_000, kept: 40_000 }, addedBytes: 12345, layer: `layer:${at + 1}a` },
      ...(at < count / 5 ? {} : after(at, "RUN make")),
    }),
  );
  return {
    record: recordOf("b500", many, {
      ...{ seconds: 50, status: "failed", error: { message: "Dockerfile:500: exit code 1", hint: null } },
    }),
    outputs: new Map(many.map(({ step }) => [step, `<output> & of ${step}\n`.repeat(5000)])),
    ...{ earlier: undefined, sizes: undefined },
  };
}
