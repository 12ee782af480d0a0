/** `--check` finds an ARG or ENV that changes with each build above a RUN that takes long, by the builds of this machine. */
import { beforeAll, expect, test } from "bun:test";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const home = temporaryDirectory();
const directory = temporaryDirectory();
const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: directory, environment: { BOUGH_HOME: home } });

const dockerfile = (first: string, command: string, last = "") =>
  `FROM base:1\nRUN echo kept\n${first}\nRUN ${command}\nRUN echo after\n${last}\n`;

beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough("images", "import", layout, "--tag", "base:1");
  writeFiles(directory, { Dockerfile: dockerfile("ARG STAMP", "sleep 1.1") });
  for (const stamp of ["1", "2", "3", "4"]) {
    const { exitCode } = await bough("build", "--docker", ".", "--build-arg", `STAMP=${stamp}`);
    expect(exitCode).toBe(0);
  }
});

async function findings(text: string): Promise<string[]> {
  writeFiles(directory, { Dockerfile: text });
  const { stdout } = await bough("build", "--docker", "--check", ".", "--format", "json");
  const { warnings }: { warnings: { rule: string; line: number; message: string }[] } = JSON.parse(stdout);
  return warnings.flatMap(({ rule, line, message }) =>
    rule === "ChangingVariable" ? `${line}: ${message}` : [],
  );
}

test("says how often what was run again, and where to declare it", async () => {
  const [finding, ...others] = await findings(dockerfile("ARG STAMP", "sleep 1.1"));
  expect(others).toEqual([]);
  expect(finding).toMatch(
    /^3: ARG STAMP has changed in 3 of the last 4 builds: each time, RUN sleep 1\.1 \(line 4\) and what follows was run again, in [\d.]+ s/,
  );
  const { exitCode, stdout } = await bough("build", "--docker", "--check", ".");
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: expect.stringContaining("Declare it after that RUN"),
  });
});

test.each([
  ["is declared below", dockerfile("", "sleep 1.1", "ARG STAMP")],
  ["is what the RUN names", dockerfile("ARG STAMP", "sleep 1.1; echo $STAMP")],
  ["is above other commands by now", dockerfile("ARG STAMP", "sleep 1")],
  ["is not to be reported", `# check=skip=ChangingVariable\n${dockerfile("ARG STAMP", "sleep 1.1")}`],
])("says nothing of a variable that %s", async (_, text) => {
  expect(await findings(text)).toEqual([]);
});

test("a build does not warn of it, and docker's checks know nothing of it", async () => {
  writeFiles(directory, { Dockerfile: dockerfile("ARG STAMP", "sleep 1.1") });
  const { stderr } = await bough("build", "--docker", ".", "--check=warn", "--build-arg", "STAMP=4");
  expect(stderr).not.toContain("ChangingVariable");
});
