/**
 * Dockerfiles built by `bough build --docker`, compared with what Docker 28.5 has built from them: newer than the Docker of
 * `docker.test.ts`, and so kept as text. A case is a directory in `recorded` with
 * - `Dockerfile`,
 * - `context.sh`, optionally: makes the context, in an empty directory,
 * - `docker`: what Docker makes of it, the changes of `busybox:1` with the times of entries from before the build, or `refused`,
 * - `ordinary-user` and `without-extensions`, optionally: what bough makes of it there, if that differs.
 *
 * `RECORD_DOCKER=unix://SOCKET` writes `docker` with the Docker that listens there, and `RECORD_CLIENT=PATH` is its own client, with buildx: it
 * reads contexts and ignore files. To run one: `./scripts/test test/docker/recorded.test.ts -t name`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeBough, serveEngine, serveEngineAs } from "../differential/bough.ts";
import type { Builder } from "../differential/builder.ts";
import { readTree, type Tree } from "../differential/tree.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { findClient } from "../support/docker.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { makeBases } from "./bases.ts";
import { isLeftByDocker } from "./left-of-docker.ts";
import { hideExtensions } from "./plain-service.ts";

const minutes = 60_000;
const recorder = process.env.RECORD_DOCKER;
const cases = join(import.meta.dir, "recorded");
const names = readdirSync(cases).sort();
const directory = temporaryDirectory("bough-recorded-");
/** Each side with the file of its own results. */
const sides = [
  ["the engine as root", "docker"],
  ["the engine as an ordinary user", "ordinary-user"],
  ["a service without extensions", "without-extensions"],
] as const;
type Side = (typeof sides)[number][0];
/** Each side's bough, and its files of `FROM busybox:1` alone. */
const builders = new Map<Side, { builder: Builder; base: Tree }>();
let user: OrdinaryUser;
let source = "";
const baseContext = join(directory, "base");

beforeAll(async () => {
  user = makeOrdinaryUser();
  source = (await makeBases(directory))["busybox:1"] ?? "";
  mkdirSync(baseContext);
  writeFileSync(join(baseContext, "Dockerfile"), "FROM busybox:1\n");
  const engines = {
    "the engine as root": serveEngine(join(directory, "engine")),
    "the engine as an ordinary user": serveEngineAs(user),
    "a service without extensions": serveEngine(join(directory, "plain"), hideExtensions),
  };
  for (const [side] of sides) {
    const builder = makeBough(await engines[side], join(directory, side));
    await builder.importBase(source, "busybox:1");
    builders.set(side, { builder, base: await buildWithBough(builder, baseContext) });
  }
}, 5 * minutes);

afterAll(async () => {
  for (const { builder } of builders.values()) await builder.close();
  user?.remove();
  rmSync(directory, { recursive: true, force: true });
}, minutes);

if (recorder !== undefined)
  describe("Docker", () => {
    let base: Tree;
    beforeAll(async () => {
      const archive = join(directory, "busybox.tar");
      run(["skopeo", "copy", "--quiet", source, `docker-archive:${archive}:busybox:1`]);
      run([client(), "load", "--quiet", "--input", archive]);
      base = await buildWithDocker(baseContext);
    }, minutes);
    test.each(names)(
      "builds %s",
      async (name) => {
        const result = await buildWithDocker(contextOf(name)).then(
          (tree) => changesIn(tree, base),
          () => refused,
        );
        writeFileSync(join(cases, name, "docker"), result);
      },
      minutes,
    );
  });

describe.each(sides)("%s", (side, ownResult) => {
  test.each(names)(
    "%s",
    async (name) => {
      const given = builders.get(side);
      if (given === undefined) throw new Error(`no builder for ${side}`);
      const path = ["docker", ownResult].map((file) => join(cases, name, file)).findLast(existsSync) ?? "";
      const expected = readFileSync(path, "utf8");
      const made = await buildWithBough(given.builder, contextOf(name)).then(
        (tree) => changesIn(tree, given.base),
        (error: Error) => (expected === refused ? refused : Promise.reject(error)),
      );
      // The API's document has no times.
      const shown = (text: string) =>
        side === "a service without extensions" ? text.replace(/ @-?\d+$/gm, "") : text;
      expect(shown(made)).toBe(shown(expected));
    },
    minutes,
  );
});

const refused = "refused\n";

async function buildWithBough(builder: Builder, context: string): Promise<Tree> {
  const place = { context, dockerfile: join(context, "Dockerfile"), ignoreFile: undefined };
  return builder.readImage(await builder.build({ ...place, buildArgs: {}, options: ["--docker"] }));
}

async function buildWithDocker(context: string): Promise<Tree> {
  const archive = join(directory, "docker.tar");
  const words = ["build", "--no-cache", "--network=host", `--output=type=tar,dest=${archive}`, context];
  run([client(), ...words]);
  return readTree(Bun.file(archive).stream());
}

function contextOf(name: string): string {
  const context = mkdtempSync(join(directory, "context-"));
  const script = join(cases, name, "context.sh");
  if (existsSync(script)) run(["sh", "-euc", `umask 022; cd ${context}; . ${script}`]);
  cpSync(join(cases, name, "Dockerfile"), join(context, "Dockerfile"));
  return context;
}

/** Contexts and stages set times long before this one (September 2008). Later ones come from the build. */
const past = 1_220_000_000;

/** Returns a line for each entry that the base does not have, or has with other attributes. */
function changesIn(tree: Tree, base: Tree): string {
  return [...tree]
    .filter(([path, { line }]) => base.get(path)?.line !== line)
    .filter(([path, entry]) => !isLeftByDocker({ path, bough: undefined, other: entry }))
    .map(([path, { line, modified = past }]) => `${path} ${line}${modified < past ? ` @${modified}` : ""}\n`)
    .sort()
    .join("");
}

function client(): string {
  return process.env.RECORD_CLIENT ?? findClient();
}

function run(command: string[]): void {
  const env = { ...process.env, DOCKER_HOST: recorder, DOCKER_BUILDKIT: "1" };
  const { success, stderr } = Bun.spawnSync(command, { env });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}
