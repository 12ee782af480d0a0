import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { inTransaction } from "../database.ts";
import {
  type BranchStore,
  createBranchStore,
  createFailedStepStore,
  type FailedStepStore,
} from "./branches.ts";
import { type CopyLayerStore, type CopyMemory, createCopyLayerStore, createCopyMemory } from "./copies.ts";
import { forgetImages, type OpenOptions, openStateFile } from "./database.ts";
import { createFileStateStore, type FileStateStore } from "./file-states.ts";
import { createHashStore, type HashStore } from "./hashes.ts";
import {
  createImageMetadataCache,
  createImportMemory,
  type ImageMetadataCache,
  type ImportMemory,
} from "./image-metadata.ts";
import { createSessionStore, type SessionStore } from "./sessions.ts";
import { createStepStore, type StepStore } from "./steps.ts";
import { createSurroundingsStore, type SurroundingsStore } from "./surroundings.ts";
import { createUnfinishedStore, type UnfinishedStore } from "./unfinished.ts";
import { createUploadCache, createUrlCache, type UploadCache, type UrlCache } from "./uploads.ts";

/** The state that bough keeps about one service and project, in one SQLite file. */
export interface Store extends Disposable {
  readonly path: string;
  readonly sessions: SessionStore;
  readonly branches: BranchStore;
  readonly surroundings: SurroundingsStore;
  readonly urls: UrlCache;
  readonly uploads: UploadCache;
  readonly copies: CopyMemory;
  readonly imports: ImportMemory;
  readonly imageMetadata: ImageMetadataCache;
  readonly steps: StepStore;
  readonly failedSteps: FailedStepStore;
  readonly unfinished: UnfinishedStore;
  readonly hashes: HashStore;
  readonly fileStates: FileStateStore;
  readonly copyLayers: CopyLayerStore;
  readonly scopeCopies: ScopeCopies;
  /** Removes the rows about images that are gone, except their entries in histories. */
  forgetImages(images: Iterable<string>): void;
  /** Runs `work` in a transaction. */
  atomically<Result>(work: () => Result): Result;
  close(): void;
}

/** Opens the store at `path`; makes it if missing, with its directory. Throws if a newer bough has written it. */
export function openStore(path: string, clock: Clock, options: OpenOptions = {}): Store {
  const database = openStateFile(path, migrations, { clock, ...options });
  const sessions = createSessionStore(database, clock);
  const uploads = createUploadCache(database);
  const close = () => {
    try {
      uploads.flush();
    } finally {
      database.close();
    }
  };
  return {
    path,
    sessions,
    branches: createBranchStore(database, clock, sessions),
    surroundings: createSurroundingsStore(database),
    urls: createUrlCache(database, clock),
    uploads,
    copies: createCopyMemory(database, clock),
    imports: createImportMemory(database),
    imageMetadata: createImageMetadataCache(database, clock),
    steps: createStepStore(database),
    failedSteps: createFailedStepStore(database),
    unfinished: createUnfinishedStore(database),
    hashes: createHashStore(database, clock),
    fileStates: createFileStateStore(database, clock),
    copyLayers: createCopyLayerStore(database),
    scopeCopies: createScopeCopies(database),
    forgetImages: (images) => forgetImages(database, images),
    atomically: (work) => inTransaction(database, work),
    close,
    [Symbol.dispose]: close,
  };
}

