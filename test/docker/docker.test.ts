/**
 * Dockerfiles of several stages against Docker itself, a daemon of its own: what it builds, and what it refuses. The cases
 * are in `cases`; one of them: `./scripts/test test/docker -t copy-chown`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { type Docker, startDocker } from "../support/docker.ts";
import { makeBases } from "./bases.ts";
import { type DockerCase, readDockerCases } from "./case.ts";
import { refusals } from "./refusals.ts";

const minutes = 60_000;
const directory = temporaryDirectory("bough-docker-");
let docker: Docker;

beforeAll(async () => {
  docker = await startDocker(join(directory, "docker"));
  for (const [name, source] of Object.entries(await makeBases(directory)))
    await docker.importBase(source, name);
}, 2 * minutes);

afterAll(async () => {
  await docker?.close();
  rmSync(directory, { recursive: true, force: true });
}, minutes);

test.each(readDockerCases().map((each) => [each.name, each] as const))(
  "Docker builds %s",
  async (_, each) => {
    expect((await docker.readImage(await buildWithDocker(each))).size).toBeGreaterThan(1);
  },
  minutes,
);

describe("Docker refuses", () => {
  test.each(refusals.map((each, number) => [each.what, each, number] as const))(
    "%s",
    async (_, { dockerfile, target, docker: words }, number) => {
      const context = join(directory, `refused-${number}`);
      mkdirSync(context);
      writeFileSync(join(context, "Dockerfile"), dockerfile);
      const built = docker.build({ context, dockerfile: join(context, "Dockerfile"), target });
      await expect(built).rejects.toThrow(words);
    },
    minutes,
  );
});

function buildWithDocker({ name, spec, writeContext, dockerDockerfile }: DockerCase): Promise<string> {
  const context = join(directory, `context-${name}`);
  writeContext(context);
  const dockerfile = dockerDockerfile ?? join(context, "Dockerfile");
  return docker.build({ context, dockerfile, target: spec.target, buildArgs: spec.buildArgs ?? {} });
}
