import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostFile } from "../../src/service/wire/file.ts";
import { TestEngine } from "./engine.ts";

/** An engine's directory, which is opened with different `sync` programs. */
export class SyncedEngine {
  readonly #scratch = mkdtempSync(join(tmpdir(), "bough-layer-sync-"));
  readonly directory = join(this.#scratch, "engine");
  readonly warnings: string[] = [];
  readonly #log = join(this.#scratch, "syncs");
  /** A free path; the fake `sync` has it as `$gate`. */
  readonly gate = join(this.#scratch, "gate");

  open(path = process.env.PATH): Promise<TestEngine> {
    const warn = (message: string) => void this.warnings.push(message);
    return TestEngine.open({ directory: this.directory, environment: { PATH: path }, warn });
  }

  /** Opens the engine with a synced base. `script`: see `fakeSync`. */
  async openWithBase(script?: string) {
    const first = await this.open();
    const base = await first.importBase();
    await first.engine.close();
    return { engine: await this.open(script === undefined ? undefined : this.fakeSync(script)), base };
  }

  /** The same with a new layer. */
  async openWithLayer(script?: string) {
    const { engine, base } = await this.openWithBase(script);
    const { image = "" } = await engine.run(base, "echo kept > /kept");
    return { engine: engine.engine, base, image };
  }

  inDatabase<T>(work: (database: Database) => T): T {
    const database = new Database(join(this.directory, "engine.db"));
    try {
      return work(database);
    } finally {
      database.close();
    }
  }

  unsynced(): unknown[] {
    return this.inDatabase((database) => database.query("SELECT layer FROM unsynced_layers").values().flat());
  }

  /** The layers that have a directory. */
  layers(): unknown[] {
    return readdirSync(join(this.directory, "layers")).map((name) => Number.parseInt(name, 36));
  }

  /** Returns a PATH with a `sync` that notes its call, then runs `script`. */
  fakeSync(script: string, interpreter = "/bin/sh"): string {
    // A trial of its options has nothing to sync.
    const trial = `[ "$*" != "-f /proc" ] || exit 0`;
    const noted = `log=${this.#log} gate=${this.gate}\n${trial}\necho "$@" >> "$log"\n${script}`;
    return `${this.fake("sync", noted, interpreter)}:${process.env.PATH}`;
  }

  /** Puts a script in the place of a program. Returns its directory. */
  fake(program: string, script: string, interpreter = "/bin/sh"): string {
    const programs = join(this.#scratch, "programs");
    mkdirSync(programs, { recursive: true });
    writeFileSync(join(programs, program), `#!${interpreter}\n${script}\n`, { mode: 0o755 });
    return programs;
  }

  /** The number of calls of the fake `sync`. */
  syncs(): number {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8").split("\n").length - 1 : 0;
  }

  /** Makes files of these sizes, and lends them. */
  hostFiles(sizes: readonly number[]): HostFile[] {
    const directory = join(this.#scratch, "files");
    mkdirSync(directory);
    return sizes.map((size, index) => {
      const path = join(directory, `${index}`);
      const content = Buffer.alloc(size, index % 251);
      writeFileSync(path, content);
      const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
      return {
        destination: `/f/${index}`,
        path,
        sha256,
        size,
        uid: 0,
        gid: 0,
        mode: 0o644,
        mtime: undefined,
      };
    });
  }

  /** Opens the engine again. Returns for each image whether it has it. */
  async hasAfterwards(images: readonly string[]): Promise<boolean[]> {
    const next = await this.open();
    await next.recover();
    const found = images.map(async (image) => {
      const { status } = await next.fetch("GET", `/v1/inspect/${image}/list?path=/`);
      return status === 200;
    });
    const answers = await Promise.all(found);
    await next.engine.close();
    return answers;
  }

  remove(): void {
    rmSync(this.#scratch, { recursive: true, force: true });
  }
}

/** Sizes of files that are many enough for an early sync. */
export const manySmall = Array.from({ length: 1_000 }, () => 10);

/** A fake `sync` that fails once. */
export const failFirst = `[ "$(wc -l < "$log")" -gt 1 ] || { echo 'sync: Input/output error' >&2; exit 1; }`;
/** The warning after it. */
export const lost = expect.stringMatching(
  /^layers and caches that were not on the disk yet count as lost, and images built on them must be built again: .*Input\/output error\. .*dmesg/,
);
/** The error of an operation during which it failed. */
export const notKept = expect.stringMatching(
  /^writing to the disk failed meanwhile, so the result was not kept\. Try again\. .*dmesg/,
);

export async function untilFailed({ warnings }: SyncedEngine): Promise<void> {
  while (warnings.length === 0) await Bun.sleep(5);
}
