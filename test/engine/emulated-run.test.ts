/**
 * Commands for other platforms: natively (386 on amd64), and through an interpreter that the kernel starts (arm64). The interpreter is
 * registered in a user namespace of the test's own, so that nothing else on the machine changes.
 */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { type Architecture, assembleProgram, type Call, utsnameBytes } from "../support/foreign-program.ts";

setDefaultTimeout(120_000);

const program = compileBough();
const [cloneNewUser, currentDirectory] = [0x10000000, -100 >>> 0];

/** What docker's filter refuses, and what it allows. Without the filter, setns of no file is EBADF, and unshare succeeds. */
const tried: readonly (readonly [name: string, call: Call])[] = [
  ["mount", ["mount", "root", "root", "root", 0, "root"]],
  ["unshare", ["unshare", cloneNewUser]],
  ["setns", ["setns", -1 >>> 0, 0]],
  ["uname", ["uname", "buffer"]],
];
const refused = { mount: "EPERM", unshare: "EPERM", setns: "EPERM", uname: "done" };

/** Makes the calls, and writes `/made/results` and `/made/machine`. */
function callsOf(): Call[] {
  const create = 0o101;
  return [
    ...tried.map(([, call]) => call),
    ["mkdirat", currentDirectory, "directory", 0o755],
    ["openat", currentDirectory, "results-path", create, 0o644],
    ["write", 3, "results", 4 * tried.length],
    ["openat", currentDirectory, "machine-path", create, 0o644],
    ["write", 4, "buffer", utsnameBytes],
    ["write", 1, "said", 6],
    ["exit", 0],
  ];
}

const texts = {
  directory: "/made",
  "results-path": "/made/results",
  "machine-path": "/made/machine",
  said: "hello\n",
  root: "/",
};

const context = temporaryDirectory();
/** `none`: no interpreter is registered. `unknown`: nor is the list mounted. */
type Interpreters = "arm64" | "none" | "unknown";

/** Runs bough in a user namespace with a list of interpreters of its own. */
async function bough(interpreters: Interpreters, home: string, ...words: string[]) {
  const registration = {
    arm64: `:arm64:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:${Bun.which("qemu-aarch64-static")}:F`,
    none: "",
    unknown: "",
  }[interpreters];
  const inside = [
    // The ids of the namespace come from outside.
    "read _",
    "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc",
    'if [ -n "$0" ]; then printf "%s" "$0" > /proc/sys/fs/binfmt_misc/register; fi',
    ...(interpreters === "unknown" ? ["umount /proc/sys/fs/binfmt_misc"] : []),
    'exec "$@" < /dev/null',
  ].join(" && ");
  const child = Bun.spawn(
    ["unshare", "--user", "--mount", "sh", "-c", inside, registration, program, "--local", ...words],
    {
      cwd: context,
      env: { PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: join(home, "state"), TMPDIR: home },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const link = `/proc/${child.pid}/ns/user`;
  while (readlinkSync(link) === readlinkSync("/proc/self/ns/user")) await Bun.sleep(1);
  for (const map of ["uid_map", "gid_map"]) writeFileSync(`/proc/${child.pid}/${map}`, "0 0 65536");
  child.stdin.write("\n");
  await child.stdin.end();
  return endOf(child);
}

/** The kernel has such lists for user namespaces since Linux 6.7. */
const hasOwnList = Bun.spawnSync(
  ["unshare", "--map-root-user", "--mount", "mount", "-t", "binfmt_misc", "none", "/proc/sys/fs/binfmt_misc"],
  { stdout: "ignore", stderr: "ignore" },
).success;

beforeAll(() => {
  for (const architecture of ["amd64", "386", "arm64"] as const) {
    writeFiles(context, {
      [`${architecture}.Dockerfile`]: `FROM scratch\nCOPY ${architecture} /program\nRUN ["/program"]\n`,
    });
    writeFileSync(join(context, architecture), assembleProgram(architecture, callsOf(), texts), {
      mode: 0o755,
    });
  }
});

const build = (interpreters: Interpreters, home: string, architecture: Architecture) =>
  bough(
    interpreters,
    home,
    ...["build", "--docker", "--platform", `linux/${architecture}`, "--tag", "made:1"],
    ...["--dockerfile", `${architecture}.Dockerfile`, "."],
  );

/** Returns what the program noted of its calls, and the machine that it saw. */
async function resultsIn(home: string) {
  const copied = await bough("none", home, "-q", "cp", "made:1:/made", join(home, "made"));
  expect(copied).toMatchObject({ exitCode: 0, stderr: "" });
  const results = readFileSync(join(home, "made/results"));
  const machine = readFileSync(join(home, "made/machine"));
  const named = tried.map(([name], at) => {
    const value = results.readInt32LE(4 * at);
    return [name, value === 0 ? "done" : (errors[-value] ?? value)];
  });
  return {
    results: Object.fromEntries(named),
    machine: machine.toString("latin1", 4 * 65).split("\0", 1)[0],
  };
}

const errors: Readonly<Record<number, string>> = { 1: "EPERM", 9: "EBADF", 14: "EFAULT", 38: "ENOSYS" };

describe.if(hasOwnList && process.getuid?.() === 0 && process.arch === "x64")("a RUN", () => {
  test.each([
    ["amd64", "none", "x86_64"],
    ["386", "none", /^(x86_64|i686)$/],
    ["arm64", "arm64", "aarch64"],
  ] as const)("of %s has docker's filter of system calls", async (architecture, interpreters, machine) => {
    const home = temporaryDirectory();
    const built = await build(interpreters, home, architecture);
    expect(built.stderr).toContain("hello");
    expect(built.exitCode).toBe(0);
    const found = await resultsIn(home);
    expect(found.machine).toMatch(machine);
    expect(found.results).toEqual(refused);
  });

  test.each([
    ["is refused", "none", "this machine does not run programs for it"],
    ["fails where the list of interpreters is not mounted", "unknown", "exec format error"],
  ] as const)(
    "of a platform without an interpreter %s, with the package to install",
    async (_, list, said) => {
      const built = await build(list, temporaryDirectory(), "arm64");
      expect(built.exitCode).toBe(1);
      expect(built.stderr).toContain(said);
      expect(built.stderr).toContain("qemu-user-static");
    },
  );
});
