/**
 * bough copies the same files from a fetched context as Docker does from the same address. Owners in an archive are not compared:
 * Docker keeps those of a downloaded archive, although its documentation says that files of a context become root's.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { readTree, type Tree } from "../differential/tree.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { dockerVersions } from "../support/docker.ts";
import { makeRepository, repositoriesDirectory, serveRepositories } from "../support/git-server.ts";
import { asItIs, keepResults } from "../support/kept-results.ts";
import { tarOf } from "../support/tar-bytes.ts";
import { dockerOnDemand } from "./docker-on-demand.ts";

const directory = temporaryDirectory("bough-contexts-");
const docker = dockerOnDemand(join(directory, "docker"), () => ({}));
const kept = keepResults({ test: import.meta.path, versions: [...dockerVersions, ["git", "--version"]] });
let repositories: ReturnType<typeof serveRepositories>;
let archives: ReturnType<typeof Bun.serve>;

const archive = tarOf([
  { name: "Dockerfile", content: "FROM scratch\nCOPY . /x/\n" },
  { name: "d/", flag: "5", mode: 0o2750 },
  { name: "d/one", content: "one\n", mode: 0o640 },
  { name: "out", flag: "2", target: "/d" },
  { name: "../above", content: "above\n" },
]);

beforeAll(() => {
  const root = repositoriesDirectory();
  makeRepository(join(root, "library.git")).commit({ "lib.txt": "library\n", d: { link: "lib.txt" } });
  const app = makeRepository(join(root, "app.git"));
  app.commit({
    Dockerfile: "FROM scratch\nCOPY . /x/\n",
    "other/Dockerfile": "FROM scratch\nCOPY run.sh sub /other/\n",
    ".dockerignore": "ignored\nsub/*.log\n",
    ".gitattributes": "*.txt text eol=crlf\n",
    ignored: "ignored\n",
    "text.txt": "text\n",
    "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
    "sub/Dockerfile": "FROM scratch\nCOPY . /sub/\n",
    "sub/.dockerignore": "no.txt\n",
    "sub/no.txt": "no\n",
    "sub/a.log": "log\n",
    link: { link: "sub" },
    dangling: { link: "/nowhere" },
  });
  app.git("tag", "--annotate", "--message=one", "v1");
  app.git("submodule", "--quiet", "add", "../library.git", "module");
  app.commit({ "text.txt": "latest\n" });
  repositories = serveRepositories(root);
  archives = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: respond });
});
afterAll(() => Promise.all([docker.close(), repositories?.stop(), archives?.stop(true)]), 60_000);

function respond({ url }: Request): Response {
  const { origin, pathname } = new URL(url);
  if (pathname === "/context.tar") return new Response(archive);
  if (pathname === "/adds.tar") return new Response(tarOf([{ name: "Dockerfile", content: adds(origin) }]));
  const text = `${pathname}\n`;
  const [, coding] = /^\/coded-(.*)/.exec(pathname) ?? [];
  return coding === undefined
    ? new Response(text)
    : new Response(Bun.gzipSync(text), { headers: { "Content-Encoding": coding } });
}

/** ADDs files with odd names, and files that are sent packed although the request does not allow it. */
const adds = (origin: string) =>
  ["directory/", "a%20b.txt?c=d", "one%2Ftwo", "coded-gzip", "coded-x-gzip"].reduce(
    (text, path) => `${text}ADD ${origin}/${path} /x/\n`,
    "FROM scratch\n",
  );

test.each([
  ["a tag", "app.git#v1", "Dockerfile"],
  ["another Dockerfile", "app.git#v1", "other/Dockerfile"],
  // After the other cases: this Docker leaves the submodule in place for the commits that it builds next.
  ["a branch, with its submodule", "app.git#main", "Dockerfile"],
  ["an archive", "context.tar", "Dockerfile"],
  ["an archive whose Dockerfile adds files at addresses", "adds.tar", "Dockerfile"],
])(
  "bough copies the same files as Docker from %s",
  async (_, path, dockerfile) => {
    const server = path.endsWith(".tar") ? archives.url.href.slice(0, -1) : repositories.url;
    const context = `${server}/${path}`;
    const output = join(temporaryDirectory(), "tree.tar");
    const { exitCode, stderr } = await runBough(
      ["build", "--docker", "--local", context, "--dockerfile", dockerfile, "-o", `type=tar,dest=${output}`],
      { workingDirectory: directory, environment: { BOUGH_HOME: join(directory, "home") } },
    );
    expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
    const own = await readTree(Bun.file(output).stream());
    const make = async () => linesOf(await (await docker.get()).buildTree({ context, dockerfile }));
    // The tree has no address of the server: the submodule's in .gitmodules is relative.
    await kept.check({ inputs: [path, dockerfile] }, asItIs<string[]>(), make, (lines) =>
      expect(linesOf(own)).toEqual(lines),
    );
  },
  120_000,
);

function linesOf(tree: Tree): string[] {
  // Docker leaves a file of the submodule's repository that names a path which does not exist.
  const copied = [...tree].filter(([path]) => path !== "/" && path !== "/x/module/.git");
  return copied.map(([path, { line }]) => `${path} ${line}`).sort();
}
