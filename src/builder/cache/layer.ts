import { createPace } from "../../pace.ts";
import type { HistoryEntry, HistoryKind, SessionStore } from "../../store/sessions.ts";
import { effectiveEnv } from "../interpreter/scope.ts";
import type { Layer, StageState } from "../interpreter/state.ts";
import type { StagedEntry } from "../staging/staged.ts";

/**
 * Spec 1, "Layer cache": SHA-256 over the parent layer, the state, the directive and the pending files. The bytes are
 * canonical JSON, in which no two different inputs look alike: every field is delimited, and maps go in sorted order.
 * Content counts, time stamps and the service's own ids do not.
 */
export async function chainHash(
  stage: StageState,
  directive: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  const state = {
    args: sorted(
      Array.from(stage.args, ([name, { value }]): [string, ...string[]] =>
        value === undefined ? [name] : [name, value],
      ),
    ),
    env: sorted([...effectiveEnv(stage)]),
    user: stage.user ?? null,
    workdir: stage.workdir,
  };
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(JSON.stringify([stage.layer.hash, state, directive]).slice(0, -1));
  hasher.update(",[");
  const pace = createPace(signal);
  const paths = [...stage.staged.keys()].sort();
  // A part at a time: of a large context, all of it takes a good deal of memory and time.
  for (let from = 0; from < paths.length; from += rowsAtOnce) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const rows = paths.slice(from, from + rowsAtOnce).map((path) => rowOf(path, stage.staged.get(path)));
    if (from > 0) hasher.update(",");
    hasher.update(JSON.stringify(rows).slice(1, -1));
  }
  return hasher.update("]]").digest("hex");
}

const rowsAtOnce = 1000;

/** The chain hash of a FROM: nothing is below it but the image itself. */
export function baseHash(image: string): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(["FROM", image])).digest("hex");
}

/** The branch that a layer is stored under. */
export function layerBranch(hash: string): string {
  return `layer:${hash}`;
}

export function findLayer(sessions: SessionStore, session: string, hash: string): Layer | undefined {
  const entry = sessions.findBranch(session, layerBranch(hash));
  if (entry === undefined) return undefined;
  return { hash, image: entry.image, entry: entry.id, cached: true, operation: entry.operation };
}

export interface NewLayer {
  hash: string;
  image: string;
  parent: Layer | undefined;
  kind: HistoryKind;
  title: string;
  operation: string | undefined;
}

export function commitLayer(sessions: SessionStore, session: string, layer: NewLayer): Layer {
  const entry: HistoryEntry = sessions.commit(session, layerBranch(layer.hash), {
    parent: layer.parent?.entry ?? null,
    image: layer.image,
    kind: layer.kind,
    title: layer.title,
    operation: layer.operation ?? null,
  });
  const { id, image, operation } = entry;
  return { hash: layer.hash, image, entry: id, cached: false, operation };
}

function rowOf(path: string, entry: StagedEntry | undefined): unknown[] {
  switch (entry?.type) {
    case "file":
      return [path, "file", entry.sha256, entry.uid, entry.gid, entry.mode];
    case "directory":
      return [path, "directory", entry.uid, entry.gid, entry.mode, entry.isExplicit];
    case "symlink":
      return [path, "symlink", entry.target, entry.uid, entry.gid];
    case undefined:
      throw new Error(`nothing is staged at ${path}`);
  }
}

/** By the first field, which is unique: a name or a path. By code unit, so that no locale plays a part. */
function sorted<Row extends readonly [string, ...unknown[]]>(rows: Row[]): Row[] {
  return rows.sort((one, other) => (one[0] < other[0] ? -1 : 1));
}
