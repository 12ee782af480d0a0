/** Exports of images of services: layer by layer from bough's engine, as a single layer from other services. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readTree } from "../differential/tree.ts";
import { hideExtensions } from "../docker/plain-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOfLayout } from "../support/image-spec.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const state = temporaryDirectory();

type FetchHandler = (request: Request) => Promise<Response>;

function serve(fetch: FetchHandler) {
  return Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch });
}

const { engine } = await openSharedEngine();
const answer: FetchHandler = (request) => engine.engine.fetch(request);
const [own, other] = [serve(answer), serve(hideExtensions(answer))];
afterAll(() => Promise.all([own.stop(true), other.stop(true)]));

beforeAll(async () => {
  writeFiles(join(places, "context"), {
    Dockerfile: "FROM busybox:latest\nRUN mkdir /made && echo hi > /made/file && rm /etc/group\n",
  });
  const built = await on(own, "build", "context", "--tag", "app:1");
  if (built.exitCode !== 0) throw new Error(built.stderr);
});

const on = ({ url }: { url: URL }, ...words: string[]) =>
  runBough(words, {
    workingDirectory: places,
    environment: { BOUGH_HOME: state, CONTREE_URL: url.href, CONTREE_TOKEN: "t0ken-t0ken" },
  });

function sh(...command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: places });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString();
}

describe("an image of", () => {
  test("bough's engine is exported layer by layer", async () => {
    const { stderr, exitCode } = await on(own, "images", "export", "app:1", "oci:own:1");
    expect(stderr).not.toContain("ERROR");
    expect(exitCode).toBe(0);
    expect(JSON.parse(sh("skopeo", "inspect", "oci:own:1")).Layers).toHaveLength(2);
  });

  test("a service without layers is exported as one layer, with the same bytes each time and the same files", async () => {
    for (const place of ["oci:other:1", "oci-archive:a.tar:1", "oci-archive:b.tar:1", "tar:files.tar"]) {
      const { stderr, exitCode } = await on(other, "images", "export", "app:1", place);
      expect(stderr).not.toContain("ERROR");
      expect(exitCode).toBe(0);
    }
    expect(JSON.parse(sh("skopeo", "inspect", "oci:other:1")).Layers).toHaveLength(1);
    expect(problemsOfLayout(join(places, "other"))).toEqual([]);
    expect(readFileSync(join(places, "a.tar")).equals(readFileSync(join(places, "b.tar")))).toBe(true);
    const expected = await readTree(Bun.file(join(places, "files.tar")).stream());
    for (const image of ["own:1", "other:1"]) {
      const directory = `unpacked-${image.replace(":", "-")}`;
      sh("umoci", "raw", "unpack", "--image", image, directory);
      const tar = ["tar", "-c", "--format=posix", "--numeric-owner", "-C", join(places, directory), "."];
      // An archive of files has no entry for the directory that they are in.
      const [, ...files] = await readTree(Bun.spawn(tar, { stdout: "pipe" }).stdout);
      expect(new Map(files)).toEqual(new Map(expected));
    }
  });

  test("a service without configurations is exported with the configuration and history that bough has stored", async () => {
    const dockerfile =
      'FROM busybox:latest\nARG V=1\nRUN echo $V > /v\nRUN rm /v\nMAINTAINER me\nCMD ["x"]\n';
    writeFiles(join(places, "noted"), { Dockerfile: dockerfile });
    await on(other, "build", "noted", "--docker", "--tag", "noted:1");
    expect((await on(other, "images", "export", "noted:1", "oci:noted-out:1")).exitCode).toBe(0);
    const { author, config, history } = JSON.parse(sh("skopeo", "inspect", "--config", "oci:noted-out:1"));
    expect({ author, config }).toMatchObject({ author: "me", config: { Cmd: ["x"] } });
    const lines = history.map((line: { created_by: string; empty_layer?: true }) => [
      line.created_by,
      line.empty_layer === true,
    ]);
    expect(lines).toEqual([
      ["busybox", true],
      ["ARG V=1", true],
      ["RUN |1 V=1 /bin/sh -c echo $V > /v # buildkit", true],
      ["RUN |1 V=1 /bin/sh -c rm /v # buildkit", false],
      ["MAINTAINER me", true],
      ['CMD ["x"]', true],
    ]);
    expect(problemsOfLayout(join(places, "noted-out"))).toEqual([]);
  });

  test("a service without layers can't be exported with other times of files", async () => {
    const { stderr, exitCode } = await runBough(
      ["images", "export", "app:1", "oci:times:1", "--rewrite-timestamp"],
      {
        workingDirectory: places,
        environment: {
          BOUGH_HOME: state,
          CONTREE_URL: other.url.href,
          CONTREE_TOKEN: "t0ken-t0ken",
          SOURCE_DATE_EPOCH: "1",
        },
      },
    );
    expect(stderr).toContain("does not support rewriting timestamps");
    expect(exitCode).toBe(1);
  });

  const targets = [
    "oci:broken:1",
    "oci-archive:broken:1",
    "docker-archive:broken",
    "dir:broken",
    "tar:broken",
  ];
  const ends = ["a broken connection", "an interruption"];

  test.each(ends.flatMap((end) => targets.map((place) => [end, place] as const)))(
    "any service leaves no files behind after %s: %s",
    async (end, place) => {
      const workingDirectory = temporaryDirectory();
      const interruption = new AbortController();
      const ended = await runBough(["images", "export", "app:1", place], {
        workingDirectory,
        environment: { BOUGH_HOME: state, CONTREE_URL: own.url.href, CONTREE_TOKEN: "t0ken-t0ken" },
        signal: interruption.signal,
        fetch: async (input, init) => {
          const answer = await fetch(input, init);
          if (!/\/layers\/.|\/archive$/.test(new URL(answer.url).pathname)) return answer;
          const chunks = answer.body?.[Symbol.asyncIterator]();
          return new Response(
            new ReadableStream<Uint8Array>({
              async start(controller) {
                const first = await chunks?.next();
                controller.enqueue(first?.value ?? new Uint8Array());
              },
              async pull(controller) {
                if (end === "an interruption") interruption.abort(new Error("interrupted"));
                else controller.error(new Error("gone"));
              },
            }),
          );
        },
      });
      expect(ended.exitCode).not.toBe(0);
      expect(readdirSync(workingDirectory)).toEqual([]);
    },
  );
});

test("the packages of an image with several outputs are looked for once", async () => {
  const archives: string[] = [];
  const { exitCode, stderr, stdout } = await runBough(
    ["build", "context", "--docker", "--sbom", "-o", "type=oci,dest=first", "-o", "type=oci,dest=second"],
    {
      workingDirectory: places,
      environment: { BOUGH_HOME: state, CONTREE_URL: own.url.href, CONTREE_TOKEN: "t0ken-t0ken" },
      fetch: (input, init) => {
        const { pathname } = new URL(input instanceof Request ? input.url : input);
        if (pathname.endsWith("/archive")) archives.push(pathname);
        return fetch(input, init);
      },
    },
  );
  expect(exitCode, stdout + stderr).toBe(0);
  expect(archives).toHaveLength(1);
});
