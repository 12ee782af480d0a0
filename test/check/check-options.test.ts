/** `bough build --check` refuses the options that a build refuses, with the same error. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { splitWords } from "../support/words.ts";

let workingDirectory: string;
beforeAll(() => {
  workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\n", file: "", "dir/file": "" });
});

const build = (words: readonly string[], options: { terminalColumns?: number } = {}) =>
  runBough(["--local", "build", ...words], {
    workingDirectory,
    environment: { BOUGH_HOME: join(workingDirectory, "state") },
    ...options,
  });

describe("a check and a build refuse", () => {
  test.each([
    ["--timeout soon", '--timeout takes a positive whole number, not "soon"'],
    ["--jobs 0", '--jobs takes a positive whole number, not "0"'],
    ["--tag 'My App'", 'not a tag: "My App"'],
    ["--memory lots", '--memory takes a size of at least 6m, not "lots"'],
    ["--cpus 0", '--cpus takes a number of at least 0.01, not "0"'],
    ["--pids 1", '--pids takes a whole number of at least 8, not "1"'],
    ["--shm-size big", '--shm-size takes a size of at least 1 byte, not "big"'],
    ["--ulimit nofiles=3", "--ulimit nofiles=3: unknown limit nofiles"],
    ["--add-host mirror", '--add-host takes NAME:IP, not "mirror"'],
    ["--network bridge", '--network takes default, none or host, not "bridge"'],
    ["--allow all", '--allow takes network.host, not "all"'],
    ["--build-arg =A", '--build-arg takes KEY=VALUE or KEY, not "=A"'],
    ["--max-add-size big", '--max-add-size takes a size, not "big"'],
    ["--platform no/such/os/at-all", 'invalid platform "no/such/os/at-all"'],
    ["--no-cache-filter a,", "--no-cache-filter takes the names of stages"],
    ["--build-context lib", '--build-context takes NAME=VALUE, not "lib"'],
    ["--secret src=file", "--secret: the id is missing"],
    ["--secret id=a,src=missing", "--secret id=a: cannot read missing"],
    ["--ssh default=missing", "--ssh default: cannot use "],
    [
      "--ssh default=Dockerfile",
      "--ssh default: cannot use Dockerfile as a key: it has no private key\nAn agent takes any key: eval $(ssh-agent); ssh-add ",
    ],
    [
      "--build-arg BUILDKIT_DOCKERFILE_CHECK=x=1",
      '--build-arg BUILDKIT_DOCKERFILE_CHECK: invalid check option "x=1"',
    ],
    ["-o type=sif,dest=x", "type must be oci, docker, tar, local, image or registry"],
    ["--push", "no name to push to"],
    ["--provenance", "--provenance needs an image that is written or pushed"],
    ["--annotation a=b", "--annotation needs an image that is written in OCI form or pushed"],
    ["-o type=oci,dest=x --annotation a", '--annotation takes KEY=VALUE, not "a"'],
    [
      "-o type=oci,dest=x --annotation 'manifest[linux/riscv64]:a=b'",
      "--annotation for linux/riscv64: the image is for linux/",
    ],
    ["--cache always", '--cache takes auto, not "always"'],
    ["--cache-to 'My Scope'", "--cache-to"],
    ["--cache-verify missing", "--cache-verify: cannot read missing"],
    ["--progress loud", "--progress takes auto, tty, compact, plain, json, rawjson, quiet or none"],
    ["--on-error stop", '--on-error takes shell, not "stop"'],
    ["--iidfile missing/id", "--iidfile missing/id: there is no directory missing"],
    ["--metadata-file dir", "--metadata-file dir: this is not a file"],
    ["--iidfile Dockerfile", "--iidfile Dockerfile: this is the build's Dockerfile"],
  ])("%s", async (line, message) => {
    const [built, checked] = await Promise.all([
      build(splitWords(line)),
      build([...splitWords(line), "--check"]),
    ]);
    expect(checked).toEqual({ exitCode: 2, stdout: "", stderr: expect.stringContaining(message) });
    expect(checked.stderr.split("\n")[0]).toBe(
      built.stderr.split("\n").find((text) => text.startsWith("[ERROR]")),
    );
    expect(built.exitCode).toBe(2);
  });
});

test("a check accepts an archive on standard output, and keeps the files of an earlier build", async () => {
  writeFiles(workingDirectory, { id: "x" });
  const checked = await build(["--check", "-o", "-", "--iidfile", "id"], { terminalColumns: 80 });
  expect(checked).toMatchObject({ exitCode: 0, stderr: "" });
  expect(existsSync(join(workingDirectory, "id"))).toBe(true);
});

/** What Docker 28.5 finds: `BUILDKIT_DOCKERFILE_CHECK` replaces the comment at the top, also with an empty value. */
test.each<[comment: string, argument: string | undefined, found: string[], exitCode: number]>([
  ["error=true", undefined, ["MaintainerDeprecated", "JSONArgsRecommended"], 2],
  ["error=true", "skip=all", [], 0],
  ["error=true", "", ["MaintainerDeprecated", "JSONArgsRecommended"], 0],
  ["error=true", "skip=MaintainerDeprecated", ["JSONArgsRecommended"], 0],
  ["skip=all", "error=true", ["MaintainerDeprecated", "JSONArgsRecommended"], 2],
  ["skip=all", "skip=JSONArgsRecommended,maintainerdeprecated;error=1", ["MaintainerDeprecated"], 2],
  ["skip=all", " skip = all ; error = true", [], 0],
  ["skip=all", "skip=Nope", ["MaintainerDeprecated", "JSONArgsRecommended"], 0],
])("with # check=%s and the build argument %p", async (comment, argument, found, exitCode) => {
  const dockerfile = `# check=${comment}\nFROM scratch\nMAINTAINER me\nCMD run it\n`;
  writeFiles(workingDirectory, { "check.dockerfile": dockerfile });
  const words = [
    ...["--docker", "--dockerfile", "check.dockerfile", "."],
    ...(argument === undefined ? [] : ["--build-arg", `BUILDKIT_DOCKERFILE_CHECK=${argument}`]),
  ];
  const checked = await build([...words, "--check", "--format", "json"]);
  const { warnings } = JSON.parse(checked.stdout) as { warnings: { rule: string }[] };
  expect(warnings.map(({ rule }) => rule)).toEqual(found);
  const built = await build(words);
  expect([checked.exitCode, built.exitCode]).toEqual([exitCode, exitCode]);
  expect(built.stderr).not.toContain("has no effect");
});
