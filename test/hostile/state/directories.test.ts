/** Directories of the state that are links, somebody else's or open to all, and what killed processes seem to have left in them. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, lchownSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rowsFor } from "../../support/rows.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "./builder.ts";

interface Place {
  state: string;
  engine: string;
  canary: Canary;
}

const somebodyElse = 54_321;
const abandoned = crypto.randomUUID();

/** Puts a link to the canary in the place of a part of the state. */
const linked =
  (part: string, target: "path" | "file", owner = 0) =>
  ({ state, canary }: Place) => {
    const path = join(state, part);
    rmSync(path, { recursive: true, force: true });
    symlinkSync(canary[target], path);
    if (owner !== 0) lchownSync(path, owner, owner);
  };

const refused: readonly (readonly [name: string, attack: (place: Place) => void, says: string])[] = [
  [
    "somebody else's engine",
    ({ engine }) => Bun.spawnSync(["chown", "-R", `${somebodyElse}`, engine]),
    "belongs to another user",
  ],
  [
    "somebody else's link to a canary as the engine",
    linked("engine", "path", somebodyElse),
    "belongs to another user",
  ],
  [
    "a link as the engine to what is somebody else's",
    ({ engine }) => {
      renameSync(engine, `${engine}.moved`);
      symlinkSync(`${engine}.moved`, engine);
      Bun.spawnSync(["chown", "-R", `${somebodyElse}`, `${engine}.moved`]);
    },
    "belongs to another user",
  ],
  [
    "an engine that all can write to",
    ({ engine }) => chmodSync(engine, 0o777),
    "can be written to by others (mode 0777)",
  ],
  [
    "layers that a group can write to",
    ({ engine }) => chmodSync(join(engine, "layers"), 0o770),
    "can be written to by others",
  ],
  ...["layers", "files", "operations", "events", "containers", "scratch", "root", "skeleton", "empty"].map(
    (name) =>
      [`a link to a canary as ${name}`, linked(`engine/${name}`, "path"), "is a symbolic link"] as const,
  ),
  ["a file as operations", ({ engine }) => replaceByFile(join(engine, "operations")), "is not a directory"],
  [
    "a link to a canary as the engine's database",
    linked("engine/engine.db", "file"),
    "is not a regular file",
  ],
  ["a link to a canary as its journal", linked("engine/engine.db-wal", "file"), "is not a regular file"],
  [
    "a pipe as the engine's database",
    ({ engine }) => replaceByPipe(join(engine, "engine.db")),
    "is not a regular file",
  ],
  [
    "somebody else's sessions",
    ({ state }) => Bun.spawnSync(["chown", "-R", `${somebodyElse}`, join(state, "sessions")]),
    "belongs to another user",
  ],
  [
    "somebody else's link to a canary as the sessions",
    linked("sessions", "path", somebodyElse),
    "belongs to another user",
  ],
  [
    "sessions that all can write to",
    ({ state }) => chmodSync(join(state, "sessions"), 0o777),
    "can be written to by others",
  ],
  [
    "a link to a canary as the sessions' database",
    linked("sessions/embedded.db", "file"),
    "is not a regular file",
  ],
  [
    "a link to a canary as its journal's index",
    linked("sessions/embedded.db-shm", "file"),
    "is not a regular file",
  ],
  [
    "a pipe as the sessions' database",
    ({ state }) => replaceByPipe(join(state, "sessions/embedded.db")),
    "is not a regular file",
  ],
];

/** Of an operation whose process is gone, and which was never ended. */
const left = (attack: (place: Place) => void) => (place: Place) => {
  const database = new Database(join(place.engine, "engine.db"));
  database.run(
    `INSERT INTO operations (uuid, kind, status, owner, metadata, created_at)
     VALUES ('${abandoned}', 'instance', 'EXECUTING', 'gone.1.1', '{}', 1)`,
  );
  database.close();
  attack(place);
};

