/** Options of docker's command line in the place of its builder: empty values, zeros, and what buildx itself ignores. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

setDefaultTimeout(60_000);

const home = temporaryDirectory();
const plugin = join(home, "docker-buildx");

beforeAll(() => {
  symlinkSync(compileBough(), plugin);
  writeFiles(home, {
    "app/Dockerfile": "FROM scratch AS one\nCOPY x /one\nFROM scratch\nCOPY x /two\n",
    "app/x": "x",
    "bake.json": JSON.stringify({ target: { default: { context: "app" } } }),
  });
});

async function run(...words: string[]) {
  return endOf(
    Bun.spawn([plugin, ...words], {
      cwd: home,
      env: { PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: join(home, "state"), BUILDX_BUILDER: "" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    }),
  );
}

// Exit codes are those of buildx 0.29.1.
describe("an empty value", () => {
  test("is as if the option were not given", async () => {
    const names =
      "add-host allow annotation build-context builder cache-from cache-to call cgroup-parent cpuset-cpus file iidfile isolation memory metadata-file network no-cache-filter output progress provenance sbom secret security-opt ssh target";
    for (const name of names.split(" "))
      expect([name, (await run("build", `--${name}=`, "app")).exitCode]).toEqual([name, 0]);
    for (const name of ["progress", "metadata-file", "provenance", "sbom", "call", "builder"])
      expect([name, (await run("bake", "-f", "bake.json", `--${name}=`)).exitCode]).toEqual([name, 0]);
    // All of them, in words of their own.
    const all = names.split(" ").flatMap((name) => [`--${name}`, ""]);
    expect((await run("build", ...all, "app")).exitCode).toBe(0);
  });

  test.each([
    ["build --target one --target= -o last app", 0, "last/two"],
    ["build --target= --target one -o first app", 0, "first/one"],
    ["build --output= -o out app", 0, "out/two"],
    ["build -f missing --file= -o named app", 0, "named/two"],
    ["build --iidfile id --iidfile= app", 0, undefined],
    ["build --iidfile= --iidfile id2 app", 0, "id2"],
    ["build --no-cache-filter one, app", 0, undefined],
    // As docker's command line reads a letter with a value.
    ["build -q=false -t=a:1 -f=app/Dockerfile -o=letter app", 0, "letter/two"],
    ["bake -f bake.json --set default.call= --set default.output=out2", 0, "out2/two"],
  ])("of several: %s", async (line, exitCode, file) => {
    expect((await run(...line.split(" "))).exitCode).toBe(exitCode);
    if (file !== undefined) expect(existsSync(join(home, file))).toBe(true);
    expect(existsSync(join(home, "id"))).toBe(false);
  });

  test.each([
    ["build --attest= app", 1],
    ["build --build-arg= app", 1],
    ["build --label= app", 1],
    ["build --platform= app", 1],
    ["build --platform linux/amd64 --platform= app", 1],
    ["build --tag= app", 1],
    ["build --shm-size= app", 125],
    ["build --ulimit= app", 125],
    ["build --check= app", 125],
    ["build --debug= app", 125],
    ["build --pull= app", 125],
    ["build --rm= app", 125],
    ["bake -f bake.json --file=", 1],
    ["bake -f bake.json --set=", 1],
    ["bake -f bake.json --no-cache=", 125],
  ])("is an error: %s", async (line, exitCode) => {
    const ended = await run(...line.split(" "));
    expect(ended).toMatchObject({ exitCode, stdout: "", stderr: expect.stringMatching(/^ERROR: /m) });
  });
});

test.each(["--shm-size 0", "--shm-size 0b", "--memory 0", "--memory=0m", "--debug=false", "-D"])(
  "%s is the default",
  async (words) => {
    const { exitCode, stderr } = await run("build", ...words.split(" "), "app");
    expect(exitCode).toBe(0);
    expect(stderr).not.toContain("WARN");
  },
);

test.each([
  ["--squash", "WARNING: experimental flag squash is removed with BuildKit. "],
  ["--squash=false", "WARNING: experimental flag squash is removed with BuildKit. "],
  ["--isolation default", "WARNING: isolation flag is deprecated with BuildKit."],
  ["--security-opt seccomp=unconfined", "WARNING: security-opt flag is deprecated. "],
  ["--cgroup-parent /jobs", "--cgroup-parent is ignored: the engine makes the control groups itself"],
])("%s is left out with a word, as buildx does", async (words, warning) => {
  const { exitCode, stderr } = await run("build", ...words.split(" "), "app");
  expect(exitCode).toBe(0);
  expect(stderr).toContain(warning);
});

// Exit codes are those of buildx 0.29.1 with docker's daemon.
test.each([
  ["--annotation a=b", 0, ""],
  ["--annotation a=b -o out3", 0, "--annotation a=b is left out: nothing that is written keeps annotations"],
  ["--annotation a=b -o type=cacheonly", 0, "--annotation a=b is left out: "],
  ["--annotation a=b --check", 0, ""],
  ["--annotation index:a=b -o type=docker,dest=d.tar", 0, "--annotation index:a=b is left out: "],
  ["--annotation manifest-descriptor:a=b -o type=oci,dest=o.tar", 0, ""],
  ["--annotation manifest[linux/s390x]:a=b -o type=oci,dest=o.tar", 0, ""],
  // buildx: only with attestations, which it adds unasked.
  ["--annotation index:a=b -o type=oci,dest=o.tar", 0, ""],
  ["--annotation none:a=b -o type=oci,dest=o.tar", 1, 'unknown type "none"'],
  ["--annotation a -o type=oci,dest=o.tar", 1, "--annotation takes KEY=VALUE"],
  ["-o type=oci,dest=o.tar,annotation-index.a=b", 0, ""],
  ["-o type=oci,dest=o.tar,annotation-none.a=b", 1, 'unknown type "none"'],
  ["-o type=oci,dest=o.tar,colour=red", 0, "--output: colour is ignored: it is not known here"],
  ["-o ,", 1, '--output ",": '],
])("%s: exit code %p", async (words, exitCode, text) => {
  const ended = await run("build", ...words.split(" "), "app");
  expect(ended).toMatchObject({ exitCode, stderr: expect.stringContaining(text) });
});
