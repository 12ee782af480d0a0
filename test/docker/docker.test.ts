/**
 * Dockerfiles of several stages, built by `bough build --docker` and by Docker itself: the root file systems must be the same,
 * entry by entry, and both must refuse the same Dockerfiles. The cases are in `cases`. To run one:
 * `./scripts/test test/docker -t copy-chown`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readBaseTrees } from "../differential/base-tree.ts";
import { makeBough, serveEngine, serveEngineAs } from "../differential/bough.ts";
import type { Builder } from "../differential/builder.ts";
import { compareTrees, type Difference, formatDifferences } from "../differential/compare.ts";
import { oncePerCase } from "../differential/once-per-case.ts";
import { type Tree, treeFormat } from "../differential/tree.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { dockerVersions } from "../support/docker.ts";
import { writeFiles } from "../support/files.ts";
import { digestOfImage, keepResults, type ResultFormat } from "../support/kept-results.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { rowsFor } from "../support/rows.ts";
import { makeBases } from "./bases.ts";
import { type CaseSpec, type DockerCase, readDockerCases } from "./case.ts";
import { compareTimes } from "./compare-times.ts";
import { dockerOnDemand } from "./docker-on-demand.ts";
import { isLeftByDocker } from "./left-of-docker.ts";
import { hideExtensions } from "./plain-service.ts";
import { refusals } from "./refusals.ts";
import { builtAlike } from "./so-far.ts";

const minutes = 60_000;
const directory = temporaryDirectory("bough-docker-");
const sides = [
  "the engine as root",
  "the engine as an ordinary user",
  "a service without extensions",
] as const;
type Side = (typeof sides)[number];
let boughs: Record<Side, Builder>;
let bases: Record<string, string>;
let baseDigests: string[];
let baseTrees: Record<string, Tree>;
const format = treeFormat(() => baseTrees);
const docker = dockerOnDemand(join(directory, "docker"), () => bases);
const kept = keepResults({ test: import.meta.path, versions: dockerVersions });
let user: OrdinaryUser;

beforeAll(async () => {
  user = makeOrdinaryUser();
  const [rootEngine, userEngine, plainEngine] = await Promise.all([
    serveEngine(join(directory, "engine")),
    serveEngineAs(user),
    serveEngine(join(directory, "plain"), hideExtensions),
  ]);
  boughs = {
    "the engine as root": makeBough(rootEngine, join(directory, "root")),
    "the engine as an ordinary user": makeBough(userEngine, join(directory, "user")),
    "a service without extensions": makeBough(plainEngine, join(directory, "service")),
  };
  bases = await makeBases(directory);
  baseDigests = Object.values(bases).map(digestOfImage);
  baseTrees = await readBaseTrees(bases);
  for (const [name, source] of Object.entries(bases))
    await Promise.all(Object.values(boughs).map((builder) => builder.importBase(source, name)));
}, 5 * minutes);

afterAll(async () => {
  await Promise.all([docker, ...Object.values(boughs ?? {})].map((builder) => builder.close()));
  user?.remove();
  rmSync(directory, { recursive: true, force: true });
}, minutes);

const cases = readDockerCases();

const isBuiltAlike = ({ name }: DockerCase) => name.startsWith("mount-") || builtAlike.has(name);

test.each(cases.filter((each) => !isBuiltAlike(each)).map((each) => [each.name, each] as const))(
  "Docker alone builds %s",
  (_, each) => checkWithDocker(each, (tree) => expect(tree.size).toBeGreaterThan(0)),
  minutes,
);

/** The cases for an ordinary user: owners, modes, links, devices or mounts, which could differ in a user namespace. */
const ofEachKind = [
  ...[
    "add-archives",
    "copied-then-changed",
    "copy-chown-forms",
    "copy-from-image",
    "copy-keeps",
    "copy-odd-names",
  ],
  ...[
    "hard-links",
    "hard-links-of-context",
    "links-in-destination",
    "pipes-and-sockets",
    "times",
    "user-and-copies",
    "users",
    "volumes",
  ],
  ...[
    "mount-bind-from-image",
    "mount-bind-over-file",
    "mount-bind-readonly",
    "mount-cache-owner",
    "mount-nested",
    "mount-secret-executable",
  ],
  ...["mount-secret-options", "mount-target-through-link", "mount-tmpfs", "mount-with-user"],
];

describe.each(sides)("%s", (side) => {
  const rows = cases.filter(isBuiltAlike).map((each) => [each.name, each] as const);
  test.each(rowsFor(side === "the engine as an ordinary user" ? side : "root", rows, ofEachKind))(
    "%s",
    async (_, each) => {
      const { refusedWithoutExtensions: refusal } = each.spec;
      if (side === "a service without extensions" && refusal !== undefined) {
        await expect(buildWithBough(each, side)).rejects.toThrow(refusal);
        return;
      }
      if (side === "a service without extensions" && each.spec.needsMounts === true) {
        expect((await buildWithBough(each, side)).size).toBeGreaterThan(0);
        return;
      }
      const building = buildWithBough(each, side);
      await checkWithDocker(each, async (other) => {
        const bough = await building;
        const differences = compareTrees(bough, other).filter((difference) => !isLeftByDocker(difference));
        const expected = differencesOf(each, side);
        const isMountPoint = ({ path, bough: own }: Difference) =>
          own === undefined && each.spec.mountPoints?.includes(path) === true;
        const surprises = differences.filter(
          (difference) => !isExpected(difference, expected) && !isMountPoint(difference),
        );
        if (surprises.length > 0)
          throw new Error(`the images differ:\n${formatDifferences(surprises, "docker")}`);
        // Newer versions of Docker leave fewer mount points.
        const others = differences.filter((difference) => !isMountPoint(difference));
        expect(others.map(({ path }) => path).sort()).toEqual(Object.keys(expected).sort());
        // The API's document has no times of files.
        if (side !== "a service without extensions") expect(compareTimes(bough, other)).toEqual([]);
      });
    },
    minutes,
  );
});