const cleared: readonly (readonly [name: string, attack: (place: Place) => void])[] = [
  [
    "an operation's directory with links to a canary",
    ({ engine, canary }) => plant(join(engine, "operations", abandoned), canary),
  ],
  ["a link to a canary as an operation's directory", linked(`engine/operations/${abandoned}`, "path")],
  [
    "an unfinished operation's directory with links to a canary",
    left(({ engine, canary }) => plant(join(engine, "operations", abandoned), canary)),
  ],
  [
    "a link to a canary as an unfinished operation's directory",
    left(linked(`engine/operations/${abandoned}`, "path")),
  ],
  [
    "a pipe as the note of an unfinished operation's helper",
    left(({ engine }) => {
      mkdirSync(join(engine, "operations", abandoned));
      replaceByPipe(join(engine, "operations", abandoned, "helper"));
    }),
  ],
  [
    "a link to a canary as an unfinished operation's events",
    left(linked(`engine/events/${abandoned}.ndjson`, "file")),
  ],
  [
    "a pipe as an unfinished operation's events",
    left(({ engine }) => replaceByPipe(join(engine, "events", `${abandoned}.ndjson`))),
  ],
  [
    "a link to a canary as an unfinished operation's container",
    left(linked(`engine/containers/${abandoned}`, "path")),
  ],
  [
    "an unfinished operation's container with links to a canary",
    left(({ engine, canary }) => plant(join(engine, "containers", abandoned), canary)),
  ],
  ["a link to a canary among the layers", linked("engine/layers/zz", "path")],
  [
    "a directory with links to a canary among the layers",
    ({ engine, canary }) => plant(join(engine, "layers/zz"), canary),
  ],
  ["a link to a canary among temporary files", linked("engine/scratch/gone.1.1.x", "path")],
  [
    "temporary files with links to a canary",
    ({ engine, canary }) => plant(join(engine, "scratch/gone.1.1.x"), canary),
  ],
  ["a link to a canary as a mount point's directory", linked("engine/skeleton/dev", "path")],
  ["a link to a canary as a mount point's file", linked("engine/skeleton/etc/hosts", "file")],
  ["a link to a canary as the directory of mount points' files", linked("engine/skeleton/etc", "path")],
];

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  let canary: Canary;
  beforeAll(async () => {
    builder = await make();
    canary = makeCanary(builder.home);
    builder.own(canary.path);
    builder.writeContext({ Dockerfile: "FROM busybox:1\nRUN touch /made\n" });
    expect(await builder.bough(["session", "list"])).toMatchObject({ exitCode: 0 });
    builder.keep();
  });
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  const place = (): Place => ({ state: builder.state, engine: builder.engine, canary });

  const ofEachRefusal = [
    "somebody else's engine",
    "somebody else's link to a canary as the engine",
    "a link as the engine to what is somebody else's",
    "an engine that all can write to",
    "a link to a canary as layers",
    "a link to a canary as the engine's database",
    "a pipe as the engine's database",
    "somebody else's sessions",
  ];
  test.each(rowsFor(who, refused, ofEachRefusal))("refused is %s", async (_name, attack, says) => {
    const before = canary.state();
    attack(place());
    if (!says.includes("another user"))
      Bun.spawnSync(["sh", "-c", 'chown -h --reference "$0" "$0"/* "$0"/engine/*', builder.state]);
    const ended = await builder.bough(["build", "."]);
    expect(ended.stderr).toContain(says);
    expect(ended.stderr).toContain("set BOUGH_HOME to another directory");
    expect(ended.exitCode).toBe(1);
    expect(canary.state()).toBe(before);
  });

  const ofEachRemainder = [
    "an unfinished operation's directory with links to a canary",
    "a pipe as the note of an unfinished operation's helper",
    "an unfinished operation's container with links to a canary",
    "a directory with links to a canary among the layers",
    "a link to a canary as a mount point's file",
  ];
  test.each(rowsFor(who, cleared, ofEachRemainder))("cleared away is %s", async (_name, attack) => {
    const before = canary.state();
    attack(place());
    builder.own(builder.engine);
    expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
    expect((await builder.bough(["engine", "prune", "-y"])).exitCode).toBe(0);
    expect(canary.state()).toBe(before);
  });

  test("a state directory that all can write to: what bough makes in it is its own, and doctor warns", async () => {
    chmodSync(builder.state, 0o777);
    expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
    const doctor = await builder.bough(["doctor"]);
    expect(doctor.stdout).toMatch(
      /^warning +state directory +other users of this machine can write to .* \(mode 0777\)$/m,
    );
    chmodSync(builder.state, 0o1777);
    expect((await builder.bough(["doctor"])).stdout).toMatch(/^ok +state directory/m);
  });

  test("an engine that its own user has moved to another disk, with a link to it, works", async () => {
    renameSync(builder.engine, join(builder.home, "elsewhere"));
    symlinkSync(join(builder.home, "elsewhere"), builder.engine);
    builder.own(builder.state);
    expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
    rmSync(join(builder.home, "elsewhere"), { recursive: true });
  });
});

/** A directory with links to the canary at every depth. */
function plant(path: string, canary: Canary): void {
  for (const name of ["upper", "work/work", "upper/deep/er"])
    mkdirSync(join(path, name), { recursive: true });
  for (const name of ["link", "upper/link", "upper/deep/er/link", "work/work/link"])
    symlinkSync(canary.path, join(path, name));
  for (const name of ["config.json", "log", "pid", "helper", "state.json", "upper/file"])
    symlinkSync(canary.file, join(path, name));
}

function replaceByFile(path: string): void {
  rmSync(path, { recursive: true, force: true });
  writeFileSync(path, "");
}

function replaceByPipe(path: string): void {
  rmSync(path, { recursive: true, force: true });
  Bun.spawnSync(["mkfifo", path]);
}
