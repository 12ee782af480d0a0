/**
 * The same Dockerfile, context and base image, built by bough on its engine (as root and as an ordinary user) and by
 * buildah: the root file systems must be the same, entry by entry. The cases are in `test/cases/differential`. To run one:
 * `./scripts/test test/differential -t copy-chown`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { digestOfImage, keepResults } from "../support/kept-results.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { rowsFor } from "../support/rows.ts";
import { readBaseTrees } from "./base-tree.ts";
import { makeBough, serveEngine, serveEngineAs } from "./bough.ts";
import { makeBuildah } from "./buildah.ts";
import type { Builder } from "./builder.ts";
import { type Case, readDifferentialCases } from "./case.ts";
import { compareTrees, type Difference, formatDifferences, isLeftByBuildah } from "./compare.ts";
import { findDebianBase } from "./debian-base.ts";
import { serveFiles } from "./file-server.ts";
import { oncePerCase } from "./once-per-case.ts";
import { type Tree, treeFormat } from "./tree.ts";

const minutes = 60_000;
const kept = keepResults({
  test: import.meta.path,
  versions: ["buildah", "runc", "skopeo", "tar"].map((program) => [program, "--version"]),
});
const directory = temporaryDirectory("bough-differential-");
const sides = ["root", "an ordinary user"] as const;
type Side = (typeof sides)[number];
let boughs: Record<Side, Builder>;
let bases: Record<string, string>;
let baseDigests: string[];
let baseTrees: Record<string, Tree>;
const format = treeFormat(() => baseTrees);
let buildah: Promise<Builder> | undefined;
let server: ReturnType<typeof serveFiles>;
let user: OrdinaryUser;

beforeAll(async () => {
  const debian = await findDebianBase();
  server = serveFiles(debian.packages);
  user = makeOrdinaryUser();
  const [rootEngine, userEngine] = await Promise.all([
    serveEngine(join(directory, "engine")),
    serveEngineAs(user),
  ]);
  boughs = {
    root: makeBough(rootEngine, join(directory, "root")),
    "an ordinary user": makeBough(userEngine, join(directory, "user")),
  };
  bases = {
    "busybox:1": await makeBusyboxLayout(join(directory, "busybox")),
    "configured:1": await makeBusyboxLayout(join(directory, "configured"), {
      environment: ["PATH=/opt/bin:/bin", "GIVEN=by the image", "LINES=one\ntwo"],
      workingDirectory: "/srv/app",
      configuration: { User: "daemon" },
      prepare: (root) =>
        writeFiles(root, {
          "srv/app/theirs": "x\n",
          "opt/bin/tool": { text: "#!/bin/sh\necho tool\n", mode: 0o755 },
        }),
    }),
    "debian:bookworm-slim": debian.source,
  };
  for (const [name, source] of Object.entries(bases)) {
    const imports = await Promise.allSettled(
      Object.values(boughs).map((builder) => builder.importBase(source, name)),
    );
    for (const outcome of imports) if (outcome.status === "rejected") throw outcome.reason;
  }
  baseDigests = Object.values(bases).map(digestOfImage);
  baseTrees = await readBaseTrees(bases);
}, 10 * minutes);

afterAll(async () => {
  await server?.stop();
  await Promise.all(Object.values(boughs ?? {}).map((builder) => builder.close()));
  user?.remove();
  rmSync(directory, { recursive: true, force: true });
}, minutes);

/** Cases with owners, modes, links or devices, which could differ in a user namespace. */
const ofEachKind = [
  ...["base-image-configuration", "copy-chmod-symbolic", "copy-chown", "copy-directories", "copy-modes"],
  ...["copy-onto-root", "copy-replaces", "copy-through-links", "debian-apt-get", "debian-service-user"],
  ...["debian-setuid-and-capabilities", "deep-trees", "deleted", "links-and-special-files", "odd-names"],
  ...["replaced", "user", "users-and-groups", "volume"],
];

describe.each(sides)("as %s", (side) => {
  const rows = readDifferentialCases().map((each) => [each.name, each] as const);
  test.each(rowsFor(side, rows, ofEachKind))(
    "%s",
    async (_, each) => {
      const bough = buildWithBough(each, side);
      const origin = { inputs: [each.name, each.digest], bases: baseDigests };
      const make = () => buildWithBuildah(each);
      await kept.check(origin, format, make, async (other) => {
        const differences = compareTrees(await bough, other).filter(
          (difference) => !isLeftByBuildah(difference),
        );
        const surprises = differences.filter((difference) => !isExpected(difference, each));
        if (surprises.length > 0)
          throw new Error(`the images differ:\n${formatDifferences(surprises, "buildah")}`);
        expect(differences.map(({ path }) => path)).toEqual(Object.keys(each.spec.differences ?? {}));
      });
    },
    2 * minutes,
  );
});

async function buildWithBough(each: Case, side: Side): Promise<Tree> {
  const context = contextOf(each);
  const dockerfile = join(context, "Dockerfile");
  const builder = boughs[side];
  return builder.readImage(
    await builder.build({ context, dockerfile, ignoreFile: undefined, buildArgs: buildArgsOf(each) }),
  );
}

/** Starts buildah and imports the base images. */
async function startBuildah(): Promise<Builder> {
  const builder = makeBuildah(join(directory, "buildah"));
  for (const [name, source] of Object.entries(bases)) await builder.importBase(source, name);
  return builder;
}

/** Builds a case with buildah once for both sides. */
const buildWithBuildah = oncePerCase(async (each: Case): Promise<Tree> => {
  const context = contextOf(each);
  const dockerfile = each.buildahDockerfile ?? join(context, "Dockerfile");
  const request = { context, dockerfile, ignoreFile: each.buildahIgnoreFile, buildArgs: buildArgsOf(each) };
  buildah ??= startBuildah();
  const builder = await buildah;
  return builder.readImage(await builder.build(request));
});

const contextOf = oncePerCase(({ name, writeContext }: Case): string => {
  const context = join(directory, `context-${name}`);
  writeContext(context);
  return context;
});

function buildArgsOf({ spec }: Case): Record<string, string> {
  return { SERVER: server.address, ...spec.buildArgs };
}

function isExpected({ path, bough, other }: Difference, { spec }: Case): boolean {
  const expected = spec.differences?.[path];
  return (
    expected !== undefined &&
    (bough?.line ?? "nothing") === expected.bough &&
    (other?.line ?? "nothing") === expected.buildah
  );
}