/** The stored form of Docker's output: the error, at its end, without the directory of this run. */
const lastLine: ResultFormat<string, string> = {
  pack: (output) => (output.trimEnd().split("\n").at(-1) ?? "").replaceAll(directory, ""),
  unpack: (line) => line,
};

describe("refused by Docker", () => {
  test.each(refusals.map((each) => [each.what, each] as const))(
    "%s",
    async (_, { dockerfile, target, docker: words }) => {
      const refuse = async () => {
        const request = { ...writeContext(dockerfile), target };
        return (await docker.get()).build(request).then(
          (image) => `it builds ${image}`,
          (error: Error) => error.message,
        );
      };
      const origin = { inputs: [dockerfile, target ?? null], bases: baseDigests };
      await kept.check(origin, lastLine, refuse, (message) => expect(message).toContain(words));
    },
    minutes,
  );
});

describe("refused by bough", () => {
  test.each(refusals.filter(({ bough }) => bough !== undefined).map((each) => [each.what, each] as const))(
    "%s",
    async (_, { dockerfile, target, bough: words }) => {
      const place = writeContext(dockerfile);
      const request = { ...place, ignoreFile: undefined, buildArgs: {}, options: optionsOf(target) };
      await expect(boughs["the engine as root"].build(request)).rejects.toThrow(words);
    },
    minutes,
  );
});

function writeContext(text: string): { context: string; dockerfile: string } {
  const context = mkdtempSync(join(directory, "refused-"));
  const dockerfile = join(context, "Dockerfile");
  writeFiles(context, {
    Dockerfile: text,
    ".dockerignore": "ignored*\n",
    ignored: "",
    "ignored-too/in": "",
    "ignored-too/up": { link: ".." },
    "linked/to-ignored": { link: "../ignored-too" },
    f: "",
    "d/f/in": "",
    "d2/f": "",
  });
  return { context, dockerfile };
}

async function buildWithBough(each: DockerCase, side: Side): Promise<Tree> {
  const context = contextOf(each);
  const builder = boughs[side];
  const image = await builder.build({
    context,
    dockerfile: join(context, "Dockerfile"),
    ignoreFile: undefined,
    buildArgs: each.spec.buildArgs ?? {},
    options: [
      ...optionsOf(each.spec.target),
      ...secretsOf(each),
      ...hostsOf(each),
      ...contextOptions(each, context),
    ],
  });
  return builder.readImage(image);
}

function optionsOf(target: string | undefined): string[] {
  return ["--docker", ...(target === undefined ? [] : ["--target", target])];
}

function contextOptions({ spec }: DockerCase, context: string): string[] {
  return Object.entries(spec.contexts ?? {}).flatMap(([name, value]) => {
    const place = value.includes("://") ? value : join(context, value);
    return ["--build-context", `${name}=${place}`];
  });
}

function hostsOf({ spec }: DockerCase): string[] {
  return (spec.hosts ?? []).map((host) => `--add-host=${host}`);
}

/** Writes the secrets to files outside of the context. Returns the options that name them. */
function secretsOf({ name, spec }: DockerCase): string[] {
  return Object.entries(spec.secrets ?? {}).flatMap(([id, value]) => {
    const file = join(directory, `secret-${name}-${id}`);
    writeFileSync(file, value);
    return ["--secret", `id=${id},src=${file}`];
  });
}

async function checkWithDocker(each: DockerCase, check: (tree: Tree) => void | Promise<void>): Promise<void> {
  const origin = { inputs: [each.name, each.digest], bases: baseDigests };
  await kept.check(origin, format, () => buildWithDocker(each), check);
}

/** Builds a case with Docker once for all sides. */
const buildWithDocker = oncePerCase(async (each: DockerCase): Promise<Tree> => {
  const context = contextOf(each);
  const dockerfile = each.dockerDockerfile ?? join(context, "Dockerfile");
  const { target, buildArgs = {} } = each.spec;
  const options = [...secretsOf(each), ...hostsOf(each)];
  return (await docker.get()).buildTree({ context, dockerfile, target, buildArgs, options });
});

const contextOf = oncePerCase(({ name, writeContext }: DockerCase): string => {
  const context = join(directory, `context-${name}`);
  writeContext(context);
  return context;
});

function differencesOf({ spec }: DockerCase, side: Side): NonNullable<CaseSpec["differences"]> {
  const own = side === "a service without extensions" ? spec.differencesWithoutExtensions : undefined;
  return own ?? spec.differences ?? {};
}

function isExpected(
  { path, bough, other }: Difference,
  differences: NonNullable<CaseSpec["differences"]>,
): boolean {
  const expected = differences[path];
  return (
    expected !== undefined &&
    (bough?.line ?? "nothing") === expected.bough &&
    (other?.line ?? "nothing") === expected.docker
  );
}
