/** bough itself runs in a chroot. */
import { beforeAll, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { usableRuntimes } from "../support/runtimes.ts";

let layout: string;
beforeAll(async () => {
  layout = await makeBusyboxLayout(temporaryDirectory());
});

/** Runs a program on `engine`, with the image `base`, in a chroot that `setUp` makes at `$ROOT`, from the machine's directories. */
function inChroot(setUp: string, runtime: string, program: string): unknown {
  const scratch = temporaryDirectory();
  const [root, directory] = [join(scratch, "root"), join(scratch, "engine")];
  mkdirSync(root);
  const whole = `
    import { TestEngine } from ${JSON.stringify(join(import.meta.dir, "../support/engine.ts"))};
    const environment = { PATH: process.env.PATH, BOUGH_RUNTIME: "${runtime}" };
    const engine = await TestEngine.open({ directory: ${JSON.stringify(directory)}, environment });
    const base = await engine.importBase("base:1", ${JSON.stringify(layout)});
    ${program}
    await engine.engine.close();`;
  const shell = `${setUp}; exec chroot "$ROOT" "$@"`;
  const words = ["unshare", "--mount", "sh", "-ec", shell, "sh", process.execPath, "-e", whole];
  const child = Bun.spawnSync(words, { env: { PATH: process.env.PATH, ROOT: root } });
  expect(child.stderr.toString()).toBe("");
  return JSON.parse(child.stdout.toString());
}

/** Prints whether bough is in a chroot: with that and nothing else to do, it need not be root of the machine. */
const askWhere = `
  import { systemClock } from ${JSON.stringify(join(import.meta.dir, "../../src/clock.ts"))};
  import { isInChroot } from ${JSON.stringify(join(import.meta.dir, "../../src/engine/sandbox/root/chroot.ts"))};
  console.log(await isInChroot({ environment: { PATH: process.env.PATH }, clock: systemClock }));`;

/** Copies what `askWhere` needs to where an ordinary user can read it: the checkout may be in root's home directory. */
async function readableProgram(): Promise<string[]> {
  const directory = temporaryDirectory();
  for (const path of [dirname(directory), directory]) chmodSync(path, 0o755);
  const [source, bun] = [join(directory, "ask.ts"), join(directory, "bun")];
  writeFileSync(source, askWhere);
  cpSync(process.execPath, bun);
  const { outputs } = await Bun.build({ entrypoints: [source], target: "bun", outdir: directory });
  return [bun, outputs[0]?.path ?? ""];
}

const inUserNamespace = ["unshare", "--user", "--map-root-user", "--mount"];
const asUser = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
const asUserInNamespace = [...asUser, ...inUserNamespace];
/** Becomes the arguments below another root. */
const change = (words: string) => ["sh", "-ec", `mount --rbind / "$ROOT"; cd "$ROOT"; ${words}`, "sh"];
const noNamespaces = ["sh", "-ec", `echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"`, "sh"];

test.each<[where: string, prefix: string[], expected: boolean]>([
  ["on the machine", [], false],
  ["as an ordinary user in a user namespace", asUserInNamespace, false],
  ["where no user namespace can be made", [...inUserNamespace, ...noNamespaces], false],
  ["in a chroot", ["unshare", "--mount", ...change('exec chroot . "$@"')], true],
  ["in a chroot of a user namespace", [...inUserNamespace, ...change('exec chroot . "$@"')], true],
  [
    "below a root that pivot_root(8) has made",
    ["unshare", "--mount", ...change('pivot_root . mnt; exec "$@"')],
    false,
  ],
])("bough knows %s whether it is in a chroot", async (_, prefix, expected) => {
  const root = temporaryDirectory();
  chmodSync(root, 0o755);
  const program = prefix === asUserInNamespace ? await readableProgram() : [process.execPath, "-e", askWhere];
  const words = [...prefix, ...program];
  const child = Bun.spawnSync(words, { env: { PATH: process.env.PATH, ROOT: root } });
  expect(child.stderr.toString()).toBe("");
  expect(child.stdout.toString()).toBe(`${expected}\n`);
});

function runInChroot(setUp: string, command: string, runtime: string): unknown {
  return inChroot(
    setUp,
    runtime,
    `const { exitCode, stdout, stderr, operation } = await engine.run(base, ${JSON.stringify(command)});
    console.log(JSON.stringify({ exitCode, stdout, stderr, error: operation.error }));`,
  );
}

/** What a process beside the command looks at: a file of the command, and a directory that only the machine has. */
const look = "for i in 1 2 3 4 5; do [ -s /file ] && break; sleep 1; done; cat /file; ls /usr/lib; exit 3";

/** Starts a process beside a command that runs, and prints its result. */
const besideCommand = `
  const { uuid } = await engine.start({ image: base, command: "echo text > /file; sleep 100", shell: true });
  const subprocesses = "/v1/operations/" + uuid + "/subprocesses";
  const { spid } = await engine.json("POST", subprocesses, { command: ${JSON.stringify(look)}, shell: true });
  let result;
  do {
    await Bun.sleep(5);
    result = await engine.json("GET", subprocesses + "/" + spid);
  } while (result.state?.exit_code === -1 && result.state.signal === -1);
  await engine.fetch("DELETE", "/v1/operations/" + uuid);
  await engine.finish({ uuid });
  const { state, stdout, stderr } = result;
  console.log(JSON.stringify({ exitCode: state.exit_code, stdout: stdout.value, stderr: stderr.value }));`;

const bound = `mount --rbind / "$ROOT"`;

test.each(usableRuntimes())("with %s, a process beside a command has the same root", (runtime) => {
  expect(inChroot(bound, runtime, besideCommand)).toEqual({
    exitCode: 3,
    stdout: "text\n",
    stderr: "ls: /usr/lib: No such file or directory\n",
  });
});

test.each(
  usableRuntimes().flatMap((runtime) => [
    [runtime, "shared"],
    [runtime, "private"],
  ]),
)("a command is run with %s below a %s mount, and can't leave it by chroot(2)", (runtime, propagation) => {
  const setUp = `mount --make-r${propagation} /; mount --rbind / "$ROOT"; mount --make-r${propagation} "$ROOT"`;
  expect(runInChroot(setUp, "echo out; chroot / true", runtime)).toEqual({
    ...{ exitCode: 1, stdout: "out\n", error: null },
    stderr: "chroot: can't change root directory to '/': Operation not permitted\n",
  });
});

test("a chroot whose root is not a mount point is an error with the remedy", () => {
  const setUp = `for path in /*; do
    if [ -L "$path" ]; then cp -a "$path" "$ROOT"; elif [ -d "$path" ]; then mkdir "$ROOT$path"; mount --rbind "$path" "$ROOT$path"; fi
  done`;
  expect(runInChroot(setUp, "true", "runc")).toMatchObject({
    error: expect.stringMatching(
      /could not be mounted: unshare: .*\. The root directory of bough's chroot must be a mount point: outside of it, `mount --bind/,
    ),
  });
});
