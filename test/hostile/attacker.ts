/** Runs the compiled bough on images that an attacker made, as root and as an ordinary user. */
import { cpSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { type BusyboxImageOptions, makeBusyboxLayout } from "../support/busybox-image.ts";
import { linkBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { makeUserBough } from "../support/user-bough.ts";
import { makeCanary } from "./canary.ts";

export const users = ["root", "an ordinary user"] as const;

export interface WatchedCanary {
  readonly path: string;
  /** One of its files. */
  readonly file: string;
  /** Lines of its state that are new. The line of a directory has its time, which shows that a file was removed. */
  changes(): string[];
}

export interface Attacker {
  /** The directory with all files of the attacker. */
  readonly home: string;
  /** The first words of a command line that runs bough in `home`, with the embedded engine. */
  readonly bough: readonly string[];
  /** Makes a canary that belongs to the attacker, so that only the sandbox protects it. */
  layCanary(): WatchedCanary;
  /** Copies a file or directory to `name` in `home`. Returns its path. */
  give(path: string, name: string): string;
  run(words: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ended>;
  /** Imports a busybox image that `prepare` has changed, under a tag. */
  importImage(tag: string, options?: BusyboxImageOptions): Promise<void>;
  /** Runs a shell command in a tagged image, and discards its changes. */
  attack(tag: string, command: string, ...options: string[]): Promise<Ended>;
  close(): void;
}

/** Files that a sandbox would make, replace or remove if it followed a link: those of runc in `/dev`, and empty ones. */
const bait = {
  ...Object.fromEntries(
    ["core", "fd", "hosts", "null", "ptmx", "resolv.conf", "stderr", "stdin", "stdout", "zero"].map(
      (name) => [name, "bait"],
    ),
  ),
  empty: "",
  hollow: "directory/",
} as const;

/** `inOneProcess`: `run` starts no process of bough for each command line, but runs them all in one. */
export function makeAttacker(who: (typeof users)[number], { inOneProcess = false } = {}): Attacker {
  const ordinary = who === "root" ? undefined : makeOrdinaryUser();
  const user = ordinary ?? asRoot();
  const { home } = user;
  const userBough = ordinary && makeUserBough(ordinary);
  user.giveBough();
  const bough = [...user.prefix, "env", "-i", `--chdir=${home}`, `PATH=${process.env.PATH}`, `HOME=${home}`];
  const attacker: Attacker = {
    home,
    bough: [...bough, `${home}/bough`, "--local"],
    layCanary() {
      const parent = join(home, crypto.randomUUID());
      const { path, file, state } = makeCanary(parent, bait);
      const { uid, gid } = statSync(home);
      Bun.spawnSync(["chown", "--recursive", "--no-dereference", `${uid}:${gid}`, parent]);
      const before = state().split("\n");
      return {
        path,
        file,
        changes: () =>
          state()
            .split("\n")
            .filter((line) => !before.includes(line)),
      };
    },
    give: user.give,
    async run(words, environment = {}) {
      if (inOneProcess) {
        const state = { HOME: home, BOUGH_HOME: join(home, ".local/state/bough") };
        const run = userBough?.run ?? runBough;
        return run(["--local", ...words], {
          workingDirectory: home,
          environment: { ...state, ...environment },
        });
      }
      const settings = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
      const command = [...bough, ...settings, `${home}/bough`, "--local", ...words];
      return endOf(Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" }));
    },
    async importImage(tag, options = {}) {
      const made = join(temporaryDirectory(), "layout");
      await makeBusyboxLayout(made, options);
      const layout = user.give(made, `layout-${crypto.randomUUID()}`);
      const { exitCode, stderr } = await attacker.run([
        "images",
        "import",
        `oci:${layout}:latest`,
        "--tag",
        tag,
      ]);
      if (exitCode !== 0) throw new Error(stderr);
    },
    attack: (tag, command, ...options) =>
      attacker.run(["run", "-D", "-s", "--use", `tag:${tag}`, ...options, "--", command]),
    close() {
      userBough?.close();
      user.remove();
    },
  };
  return attacker;
}

function asRoot(): Pick<OrdinaryUser, "home" | "prefix" | "give" | "giveBough" | "remove"> {
  const home = temporaryDirectory();
  return {
    home,
    prefix: [],
    give(path, name) {
      const place = join(home, name);
      cpSync(path, place, { recursive: true });
      return place;
    },
    giveBough: () => linkBough(home),
    remove() {},
  };
}
