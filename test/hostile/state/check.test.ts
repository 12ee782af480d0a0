/** `bough engine check` finds every kind of damage, names what it affects, and drops it with `--repair`. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { checkQuickly } from "../../../src/engine/check/check.ts";
import { commandLines } from "../../support/processes.ts";
import { rowsFor } from "../../support/rows.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "./builder.ts";

interface Store {
  files: string[];
  layer(number: number): string;
  sql(statement: string): void;
  canary: Canary;
}

interface Case {
  name: string;
  attack: (store: Store) => void;
  damage: { kind: string; problem: string; tags?: string[] }[];
  /** `bough doctor` finds it, without reading contents. */
  isQuick?: boolean;
}

const fileDamage = (problem: string) => [{ kind: "file", problem }];
const layerDamage = (problem: string) => [{ kind: "layer", problem, tags: ["app:1"] }];

const cases: Case[] = [
  {
    name: "a flipped byte of an uploaded file",
    attack: ({ files: [path = ""] }) => flip(path),
    damage: fileDamage("its bytes have changed"),
  },
  {
    name: "a missing uploaded file",
    attack: ({ files: [path = ""] }) => rmSync(path),
    damage: fileDamage("it is gone"),
    isQuick: true,
  },
  {
    name: "an uploaded file that has become longer",
    attack: ({ files: [path = ""] }) => appendFileSync(path, "!"),
    damage: fileDamage("it has 9 bytes instead of 8"),
    isQuick: true,
  },
  {
    name: "a link to a canary in place of an uploaded file",
    attack: ({ files: [path = ""], canary }) => {
      rmSync(path);
      symlinkSync(canary.file, path);
    },
    damage: fileDamage("it is not a regular file"),
    isQuick: true,
  },
  {
    name: "a file's record with a path as its hash",
    attack: ({ sql }) => sql("UPDATE files SET sha256 = '../../../../canary/file'"),
    damage: fileDamage("its record has an invalid SHA-256"),
    isQuick: true,
  },
  {
    name: "a missing layer",
    attack: ({ layer }) => rmSync(layer(2), { recursive: true }),
    damage: layerDamage("its directory is gone"),
    isQuick: true,
  },
  {
    name: "a link to a canary in place of a layer",
    attack: ({ layer, canary }) => {
      rmSync(layer(2), { recursive: true });
      symlinkSync(canary.path, layer(2));
    },
    damage: layerDamage("its path is not a directory"),
    isQuick: true,
  },
  {
    name: "a flipped byte in a layer, with the time set back",
    attack: ({ layer }) => {
      const path = join(layer(2), "one");
      const { atime, mtime } = statSync(path);
      flip(path);
      utimesSync(path, atime, mtime);
    },
    damage: layerDamage("its contents have changed since the first check"),
  },
  {
    name: "a setuid bit in a layer",
    attack: ({ layer }) => chmodSync(join(layer(2), "one"), 0o4755),
    damage: layerDamage("its contents have changed since the first check"),
  },
  {
    name: "an additional file in a layer",
    attack: ({ layer }) => writeFileSync(join(layer(2), "more"), ""),
    damage: layerDamage("its contents have changed since the first check"),
  },
  {
    name: "a missing file in a layer",
    attack: ({ layer }) => rmSync(join(layer(2), "one")),
    damage: layerDamage("its contents have changed since the first check"),
  },
  {
    name: "a layer that is its own parent",
    attack: ({ sql }) => sql("UPDATE layers SET parent = 2 WHERE id = 2"),
    damage: layerDamage("its depth does not match its parent's"),
    isQuick: true,
  },
  {
    name: "a layer with a missing parent",
    attack: ({ sql }) => sql("UPDATE layers SET parent = 77 WHERE id = 2"),
    damage: layerDamage("its parent layer has no record"),
    isQuick: true,
  },
  {
    name: "an image whose configuration is not JSON",
    attack: ({ sql }) => sql("UPDATE images SET config = '{' WHERE layer = 4"),
    damage: [{ kind: "image", problem: "its record is damaged", tags: ["app:1"] }],
    isQuick: true,
  },
  {
    name: "an image without a layer",
    attack: ({ sql }) => sql("UPDATE images SET layer = 77 WHERE layer = 4"),
    damage: [{ kind: "image", problem: "its layer has no record", tags: ["app:1"] }],
    isQuick: true,
  },
  {
    name: "a tag without an image",
    attack: ({ sql }) => {
      // As older processes write it.
      sql(
        "INSERT INTO tags (tag, image) VALUES ('lost:1', 'nobody') ON CONFLICT (tag) DO UPDATE SET image = excluded.image",
      );
      sql("INSERT INTO foreign_tags SELECT 'lost:1', 'linux/s390x', uuid FROM images WHERE layer = 4");
    },
    damage: [{ kind: "tag", problem: "there is no image nobody", tags: ["lost:1"] }],
    isQuick: true,
  },
  {
    name: "another platform's tag without an image",
    attack: ({ sql }) => sql("INSERT INTO foreign_tags VALUES ('lost:1', 'linux/s390x', 'nobody')"),
    damage: [{ kind: "tag", problem: "there is no image nobody", tags: ["lost:1"] }],
    isQuick: true,
  },
];

