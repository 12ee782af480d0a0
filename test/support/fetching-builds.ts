/** Builds that fetch something from other servers than the service: repositories, archives. */
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, type Ended, runBough, temporaryDirectory } from "./bough.ts";
import { type GitServer, serveRepositories } from "./git-server.ts";

export interface FetchingBuilds {
  service: FakeService;
  /** The working directory of builds. */
  directory: string;
  /** bough's state directory. */
  home: string;
  /** The directory for temporary files, in which nothing may be left. */
  scratch: string;
  /** Runs bough there. */
  bough(words: readonly string[], options?: Partial<BoughOptions>): Promise<Ended>;
  build(words: readonly string[], options?: Partial<BoughOptions>): Promise<FetchingBuild>;
  /** Paths of the contexts that are kept, including incomplete ones. */
  kept(): string[];
  /** The commit or digest of one of them. */
  nameOf(path: string): string;
  /** Serves the repositories below a directory. */
  serve(root: string, options?: Parameters<typeof serveRepositories>[1]): GitServer;
  /** Closes a server at the end. */
  closeLater(server: { close(): unknown }): void;
  close(): Promise<void>;
}

interface FetchingBuild extends Ended {
  requests: FakeService["requests"];
  /** The contents of files of the last RUN, by their paths. */
  texts: Record<string, string>;
  /** Their modes as `path mode`, and their owners as `path uid:gid mode`. */
  modes: string[];
  owners: string[];
}

export async function startFetchingBuilds(): Promise<FetchingBuilds> {
  const service = await startFakeService();
  service.state.addImage("base:1");
  const directory = temporaryDirectory();
  const home = temporaryDirectory();
  const scratch = temporaryDirectory();
  const open: { close(): unknown }[] = [];

  function textOf(uuid: string): string {
    const file = [...service.state.files.values()].find((stored) => stored.uuid === uuid);
    return Buffer.from(file?.content ?? "").toString();
  }

  const bough: FetchingBuilds["bough"] = (words, { environment, ...options } = {}) =>
    runBough(words, {
      workingDirectory: directory,
      ...options,
      environment: {
        ...{ CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home, TMPDIR: scratch },
        ...environment,
      },
    });

  return {
    ...{ service, directory, home, scratch, bough },
    async build(words, options) {
      const before = service.requests.length;
      const ended = await bough(["build", ...words], options);
      const requests = service.requests.slice(before);
      const files = filesOf(requests);
      return {
        ...ended,
        requests,
        texts: Object.fromEntries(files.map(([path, { uuid }]) => [path, textOf(uuid)])),
        modes: files.map(([path, { mode }]) => `${path} ${mode}`),
        owners: files.map(([path, { uid, gid, mode }]) => `${path} ${uid}:${gid} ${mode}`),
      };
    },
    kept() {
      const contexts = join(home, "contexts");
      if (!existsSync(contexts)) return [];
      return readdirSync(contexts)
        .flatMap((group) => readdirSync(join(contexts, group)).map((name) => join(contexts, group, name)))
        .sort();
    },
    nameOf: (path) => readFileSync(join(path, ".complete"), "utf8").split("\n")[1] ?? "",
    serve(root, options) {
      const server = serveRepositories(root, options);
      open.push({ close: () => server.stop() });
      return server;
    },
    closeLater: (server) => void open.push(server),
    async close() {
      for (const server of open.splice(0)) await server.close();
      await service.close();
      expect(readdirSync(scratch)).toEqual([]);
    },
  };
}

interface SentFile {
  uuid: string;
  uid: number;
  gid: number;
  mode: string;
}

function filesOf(requests: FakeService["requests"]): [path: string, file: SentFile][] {
  const run = requests.findLast(({ method, path }) => method === "POST" && path === "/v1/instances")?.json;
  return Object.entries((run as { files?: Record<string, SentFile> } | undefined)?.files ?? {});
}
