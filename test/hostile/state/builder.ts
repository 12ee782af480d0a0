/** A user who builds on the embedded engine, with a state directory that tests damage between two builds. */
import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { type Ended, runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { type FileSpec, writeFiles } from "../../support/files.ts";
import { removeHome } from "../../support/homes.ts";
import { makeOrdinaryUser } from "../../support/ordinary-user.ts";
import { makeUserBough } from "../../support/user-bough.ts";

export interface Builder {
  /** A directory that the user can write to. */
  readonly home: string;
  /** `$BOUGH_HOME`. After `reset`, it has only the image `busybox:1`, or the state of `keep`. */
  readonly state: string;
  readonly engine: string;
  /** The layout from which `busybox:1` was imported. */
  readonly layout: string;
  /** The build context. After `reset`, it is a new one, or the one of `keep`. */
  readonly context: string;
  bough(words: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ended>;
  /** Starts bough in a separate process, which can be killed. */
  start(
    words: readonly string[],
    environment?: Readonly<Record<string, string>>,
  ): Subprocess<"ignore", "pipe", "pipe">;
  writeContext(files: Readonly<Record<string, FileSpec>>): void;
  /** Saves the current state and context, which `reset` restores from then on. */
  keep(): void;
  /** Restores the state and the context. */
  reset(): void;
  /** Makes the user the owner of files that a test has made. */
  own(path: string): void;
  remove(): void;
}

export const builders: readonly (readonly [name: string, make: () => Promise<Builder>])[] = [
  ["root", makeRoot],
  ["an ordinary user", makeOrdinary],
];

async function makeRoot(): Promise<Builder> {
  const home = temporaryDirectory();
  const layout = `oci:${join(home, "layout")}:latest`;
  await makeBusyboxLayout(join(home, "layout"));
  return prepare(
    {
      home,
      run: (words, directory, environment) =>
        runBough(words, { workingDirectory: directory, environment: { ...environment } }),
      start: (words, directory, environment) =>
        Bun.spawn([compileBough(), ...words], {
          cwd: directory,
          env: { PATH: process.env.PATH, HOME: home, ...environment },
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        }),
      own() {},
      remove: () => removeHome(home),
    },
    layout,
  );
}

async function makeOrdinary(): Promise<Builder> {
  const user = makeOrdinaryUser();
  const program = user.giveBough();
  const made = temporaryDirectory();
  await makeBusyboxLayout(made);
  const layout = `oci:${user.give(made, "layout")}:latest`;
  const { uid, gid } = lstatSync(user.home);
  const bough = makeUserBough(user);
  const start: User["start"] = (words, directory, environment) =>
    Bun.spawn([...user.prefix, "sh", "-c", 'cd "$0" && exec "$@"', directory, program, ...words], {
      env: { PATH: process.env.PATH, HOME: user.home, ...environment },
      stdout: "pipe",
      stderr: "pipe",
      stdin: "ignore",
    });
  return prepare(
    {
      home: user.home,
      start,
      run: (words, workingDirectory, environment) => bough.run(words, { workingDirectory, environment }),
      own: (path) => chown(path, uid, gid),
      remove() {
        bough.close();
        user.remove();
      },
    },
    layout,
  );
}

interface User {
  home: string;
  run(
    words: readonly string[],
    directory: string,
    environment: Readonly<Record<string, string>>,
  ): Promise<Ended>;
  start(
    words: readonly string[],
    directory: string,
    environment: Readonly<Record<string, string>>,
  ): Subprocess<"ignore", "pipe", "pipe">;
  own(path: string): void;
  remove(): void;
}

async function prepare(user: User, layout: string): Promise<Builder> {
  const { home, own } = user;
  const state = join(home, "state");
  const pristine = join(home, "pristine");
  const keptContext = join(home, "kept-context");
  let context = join(home, "context");
  mkdirSync(context);
  own(context);
  const bough: Builder["bough"] = (words, environment = {}) =>
    user.run(["--local", ...words], context, { BOUGH_HOME: state, ...environment });
  const imported = await bough(["images", "import", layout, "--tag", "busybox:1"]);
  if (imported.exitCode !== 0) throw new Error(imported.stderr);
  replace(pristine, state);
  // No test has to wait for the trial of crun, which takes as long as several RUNs.
  const ran = await bough(["run", "-D", "--network", "none", "--use", "busybox:1", "--", "true"]);
  if (ran.exitCode !== 0) throw new Error(ran.stderr);
  Bun.spawnSync(["cp", "-a", join(state, "engine/runtime.json"), join(pristine, "engine")]);
  replace(state, pristine);
  return {
    home,
    state,
    engine: join(state, "engine"),
    layout,
    get context() {
      return context;
    },
    bough,
    start: (words, environment = {}) =>
      user.start(["--local", ...words], context, { BOUGH_HOME: state, ...environment }),
    own,
    remove: user.remove,
    writeContext(files) {
      writeFiles(context, files);
      own(context);
    },
    keep() {
      replace(pristine, state);
      replace(keptContext, context);
    },
    reset() {
      replace(state, pristine);
      // Layers belong to a context's path.
      if (existsSync(keptContext)) return replace(context, keptContext);
      context = join(home, `context-${crypto.randomUUID()}`);
      mkdirSync(context);
      own(context);
    },
  };
}

/** Copies a tree with its owners, modes and links. */
function replace(to: string, from: string): void {
  removeHome(to);
  const { exitCode, stderr } = Bun.spawnSync(["cp", "-a", from, to]);
  if (exitCode !== 0) throw new Error(stderr.toString());
}

function chown(path: string, uid: number, gid: number): void {
  const { exitCode, stderr } = Bun.spawnSync(["chown", "-Rh", `${uid}:${gid}`, path]);
  if (exitCode !== 0) throw new Error(stderr.toString());
}
