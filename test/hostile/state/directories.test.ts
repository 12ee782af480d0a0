/** State directories that are links, belong to another user or are writable for all, and forged remains of killed processes. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { endOf } from "../../support/ended.ts";
import { rowsFor } from "../../support/rows.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "./builder.ts";

interface Place {
  state: string;
  engine: string;
  canary: Canary;
}

const otherUser = 54_321;
const abandoned = crypto.randomUUID();

/** Replaces a part of the state by a link to the canary. */
const linked =
  (part: string, target: "path" | "file", owner = 0) =>
  ({ state, canary }: Place) => {
    const path = join(state, part);
    rmSync(path, { recursive: true, force: true });
    symlinkSync(canary[target], path);
    if (owner !== 0) lchownSync(path, owner, owner);
  };

const refused: readonly (readonly [name: string, attack: (place: Place) => void, message: string])[] = [
  [
    "running builds of another user",
    ({ state }) => {
      mkdirSync(join(state, "running-builds"), { recursive: true });
      Bun.spawnSync(["chown", "-R", `${otherUser}`, join(state, "running-builds")]);
    },
    "belongs to another user",
  ],
  [
    "an engine of another user",
    ({ engine }) => Bun.spawnSync(["chown", "-R", `${otherUser}`, engine]),
    "belongs to another user",
  ],
  [
    "another user's link to a canary as the engine",
    linked("engine", "path", otherUser),
    "belongs to another user",
  ],
  [
    "a link as the engine to a directory of another user",
    ({ engine }) => {
      renameSync(engine, `${engine}.moved`);
      symlinkSync(`${engine}.moved`, engine);
      Bun.spawnSync(["chown", "-R", `${otherUser}`, `${engine}.moved`]);
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
  ...[
    "layers",
    "listings",
    "files",
    "operations",
    "events",
    "containers",
    "scratch",
    "root",
    "skeleton",
    "empty",
  ].map(
    (name) =>
      [`a link to a canary as ${name}`, linked(`engine/${name}`, "path"), "is a symbolic link"] as const,
  ),
  ["a file as operations", ({ engine }) => replaceByFile(join(engine, "operations")), "is not a directory"],
  [
    "a link to a canary as the engine's database",
    linked("engine/engine.db", "file"),
    "is not a regular file",
  ],
  [
    "a link to a canary as the database's journal",
    linked("engine/engine.db-wal", "file"),
    "is not a regular file",
  ],
  [
    "a pipe as the engine's database",
    ({ engine }) => replaceByPipe(join(engine, "engine.db")),
    "is not a regular file",
  ],
  [
    "sessions of another user",
    ({ state }) => Bun.spawnSync(["chown", "-R", `${otherUser}`, join(state, "sessions")]),
    "belongs to another user",
  ],
  [
    "another user's link to a canary as the sessions",
    linked("sessions", "path", otherUser),
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
    "a link to a canary as the index of the sessions' journal",
    linked("sessions/embedded.db-shm", "file"),
    "is not a regular file",
  ],
  [
    "a pipe as the sessions' database",
    ({ state }) => replaceByPipe(join(state, "sessions/embedded.db")),
    "is not a regular file",
  ],
];

/** Adds the record of an unfinished operation whose process is gone. */
const unfinished = (attack: (place: Place) => void) => (place: Place) => {
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
    unfinished(({ engine, canary }) => plant(join(engine, "operations", abandoned), canary)),
  ],
  [
    "a link to a canary as an unfinished operation's directory",
    unfinished(linked(`engine/operations/${abandoned}`, "path")),
  ],
  [
    "a pipe as the helper's record of an unfinished operation",
    unfinished(({ engine }) => {
      mkdirSync(join(engine, "operations", abandoned));
      replaceByPipe(join(engine, "operations", abandoned, "helper"));
    }),
  ],
  [
    "a link to a canary as an unfinished operation's events",
    unfinished(linked(`engine/events/${abandoned}.ndjson`, "file")),
  ],
  [
    "a pipe as an unfinished operation's events",
    unfinished(({ engine }) => replaceByPipe(join(engine, "events", `${abandoned}.ndjson`))),
  ],
  [
    "a link to a canary as an unfinished operation's container",
    unfinished(linked(`engine/containers/${abandoned}`, "path")),
  ],
  [
    "an unfinished operation's container with links to a canary",
    unfinished(({ engine, canary }) => plant(join(engine, "containers", abandoned), canary)),
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
    "an engine of another user",
    "another user's link to a canary as the engine",
    "a link as the engine to a directory of another user",
    "an engine that all can write to",
    "a link to a canary as layers",
    "a link to a canary as the engine's database",
    "a pipe as the engine's database",
    "sessions of another user",
  ];
  test.each(rowsFor(who, refused, ofEachRefusal))("refuses %s", async (_name, attack, message) => {
    const before = canary.state();
    attack(place());
    if (!message.includes("another user"))
      Bun.spawnSync(["sh", "-c", 'chown -h --reference "$0" "$0"/* "$0"/engine/*', builder.state]);
    const ended = await builder.bough(["build", "."]);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).toContain("set BOUGH_HOME to another directory");
    expect(ended.exitCode).toBe(1);
    expect(canary.state()).toBe(before);
  });

  test.each<[string, ...string[]]>([["build", "."], ["images"], ["session", "list"]])(
    "refuses a home of another user that all can write to, as anybody can make one in /tmp: %s",
    async (...words) => {
      const path = join(builder.home, "shared");
      mkdirSync(path, { recursive: true });
      chmodSync(path, 0o1777);
      Bun.spawnSync(["chown", `${otherUser}`, path]);
      const started = builder.start(["--local", ...words], { BOUGH_HOME: path });
      const { exitCode, stderr } = await endOf(started);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: expect.stringContaining("belongs to another user (uid 54321), and all can write to it"),
      });
      expect(readdirSync(path)).toEqual([]);
      // Root's, as a volume of a container is.
      Bun.spawnSync(["chown", "root", path]);
      const allowed = builder.start(["--local", "session", "list"], { BOUGH_HOME: path });
      expect((await endOf(allowed)).exitCode).toBe(0);
      rmSync(path, { recursive: true });
    },
  );

  const ofEachRemainder = [
    "an unfinished operation's directory with links to a canary",
    "a pipe as the helper's record of an unfinished operation",
    "an unfinished operation's container with links to a canary",
    "a directory with links to a canary among the layers",
    "a link to a canary as a mount point's file",
  ];
  test.each(rowsFor(who, cleared, ofEachRemainder))(
    "removes without following links: %s",
    async (_name, attack) => {
      const before = canary.state();
      attack(place());
      builder.own(builder.engine);
      expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
      expect((await builder.bough(["engine", "prune", "-y"])).exitCode).toBe(0);
      expect(canary.state()).toBe(before);
    },
  );

  test("a state directory that all can write to works, and doctor warns about it", async () => {
    chmodSync(builder.state, 0o777);
    expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
    const doctor = await builder.bough(["doctor"]);
    expect(doctor.stdout).toMatch(
      /^warning +state directory +other users of this machine can write to .* \(mode 0777\)$/m,
    );
    chmodSync(builder.state, 0o1777);
    expect((await builder.bough(["doctor"])).stdout).toMatch(/^ok +state directory/m);
  });

  test("a link of the user's own to an engine on another disk works", async () => {
    renameSync(builder.engine, join(builder.home, "elsewhere"));
    symlinkSync(join(builder.home, "elsewhere"), builder.engine);
    builder.own(builder.state);
    expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
    rmSync(join(builder.home, "elsewhere"), { recursive: true });
  });
});

/** Makes a directory with links to the canary at every depth. */
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
