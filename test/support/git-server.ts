/** git repositories, and an HTTP server for them that uses git's CGI program. */
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./bough.ts";
import { type FileSpec, writeFiles } from "./files.ts";

/** Seconds since the epoch. */
export const commitTime = 1_700_000_000;

export interface Repository {
  /** The directory with its files. */
  directory: string;
  git(...args: string[]): string;
  /** Commits these files and returns the commit's hash. */
  commit(files: Record<string, FileSpec>): string;
}

export function makeRepository(directory: string, { format = "sha1" } = {}): Repository {
  mkdirSync(directory, { recursive: true });
  const repository = openRepository(directory);
  repository.git("init", "--quiet", "--template=", "--initial-branch=main", `--object-format=${format}`);
  return repository;
}

function openRepository(directory: string): Repository {
  const git = (...args: string[]) => runGit(["-C", directory, ...args]);
  return {
    directory,
    git,
    commit(files) {
      writeFiles(directory, files);
      git("add", "--all");
      git("commit", "--quiet", "--allow-empty", "--message=a change");
      return git("rev-parse", "HEAD");
    },
  };
}

/** Repositories of which each test gets a copy. */
export interface RepositoriesTemplate {
  /** The directory with the originals, for tests that change nothing. */
  root: string;
  /** The hash of the first commit of `app.git`. */
  first: string;
  copy(): { root: string; app: Repository };
}

/**
 * Makes `app.git` with these files, tagged `v1`, and a later commit, in which `library.git` is its submodule `module`.
 * `extend` is called between the two.
 */
export function makeTemplate(
  files: Record<string, FileSpec>,
  extend: (app: Repository) => void = () => {},
): RepositoriesTemplate {
  const template = repositoriesDirectory();
  makeRepository(join(template, "library.git")).commit({ "lib.txt": "library\n" });
  const made = makeRepository(join(template, "app.git"));
  const first = made.commit(files);
  made.git("tag", "v1");
  extend(made);
  made.git("submodule", "--quiet", "add", "../library.git", "module");
  made.commit({ foo: "latest\n" });
  return {
    root: template,
    first,
    copy() {
      const root = repositoriesDirectory();
      cpSync(template, root, { recursive: true, verbatimSymlinks: true });
      return { root, app: openRepository(join(root, "app.git")) };
    },
  };
}

export interface GitServer {
  url: string;
  /** Method and path of each request. */
  requests: string[];
  stop(): Promise<void>;
}

interface GitServerOptions {
  /** The value of `Authorization` that each request needs. */
  authorization?: string;
  /** Serves plain files, like a server that does not support git. */
  isDumb?: boolean;
  /** Responds in place of git, unless it returns `undefined`. */
  answer?(request: Request): Response | undefined;
}

/** Lets git wait forever for the objects that it asks for. Calls `onAsked` then. */
export function withoutObjects(onAsked: () => void): Pick<GitServerOptions, "answer"> {
  let posts = 0;
  return {
    answer({ method }) {
      // The first two requests ask for names of refs, the third for objects.
      if (method !== "POST" || ++posts < 3) return undefined;
      onAsked();
      return new Response(new ReadableStream({ pull: () => new Promise(() => {}) }));
    },
  };
}

/** Serves the repositories below `root`. */
export function serveRepositories(root: string, options: GitServerOptions = {}): GitServer {
  const { authorization, isDumb = false, answer } = options;
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      requests.push(`${request.method} ${pathname}`);
      const other = answer?.(request);
      if (other !== undefined) return other;
      if (authorization !== undefined && request.headers.get("authorization") !== authorization)
        return new Response("who are you?", { status: 401, headers: { "www-authenticate": "Basic" } });
      if (!isDumb) return await askBackend(root, request);
      const file = Bun.file(join(root, pathname));
      return (await file.exists()) ? new Response(file) : new Response("none", { status: 404 });
    },
  });
  return { url: server.url.href.replace(/\/$/, ""), requests, stop: () => server.stop(true) };
}

/** The response of git's CGI program. */
async function askBackend(root: string, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const { headers } = request;
  const child = Bun.spawn([backend], {
    env: {
      PATH: process.env.PATH,
      ...withoutSettings,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: headers.get("content-type") ?? "",
      HTTP_CONTENT_ENCODING: headers.get("content-encoding") ?? "",
      GIT_PROTOCOL: headers.get("git-protocol") ?? "",
    },
    stdin: await request.bytes(),
    stderr: "inherit",
  });
  const said = Buffer.from(await new Response(child.stdout).bytes());
  const end = said.indexOf("\r\n\r\n");
  const fields = said
    .subarray(0, end)
    .toString()
    .split("\r\n")
    .map((line) => line.split(": ") as [string, string]);
  const status = Number.parseInt(fields.find(([name]) => name === "Status")?.[1] ?? "200", 10);
  return new Response(said.subarray(end + 4), { status, headers: fields });
}

const withoutSettings = {
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_COUNT: "4",
  GIT_CONFIG_KEY_0: "uploadpack.allowReachableSHA1InWant",
  GIT_CONFIG_VALUE_0: "true",
  // The repositories of a test may belong to another user.
  GIT_CONFIG_KEY_1: "safe.directory",
  GIT_CONFIG_VALUE_1: "*",
  GIT_CONFIG_KEY_2: "protocol.file.allow",
  GIT_CONFIG_VALUE_2: "always",
  GIT_CONFIG_KEY_3: "maintenance.auto",
  GIT_CONFIG_VALUE_3: "false",
};

/** git's CGI program. */
const backend = join(runGit(["--exec-path"]), "git-http-backend");

function runGit(args: readonly string[]): string {
  const date = `${commitTime} +0000`;
  const person = (role: string) => ({
    [`GIT_${role}_NAME`]: "Somebody",
    [`GIT_${role}_EMAIL`]: "somebody@example.org",
    [`GIT_${role}_DATE`]: date,
  });
  const { success, stdout, stderr } = Bun.spawnSync(["git", ...args], {
    env: { PATH: process.env.PATH, ...withoutSettings, ...person("AUTHOR"), ...person("COMMITTER") },
  });
  if (!success) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  return stdout.toString().trim();
}

/** Makes a directory for repositories. */
export function repositoriesDirectory(): string {
  return temporaryDirectory("bough-repositories-");
}
