/** The times of `ADD <git repository>` on the embedded engine, as BuildKit sets them. */
import { afterAll, expect, test } from "bun:test";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import {
  commitTime,
  makeRepository,
  repositoriesDirectory,
  serveRepositories,
} from "../support/git-server.ts";
import { openLocalBough } from "../support/local-bough.ts";

const bough = await openLocalBough();
const root = repositoriesDirectory();
const { commit, git } = makeRepository(`${root}/app.git`);
commit({ "d/e/file": "1\n", "d/link": { link: "e" } });
const later = commit({ "d/later": "2\n" });
git("tag", "v1");
const server = serveRepositories(root);
afterAll(() => server.stop());

test.each<[query: string, isOfCommit: boolean]>([
  ["", false],
  ["?mtime=checkout", false],
  ["?mtime=commit", true],
  ["?mtime=commit&subdir=d", true],
])("app.git%s", async (query, isOfCommit) => {
  const context = temporaryDirectory();
  const address = `${server.url}/app.git${query}#${later}`;
  const list = "cd /x && find . -mindepth 1 -exec stat -c '%Y %n' {} +";
  writeFiles(context, { Dockerfile: `FROM base:1\nADD ${address} /x\nRUN ${list}\n` });
  // The second one knows the commit and does not fetch it.
  for (let build = 0; build < 2; build++) {
    const started = Math.floor(Date.now() / 1000);
    const { stderr, exitCode } = await bough(
      context,
      "build",
      ".",
      "--docker",
      "--no-cache",
      "--progress",
      "plain",
    );
    expect(exitCode).toBe(0);
    const times = [...stderr.matchAll(/^(\d+) \.\/(\S+)$/gm)].map(
      ([, time, name]) => [name, Number(time)] as const,
    );
    expect(
      times.map(([name]) => name).filter((name) => /(^|\/)(e|file|link|later)$/.test(name ?? "")),
    ).toHaveLength(4);
    for (const [name, time] of times) {
      if (isOfCommit) expect([name, time]).toEqual([name, commitTime]);
      else expect(time).toBeGreaterThanOrEqual(started);
    }
  }
});