const dockerfile =
  "FROM busybox:1\nRUN echo one > /one\nCOPY <<a.txt /\ncontent\na.txt\nRUN cat /a.txt /one > /two\n";

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  let canary: Canary;
  beforeAll(async () => {
    builder = await make();
    canary = makeCanary(builder.home);
    builder.own(canary.path);
    builder.writeContext({ Dockerfile: dockerfile });
    expect(await builder.bough(["build", "--tag", "app:1", "."])).toMatchObject({ exitCode: 0 });
    // The first check records the contents of layers.
    expect(await check()).toMatchObject({
      exitCode: 0,
      report: { healthy: true, files: 1, layers: 4, images: 4, damage: [] },
    });
    builder.keep();
  });
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  async function check(...options: string[]) {
    const { exitCode, stdout, stderr } = await builder.bough(["engine", "check", "-f", "json", ...options]);
    expect(stderr).toBe("");
    return { exitCode, report: JSON.parse(stdout) };
  }

  function attackStore(attack: (store: Store) => void): void {
    const database = new Database(join(builder.engine, "engine.db"));
    database.run("PRAGMA foreign_keys = OFF");
    const files = readdirSync(join(builder.engine, "files"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    const layer = (number: number) => join(builder.engine, "layers", number.toString(36));
    attack({ files, layer, sql: (statement) => void database.run(statement), canary });
    database.close();
    for (const name of readdirSync(builder.engine))
      if (name !== "layers") builder.own(join(builder.engine, name));
  }

  const ofEachKind = [
    "a link to a canary in place of an uploaded file",
    "a link to a canary in place of a layer",
    "a setuid bit in a layer",
    "an image without a layer",
  ];
  test.each(rowsFor(who, cases, ofEachKind))(
    "finds and drops $name",
    async ({ name, attack, damage, isQuick = false }) => {
      const isOfEachKind = ofEachKind.includes(name);
      const before = canary.state();
      attackStore(attack);
      const found = await check();
      expect(found).toMatchObject({ exitCode: 1, report: { healthy: false } });
      expect(found.report.damage).toMatchObject(
        damage.map((each) => ({ tags: [], ...each, dropped: false })),
      );
      if (damage[0]?.kind === "layer" || damage[0]?.kind === "image")
        expect(found.report.damage[0].branches.join()).toMatch(/build:[0-9a-f]{16} layer:[0-9a-f]{64}/);
      if (isOfEachKind) {
        const shown = await builder.bough(["engine", "check"]);
        expect(shown.stdout).toContain(damage[0]?.problem ?? "");
        expect(shown.stdout).toContain("`bough engine check --repair` drops it");
        const doctor = await builder.bough(["doctor"]);
        expect(/^(warning|ok) +engine's store/m.exec(doctor.stdout)?.[1]).toBe(isQuick ? "warning" : "ok");
      } else {
        // What doctor calls.
        expect((await checkQuickly(builder.engine)).damage).toHaveLength(isQuick ? damage.length : 0);
      }

      const repaired = await check("--repair");
      expect(repaired).toMatchObject({
        exitCode: 0,
        report: { healthy: true, damage: damage.map(() => ({ dropped: true })) },
      });
      expect(await check()).toMatchObject({ exitCode: 0, report: { damage: [] } });
      for (const options of isOfEachKind ? [[], ["--no-cache"]] : [[]])
        expect(await builder.bough(["build", "--tag", "app:1", ...options, "."])).toMatchObject({
          exitCode: 0,
        });
      const read = await builder.bough(["run", "--use", "app:1", "-D", "--", "cat", "/two"]);
      expect(read).toMatchObject({ exitCode: 0, stdout: "content\none\n" });
      expect(canary.state()).toBe(before);
    },
  );

  test("--repair keeps a damaged layer while a running operation uses it", async () => {
    builder.writeContext({ Dockerfile: `${dockerfile}RUN sleep 6128\n` });
    const child = builder.start(["build", "."]);
    try {
      while (!commandLines().includes("sleep 6128")) await Bun.sleep(5);
      attackStore(({ layer }) => flip(join(layer(2), "one")));
      const repaired = await check("--repair");
      expect(repaired).toMatchObject({
        exitCode: 1,
        report: { damage: [{ kind: "layer", dropped: false }] },
      });
      expect(statSync(join(builder.engine, "layers/3")).isDirectory()).toBe(true);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(await check("--repair")).toMatchObject({ exitCode: 0, report: { damage: [{ dropped: true }] } });
  });

  test("reports a file that is not a database, and does not repair it", async () => {
    for (const name of readdirSync(builder.engine).filter((name) => name.startsWith("engine.db")))
      rmSync(join(builder.engine, name));
    writeFileSync(join(builder.engine, "engine.db"), "garbage ".repeat(1000));
    builder.own(join(builder.engine, "engine.db"));
    expect(await check("--repair")).toMatchObject({
      exitCode: 1,
      report: { damage: [{ kind: "database" }] },
    });
  });
});

function flip(path: string): void {
  const bytes = readFileSync(path);
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}