const migrations = [
  `
  CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    parent_id INTEGER REFERENCES history (id) ON DELETE SET NULL,
    image TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    operation TEXT,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX history_session ON history (session_id);
  CREATE INDEX history_parent ON history (parent_id);
  CREATE TABLE branch (
    session_id INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    history_id INTEGER NOT NULL REFERENCES history (id) ON DELETE CASCADE,
    PRIMARY KEY (session_id, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX branch_history ON branch (history_id);
  CREATE TABLE url (
    url TEXT PRIMARY KEY,
    etag TEXT,
    last_modified TEXT,
    content_md5 TEXT,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE upload (
    sha256 TEXT PRIMARY KEY,
    file TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE import (
    reference TEXT PRIMARY KEY,
    image TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE fact (
    image TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (image, question)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Of a session that work goes on in; the branch itself is made by its first image.
  ALTER TABLE session ADD COLUMN active_branch TEXT NOT NULL DEFAULT 'main';
  `,
  `
  CREATE TABLE step (
    session_id INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    dockerfile TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    hash TEXT NOT NULL,
    title TEXT NOT NULL,
    inputs BLOB NOT NULL,
    PRIMARY KEY (session_id, dockerfile, ordinal)
  ) STRICT;
  `,
  `
  CREATE TABLE hash (
    context TEXT PRIMARY KEY,
    files BLOB NOT NULL,
    written_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE unfinished (
    session TEXT NOT NULL,
    step TEXT NOT NULL,
    owner TEXT NOT NULL,
    mark INTEGER NOT NULL,
    operation TEXT,
    started_at INTEGER NOT NULL,
    PRIMARY KEY (session, step, owner)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Of a build's session: the directory that its key is a hash of.
  ALTER TABLE session ADD COLUMN context TEXT;
  `,
  `
  CREATE TABLE copied (
    image TEXT NOT NULL,
    words TEXT NOT NULL,
    sources BLOB NOT NULL,
    PRIMARY KEY (image, words)
  ) STRICT;
  CREATE TABLE archive (
    key TEXT PRIMARY KEY,
    sha256 TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE copy_layer (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    hash TEXT NOT NULL,
    place TEXT NOT NULL,
    source TEXT NOT NULL,
    layer TEXT NOT NULL,
    UNIQUE (session, hash)
  ) STRICT;
  CREATE INDEX copy_layer_place ON copy_layer (session, place);
  `,
  `
  CREATE TABLE failed_step (
    session_id INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
    step BLOB NOT NULL
  ) STRICT;
  `,
  `
  -- What the latest step that failed has left, for whoever wants to look at it.
  ALTER TABLE session ADD COLUMN failed_image TEXT;
  `,
  `
  CREATE TABLE scope_copy (
    scope TEXT PRIMARY KEY,
    image TEXT NOT NULL,
    content BLOB NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE file_state (
    context TEXT PRIMARY KEY,
    rows TEXT NOT NULL,
    written_at INTEGER NOT NULL
  ) STRICT;
  `,
  // What is known of contents goes after a time. The first version that notes the time begins with the present one.
  ["url", "copied", "archive", "fact"]
    .map(
      (table) => `
  ALTER TABLE ${table} ADD COLUMN written_at INTEGER NOT NULL DEFAULT 0;
  UPDATE ${table} SET written_at = unixepoch() * 1000;
  CREATE INDEX ${table}_written ON ${table} (written_at);`,
    )
    .join(""),
  `
  ALTER TABLE url ADD COLUMN fetched_at INTEGER;
  `,
  `
  -- Operations by the id of their requests, which those of the same step share.
  CREATE TABLE started (
    mark INTEGER NOT NULL,
    operation TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    PRIMARY KEY (mark, operation)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX started_at ON started (started_at);
  `,
  `
  -- With which commands in the session's image begin.
  ALTER TABLE session ADD COLUMN directory TEXT;
  ALTER TABLE session ADD COLUMN variables TEXT NOT NULL DEFAULT '{}';
  `,
  `
  -- What a layer depends on besides this machine; see builder/state/layer-origin.ts. Null: unknown.
  ALTER TABLE history ADD COLUMN origin TEXT;
  ALTER TABLE copy_layer ADD COLUMN origin TEXT;
  `,
];

/** The latest index that was read of each scope, which is not fetched again as long as the service has the same. */
export interface ScopeCopies {
  /** `image`: the UUID of the image that contains the index. */
  get(image: string): Uint8Array | undefined;
  /** Replaces the stored index of that scope. */
  set(scope: string, image: string, content: Uint8Array): void;
}

function createScopeCopies(database: Database): ScopeCopies {
  return {
    get(image) {
      const row = database
        .query<{ content: Uint8Array }, [string]>("SELECT content FROM scope_copy WHERE image = ?")
        .get(image);
      return row === null ? undefined : Bun.zstdDecompressSync(row.content);
    },
    set(scope, image, content) {
      const packed = Bun.zstdCompressSync(Buffer.from(content), { level: 1 });
      database
        .query("INSERT OR REPLACE INTO scope_copy (scope, image, content) VALUES (?, ?, ?)")
        .run(scope, image, packed);
    },
  };
}
