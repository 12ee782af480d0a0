/** bough itself runs in a chroot. */
import { beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { usableRuntimes } from "../support/runtimes.ts";

let layout: string;
beforeAll(async () => {
  layout = await makeBusyboxLayout(temporaryDirectory());
});

/** Runs `command` on an engine in a chroot that `setUp` makes at `$ROOT`, from the machine's directories. */
function runInChroot(setUp: string, command: string, runtime: string): unknown {
  const scratch = temporaryDirectory();
  const [root, directory] = [join(scratch, "root"), join(scratch, "engine")];
  mkdirSync(root);
  const program = `
    import { TestEngine } from ${JSON.stringify(join(import.meta.dir, "../support/engine.ts"))};
    const environment = { PATH: process.env.PATH, BOUGH_RUNTIME: "${runtime}" };
    const engine = await TestEngine.open({ directory: ${JSON.stringify(directory)}, environment });
    const { exitCode, stdout, stderr, operation } =
      await engine.run(await engine.importBase("base:1", ${JSON.stringify(layout)}), ${JSON.stringify(command)});
    console.log(JSON.stringify({ exitCode, stdout, stderr, error: operation.error }));
    await engine.engine.close();`;
  const shell = `${setUp}; exec chroot "$ROOT" "$@"`;
  const words = ["unshare", "--mount", "sh", "-ec", shell, "sh", process.execPath, "-e", program];
  const child = Bun.spawnSync(words, { env: { PATH: process.env.PATH, ROOT: root } });
  expect(child.stderr.toString()).toBe("");
  return JSON.parse(child.stdout.toString());
}

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
